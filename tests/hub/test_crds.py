"""The API server accepts the CRDs as they are shipped, and holds others to them."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.kube.kinds import CRDS
from boatyard.model.errors import Refused
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from tests.contracts.order_books import KubeBookHarness
from tests.support.kube_hub.crds import crds


def an_order(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"generateName": "order-"},
        "spec": {"templateID": "ocp_4_17_small", **spec},
    }


async def test_no_crd_has_a_complaint(harness: KubeBookHarness) -> None:
    for crd in crds():
        found = await harness.client.get(CRDS, crd["metadata"]["name"])
        held = {one["type"]: one["status"] for one in found["status"]["conditions"]}
        assert held["Established"] == held["NamesAccepted"] == "True"
        assert held.get("NonStructuralSchema", "False") == "False"


@pytest.mark.parametrize(
    "spec, words",
    [
        pytest.param({"templateID": "a-b"}, "templateID", id="a template id with a dash"),
        pytest.param(
            {"nodeRequests": [{"numberOfNodes": 1}]}, "nodeSet", id="nodes of nobody knows what"
        ),
        pytest.param(
            {"nodeRequests": [{"resourceClass": "a", "numberOfNodes": -1}]},
            "numberOfNodes",
            id="fewer than no nodes",
        ),
        pytest.param({"releaseImage": "nothing"}, "releaseImage", id="no image"),
        pytest.param({"sshPublicKey": "k" * 16385}, "sshPublicKey", id="too long a key"),
        pytest.param({"network": {"podCIDR": "all"}}, "podCIDR", id="no network"),
    ],
)
async def test_what_no_order_may_say_is_refused(
    harness: KubeBookHarness, spec: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refused, match=words):
        await harness.client.create(
            CLUSTER_ORDERS, an_order(**spec), harness.place.shared_namespace
        )


async def test_the_template_of_an_order_stays(harness: KubeBookHarness) -> None:
    namespace = harness.place.shared_namespace
    made = await harness.client.create(CLUSTER_ORDERS, an_order(), namespace)
    name = made["metadata"]["name"]
    with pytest.raises(Refused, match="templateID is immutable"):
        await harness.client.merge_patch(
            CLUSTER_ORDERS, name, {"spec": {"templateID": "another"}}, namespace
        )


async def test_both_shapes_of_node_requests_are_accepted(harness: KubeBookHarness) -> None:
    requests = [
        {"resourceClass": "fc430", "numberOfNodes": 2},
        {"nodeSet": "gpu", "numberOfNodes": 1, "bareMetal": {"instanceType": "h100"}},
    ]
    made = await harness.client.create(
        CLUSTER_ORDERS, an_order(nodeRequests=requests), harness.place.shared_namespace
    )
    assert made["spec"]["nodeRequests"] == requests

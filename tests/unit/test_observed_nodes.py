"""How nodes that the platform shows are counted, and what makes a control plane be asked for anew."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from boatyard.model.generated.boatyard import Item, Order
from boatyard.platforms.port import ObservedCluster, ObservedNode
from boatyard.resources.orders import plan, rules
from tests.support.orders import CHECKS, NOW, an_order, settled


def test_nodes_that_are_not_ready_are_counted_and_not_as_ready() -> None:
    order = settled(an_order(sizes={"compute": 2, "gpu": 1}))
    nodes = (
        ObservedNode("compute-0", "compute", ready=True),
        ObservedNode("compute-1", "compute", ready=False),
        ObservedNode("gpu-0", "gpu", ready=False),
    )

    status = rules.absorb(
        order,
        items=order.status.items,
        attempts=(),
        observation=ObservedCluster(exists=True, available=True, nodes=nodes),
        access=None,
        unfinished=False,
        now=NOW,
    ).status

    assert status.nodes == {"compute": 2, "gpu": 1}
    assert status.ready_nodes == {"compute": 1}


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"version": "4.18.0"}, id="version"),
        pytest.param({"release_image": "r/i:2"}, id="image"),
        pytest.param({"ssh_public_key": "ssh-ed25519 AAAA"}, id="key"),
        pytest.param({"pull_secret": "{}"}, id="pull secret"),
        pytest.param({"pod_cidr": "10.0.0.0/14"}, id="pods"),
        pytest.param({"service_cidr": "172.30.0.0/16"}, id="services"),
        pytest.param({"platform_settings": {"nodes": "real"}}, id="settings"),
    ],
)
def test_a_wish_that_the_control_plane_depends_on_is_carried_out(wish: dict[str, Any]) -> None:
    order = settled(an_order())
    spec = msgspec.structs.replace(order.spec, generation=2, **wish)
    changed = msgspec.structs.replace(order, spec=spec)

    cluster = control_plane(changed, plan.replan(changed, {}, CHECKS))

    assert cluster.want != cluster.have == control_plane(order, order.status.items).have


def control_plane(order: Order, items: tuple[Item, ...]) -> Item:
    return next(item for item in items if item.kind == "cluster")

"""What stands in the spec of a ClusterOrder, field by field: each value is another one."""

from __future__ import annotations

from boatyard.model.generated.boatyard import Order, OrderNodeSet, OrderSpec, OrderStatus
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.orderbook.kube.mapping.status import to_status
from boatyard.orderbook.kube.mapping.to_kube import to_spec
from tests.support.orders import NOW

SPEC = OrderSpec(
    cluster_name="web",
    hub="hub-1",
    template="small",
    node_sets={"b": OrderNodeSet(host_type="large", size=2), "a": OrderNodeSet(size=0)},
    version="4.17.1",
    release_image="registry/ocp:4.17.1",
    ssh_public_key="ssh-ed25519 AAAA",
    pull_secret="hidden",
    pod_cidr="10.128.0.0/14",
    service_cidr="172.30.0.0/16",
    generation=3,
)


def made(order_settings: HubOrderSettings) -> dict[str, object]:
    return to_spec("c-1", SPEC, tenant="acme", order_settings=order_settings, ordered_at=NOW)


def test_each_field_stands_where_other_tools_look_for_it() -> None:
    spec = made(HubOrderSettings(hub="hub-1"))

    assert {name: value for name, value in spec.items() if name != "boatyard"} == {
        "templateID": "small",
        "nodeRequests": [
            {"nodeSet": "a", "resourceClass": "", "numberOfNodes": 0},
            {
                "nodeSet": "b",
                "resourceClass": "large",
                "numberOfNodes": 2,
                "bareMetal": {"instanceType": "large"},
            },
        ],
        "sshPublicKey": "ssh-ed25519 AAAA",
        "releaseImage": "registry/ocp:4.17.1",
        "network": {"podCIDR": "10.128.0.0/14", "serviceCIDR": "172.30.0.0/16"},
    }


def test_the_pull_secret_stands_there_for_compatible_playbooks_only() -> None:
    assert "hidden" not in str(made(HubOrderSettings(hub="hub-1")))
    assert made(HubOrderSettings(hub="hub-1", osac_compatible=True))["pullSecret"] == "hidden"


def test_workers_that_are_wanted_there_and_ready_are_three_numbers() -> None:
    status = OrderStatus(nodes={"b": 3, "a": 1}, ready_nodes={"b": 1})
    order = Order(id="c-1", spec=SPEC, status=status)

    shown = to_status(order, {"metadata": {"name": "order-1", "namespace": "ns"}}, NOW)

    workers = [shown[f"{which}Workers"] for which in ("desired", "current", "ready")]
    assert workers == [2, 4, 1]

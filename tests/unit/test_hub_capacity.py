"""How much a hub has, counted from Agents and nodes; and what an operator has set comes first."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model.generated.osac import Hub, HubSpec, HubStatus
from boatyard.resources.clusters import placement
from boatyard.resources.hubs.capacity import (
    CONTROL_PLANE_RESOURCES,
    NodeResources,
    count_agents,
    count_fitting_machines,
    list_node_resources,
    parse_quantity,
    parse_vm_sizes,
)


def an_agent(
    label: str = "osac.openshift.io/resource_class",
    *,
    approved: bool = True,
    connected: str = "True",
    **labels: str,
) -> dict[str, Any]:
    return {
        "metadata": {"labels": {label: "small", **labels}},
        "spec": {"approved": approved},
        "status": {"conditions": [{"type": "Connected", "status": connected}]},
    }


@pytest.mark.parametrize(
    "agent, counted",
    [
        pytest.param(an_agent(), True, id="of a class"),
        pytest.param(an_agent("osac.openshift.io/instance_type"), True, id="the newer label"),
        pytest.param(an_agent("other"), False, id="of no class"),
        pytest.param(an_agent(approved=False), False, id="not approved"),
        pytest.param(an_agent(connected="False"), False, id="gone from the network"),
        pytest.param(
            an_agent(connected="False", agentMachineRef="m"), True, id="gone, but a cluster's node"
        ),
        pytest.param({**an_agent(), "status": {}}, True, id="without a word about its connection"),
    ],
)
def test_which_agents_count(agent: dict[str, Any], counted: bool) -> None:
    assert count_agents([agent]) == ({"small": 1} if counted else {})


def a_node(*, ready: str = "True", cpu: str = "16", **spec: Any) -> dict[str, Any]:
    return {
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


@pytest.mark.parametrize(
    "node, counted",
    [
        pytest.param(a_node(), True, id="a worker"),
        pytest.param(a_node(ready="Unknown"), False, id="one that is silent"),
        pytest.param(a_node(unschedulable=True), False, id="cordoned"),
        pytest.param(a_node(taints=[{"effect": "NoSchedule"}]), False, id="tainted"),
        pytest.param(a_node(taints=[{"effect": "PreferNoSchedule"}]), True, id="rather not"),
    ],
)
def test_which_nodes_count(node: dict[str, Any], counted: bool) -> None:
    assert len(list_node_resources([node])) == counted


def test_machines_fit_node_by_node_and_control_planes_all_over() -> None:
    nodes = list_node_resources([a_node(cpu="7900m"), a_node(cpu="4")])

    assert count_fitting_machines(
        nodes, {"large": NodeResources(8, 2**30), "small": NodeResources(4, 2**30)}
    ) == {
        "large": 0,
        "small": 2,
    }
    assert NodeResources(15, 80 * 2**30, 500).count_fitting(CONTROL_PLANE_RESOURCES) == 3
    assert NodeResources(100, 2**50, 77).count_fitting(CONTROL_PLANE_RESOURCES) == 0


def test_the_sizes_of_machines_are_the_platforms() -> None:
    settings = {
        "hosted.vm.large": "cores=8,memory=32Gi,disk=64Gi",
        "hosted.vm.default": "cores=2,memory=8Gi,disk=32Gi",
        "hosted.vm.broken": "cores=x",
        "hosted.platform": "KubeVirt",
    }

    assert parse_vm_sizes(settings) == {"large": NodeResources(8, 32 * 2**30)}


@pytest.mark.parametrize(
    "text, number",
    [("4", 4), ("3900m", 3.9), ("16Gi", 2**34), ("1k", 1000), ("1.5G", 1.5e9), ("x", 0), ("", 0)],
)
def test_quantities(text: str, number: float) -> None:
    assert parse_quantity(text) == pytest.approx(number)


@pytest.mark.parametrize(
    "asked, found, offered",
    [
        pytest.param({}, {}, {}, id="nothing is known"),
        pytest.param({}, {"a": 3, "clusters": 9}, {"a": 3, "clusters": 9}, id="what was found"),
        pytest.param({"a": 1}, {"a": 3, "b": 2}, {"a": 1}, id="an operator's list is the list"),
        pytest.param(
            {"a": 1}, {"a": 3, "clusters": 9}, {"a": 1, "clusters": 9}, id="clusters by themselves"
        ),
        pytest.param(
            {"clusters": 0},
            {"a": 3, "clusters": 9},
            {"a": 3, "clusters": 0},
            id="and the other way",
        ),
    ],
)
def test_what_an_operator_has_set_wins(
    asked: dict[str, int], found: dict[str, int], offered: dict[str, int]
) -> None:
    hub = Hub(spec=HubSpec(capacity=asked), status=HubStatus(capacity=found))

    assert placement.get_capacities(hub) == offered
    assert placement.get_capacity(hub, "clusters") == offered.get("clusters", placement.UNBOUNDED)
    assert placement.get_capacity(hub, "a") == offered.get("a", 0)

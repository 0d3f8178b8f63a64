"""What end-to-end tests conclude from a hub: a host in two clusters is noticed, wherever that stands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kube_hub.processes import users_of_agents

FIRST, SECOND = "order-aaaaaaaaaa", "order-bbbbbbbbbb"


def thing(kind: str, name: str, namespace: str = "hosts", **more: Any) -> dict[str, Any]:
    about = {"name": name, "namespace": namespace, **more.pop("about", {})}
    return {"kind": kind, "metadata": about, **more}


def home(order: str) -> str:
    return f"boatyard-acme-{order}-{order}"


MARKED = thing("Agent", "h-1", about={"labels": {"osac.openshift.io/clusterorder": FIRST}})
BOUND = thing("Agent", "h-1", spec={"clusterDeploymentName": {"namespace": home(SECOND)}})
MACHINE = thing("Machine", "m-1", home(SECOND), spec={"providerID": "agent://h-1"})
POOL = thing(
    "NodePool",
    "compute",
    f"boatyard-acme-{SECOND}",
    about={"annotations": {"node.boatyard.io/compute-0": '{"host": "h-1"}', "other": "x"}},
)


@pytest.mark.parametrize("other", [BOUND, MACHINE, POOL], ids=lambda one: str(one["kind"]))
def test_a_host_of_two_clusters_is_noticed(other: dict[str, Any]) -> None:
    assert users_of_agents([MARKED, other]) == {"h-1": {FIRST, SECOND}}


def test_a_host_of_one_cluster_is_that_ones_only() -> None:
    assert users_of_agents([BOUND, MACHINE, POOL]) == {"h-1": {SECOND}}


def test_a_host_of_nobody_is_not_named() -> None:
    assert users_of_agents([thing("Agent", "h-1", spec={"approved": True})]) == {}

"""Scenes for the player's decisions: one cluster on a stage, and words for what is seen of it."""

from __future__ import annotations

from typing import Any

from boatyard.fakes.hypershift.snapshot import FakeSettings
from boatyard.fakes.hypershift.stage_delays import StageDelays
from tests.support.kube_hub.hypershift_manifests import agent, hosted_cluster, node_pool
from tests.support.kube_hub.memory_api import MemoryApi

Object = dict[str, Any]

NUMBER = "player.boatyard.io/machine-number"
DELETE_MACHINE = "cluster.x-k8s.io/delete-machine"
REALISTIC, INSTANT = FakeSettings(StageDelays(1.0)), FakeSettings(StageDelays(0.0))
KUBEVIRT = {"type": "KubeVirt", "kubevirt": {}}
VMS = {"type": "KubeVirt", "kubevirt": {"rootVolume": {"type": "Persistent"}}}


def one_cluster(
    manner: FakeSettings = INSTANT, *, replicas: int = 2, agents: int = 4, **pool: Any
) -> MemoryApi:
    """One cluster with one pool, and some free agents."""
    return MemoryApi(
        manner,
        hosted_cluster("t", "c"),
        node_pool("t", "p", "c", replicas, **pool),
        *(agent(f"a{number}") for number in range(agents)),
    )


def said(thing: Object | None) -> dict[str, str]:
    conditions = ((thing or {}).get("status") or {}).get("conditions") or []
    return {one["type"]: one["status"] for one in conditions}


def reason(thing: Object | None, kind: str) -> str:
    assert thing is not None
    return next(str(one["reason"]) for one in thing["status"]["conditions"] if one["type"] == kind)


def message(thing: Object | None, kind: str) -> str:
    assert thing is not None
    return next(str(one["message"]) for one in thing["status"]["conditions"] if one["type"] == kind)


def ready(held: MemoryApi, pool: str = "p") -> bool:
    return said(held.get("NodePool", pool)).get("Ready") == "True"


def complete(held: MemoryApi) -> bool:
    cluster = held.get("HostedCluster", "c")
    history = (((cluster or {}).get("status") or {}).get("version") or {}).get("history") or []
    return bool(history) and history[0]["state"] == "Completed"


def hosts_of(held: MemoryApi) -> set[str]:
    """The agents that machines have."""
    return {
        machine["spec"]["providerID"].removeprefix("agent://")
        for machine in held.all("Machine")
        if machine["spec"].get("providerID")
    }


def history(held: MemoryApi) -> list[str]:
    """The versions the control plane has gone through, newest first."""
    cluster = held.get("HostedCluster", "c")
    assert cluster is not None
    return [str(entry["version"]) for entry in cluster["status"]["version"]["history"]]

"""Faults that are planted, and what HyperShift refuses although its CRDs do not: on stepped time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from boatyard.fakes.hypershift.decision import decide_cluster
from boatyard.fakes.hypershift.faults import ControlFile, FaultRule
from tests.support.kube_hub.hypershift_manifests import hosted_cluster, node_pool
from tests.support.kube_hub.memory_api import MemoryApi
from tests.support.kube_hub.memory_clusters import (
    DELETE_MACHINE,
    INSTANT,
    KUBEVIRT,
    NUMBER,
    REALISTIC,
    VMS,
    hosts_of,
    message,
    one_cluster,
    ready,
    reason,
    said,
)

Object = dict[str, Any]


# --- planted ----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["annotation", "file"])
def test_a_blocked_cluster_never_gets_available_and_says_why(by: str) -> None:
    rules = (FaultRule("HostedCluster", "blocked", "QuotaExceeded", name="c*"),)
    held = one_cluster(replace(INSTANT, control=ControlFile(rules)) if by == "file" else INSTANT)
    if by == "annotation":
        held.plant("HostedCluster", "c", "blocked=QuotaExceeded")
    held.rest()
    cluster = held.get("HostedCluster", "c")
    assert said(cluster)["Available"] == "False"
    assert reason(cluster, "InfrastructureReady") == "QuotaExceeded"
    assert reason(cluster, "Available") == "QuotaExceeded"
    assert held.all("Machine") == []

    held.manner = INSTANT
    held.plant("HostedCluster", "c", None)
    held.settle()

    assert ready(held)


def test_an_unsupported_cluster_is_not_begun() -> None:
    held = one_cluster()
    held.plant("HostedCluster", "c", "unsupported")
    held.rest()

    cluster = held.get("HostedCluster", "c")
    assert said(cluster)["SupportedHostedCluster"] == "False"
    assert reason(cluster, "Progressing") == "Blocked"
    assert held.get("Namespace", "t-c") is None


def test_an_api_server_that_is_down_comes_back() -> None:
    held = one_cluster()
    held.settle()
    held.plant("HostedCluster", "c", "down")
    held.settle()
    cluster = held.get("HostedCluster", "c")
    assert said(cluster)["Available"] == "False"
    assert said(cluster)["KubeAPIServerAvailable"] == "False"
    assert said(cluster)["EtcdAvailable"] == "True"

    held.plant("HostedCluster", "c", None)
    held.settle()

    assert said(held.get("HostedCluster", "c"))["Available"] == "True"


def test_a_degraded_cluster_is_available_all_the_same() -> None:
    held = one_cluster()
    held.plant("HostedCluster", "c", "degraded")
    held.settle()

    cluster = held.get("HostedCluster", "c")
    assert said(cluster)["Degraded"] == "True"
    assert said(cluster)["Available"] == "True"
    held.plant("HostedCluster", "c", None)
    held.settle()
    assert said(held.get("HostedCluster", "c"))["Degraded"] == "False"


def test_slow_is_slow_at_every_pace() -> None:
    held = one_cluster()
    held.plant("HostedCluster", "c", "slow=7")

    took = held.until(lambda: said(held.get("HostedCluster", "c")).get("Available") == "True")

    assert took >= 5 * 7


def test_a_slow_pool_is_slow_alone() -> None:
    held = one_cluster()
    held.plant("NodePool", "p", "slow=9")

    assert held.until(lambda: said(held.get("HostedCluster", "c")).get("Available") == "True") == 0
    assert held.until(lambda: ready(held)) >= 9


@pytest.mark.parametrize("on", ["NodePool", "Machine"])
def test_a_node_that_never_joins(on: str) -> None:
    held = one_cluster(REALISTIC, replicas=3)
    if on == "NodePool":
        held.plant("NodePool", "p", "never-joins")
    else:
        held.until(lambda: len(held.all("Machine")) == 3)
        held.plant("Machine", held.all("Machine")[0]["metadata"]["name"], "never-joins", "t-c")
    held.rest()
    pool = held.get("NodePool", "p")
    assert pool is not None
    assert pool["status"]["replicas"] == 2
    assert reason(pool, "Ready") == "WaitingForAvailableMachines"
    assert reason(pool, "AllNodesHealthy") == "WaitingForNodeRef"
    assert "version" not in pool["status"]

    for machine in held.all("Machine"):
        held.plant("Machine", machine["metadata"]["name"], None, "t-c")
    held.plant("NodePool", "p", None)
    held.rest()

    assert ready(held)


def test_another_machine_leaves_than_the_one_named() -> None:
    held = one_cluster(replicas=3)
    held.plant("NodePool", "p", "wrong-machine")
    held.settle()
    newest = max(held.all("Machine"), key=lambda one: one["metadata"]["annotations"][NUMBER])
    name = newest["metadata"]["name"]
    held.edit("Machine", name, {"metadata": {"annotations": {DELETE_MACHINE: ""}}}, "t-c")

    held.edit("NodePool", "p", {"spec": {"replicas": 2}})
    held.settle()

    assert held.get("Machine", name, "t-c") is not None
    assert len(held.all("Machine")) == 2


@pytest.mark.parametrize(
    "kind, left",
    [
        pytest.param("HostedCluster", {"HostedCluster", "Namespace", "Secret"}, id="control plane"),
        pytest.param("NodePool", {"HostedCluster", "NodePool", "Machine"}, id="machines"),
    ],
)
def test_a_deletion_that_is_stuck_goes_on_when_it_is_freed(kind: str, left: set[str]) -> None:
    held = one_cluster()
    held.settle()
    name = {"HostedCluster": "c", "NodePool": "p"}[kind]
    held.plant(kind, name, "stuck-deletion")
    held.delete("HostedCluster", "c")
    held.rest()
    assert left <= {kind for kind, _, _ in held.held}

    held.plant(kind, name, None)
    held.settle()

    assert {kind for kind, _, _ in held.held} == {"Agent"}


def test_a_machine_alone_can_be_stuck() -> None:
    held = one_cluster()
    held.settle()
    machine = held.all("Machine")[0]["metadata"]["name"]
    held.plant("Machine", machine, "stuck-deletion", "t-c")
    held.edit("NodePool", "p", {"spec": {"replicas": 0}})
    held.rest()

    assert [one["metadata"]["name"] for one in held.all("Machine")] == [machine]


def test_a_lost_agent_makes_its_node_unhealthy_until_it_is_heard_of() -> None:
    held = one_cluster()
    held.settle()
    held.plant("Agent", "a0", "lost", "hosts")
    held.settle()
    pool, lost = held.get("NodePool", "p"), held.get("Agent", "a0", "hosts")
    assert lost is not None
    assert lost["status"]["debugInfo"]["state"] == "disconnected"
    assert said(lost)["Connected"] == "False"
    assert reason(pool, "AllNodesHealthy") == "NodeConditionsFailed"
    assert pool is not None
    assert pool["status"]["replicas"] == 1

    held.plant("Agent", "a0", None, "hosts")
    held.settle()

    assert ready(held)


def test_a_lost_agent_that_is_heard_of_again_is_not_installed_again() -> None:
    held = one_cluster(REALISTIC)
    held.until(lambda: ready(held))
    held.plant("Agent", "a0", "lost", "hosts")
    held.settle()
    held.plant("Agent", "a0", None, "hosts")

    assert held.until(lambda: ready(held)) == 0
    found = held.get("Agent", "a0", "hosts")
    assert found is not None
    assert found["status"]["debugInfo"]["state"] == "added-to-existing-cluster"


def test_a_lost_agent_is_taken_by_nobody() -> None:
    held = one_cluster(replicas=0)
    held.settle()
    held.plant("Agent", "a0", "lost", "hosts")
    held.edit("NodePool", "p", {"spec": {"replicas": 1}})
    held.settle()

    assert hosts_of(held) == {"a1"}


def test_an_agent_that_is_deleted_takes_its_node_along() -> None:
    held = one_cluster()
    held.settle()
    held.delete("Agent", "a0", "hosts")
    held.settle()

    assert reason(held.get("NodePool", "p"), "AllNodesHealthy") == "NodeNotFound"
    held.edit("NodePool", "p", {"spec": {"replicas": 1}})
    held.settle()
    # The sick one goes before the newest.
    assert ready(held)
    assert hosts_of(held) == {"a1"}


# --- what HyperShift refuses ------------------------------------------------------------------

ROUTES = [
    {
        "service": service,
        "servicePublishingStrategy": {"type": "Route", "route": {"hostname": "same.example"}},
    }
    for service in ("APIServer", "OAuthServer", "Konnectivity", "Ignition")
]
OVERLAPPING = {
    "clusterNetwork": [{"cidr": "10.0.0.0/8"}],
    "serviceNetwork": [{"cidr": "10.1.0.0/16"}],
}


@pytest.mark.parametrize(
    "spec, field",
    [
        pytest.param({"platform": {"type": "Agent"}}, "spec.platform.agent", id="no agents"),
        pytest.param({"platform": {"type": "KubeVirt"}}, "spec.platform.kubevirt", id="no VMs"),
        pytest.param({"platform": {"type": "AWS"}}, "spec.platform.type", id="not played"),
        pytest.param({"services": ROUTES}, "same.example", id="one name for all"),
        pytest.param(
            {"services": ROUTES[:1] * 4}, "APIServer is published 4 times", id="one service"
        ),
        pytest.param({"networking": OVERLAPPING}, "spec.networking", id="networks overlap"),
        pytest.param(
            {"secretEncryption": {"type": "aescbc"}}, "spec.secretEncryption.aescbc", id="no key"
        ),
    ],
)
def test_what_the_crd_lets_pass_is_invalid_configuration(spec: Object, field: str) -> None:
    held = MemoryApi(INSTANT, hosted_cluster("t", "c", **spec))
    held.settle()

    cluster = held.get("HostedCluster", "c")
    assert said(cluster)["ValidConfiguration"] == "False"
    assert field in message(cluster, "ValidConfiguration")
    assert reason(cluster, "Progressing") == "Blocked"
    assert said(cluster)["Available"] == "False"
    assert held.get("Namespace", "t-c") is None


def test_a_namespace_that_would_be_too_long_is_invalid_configuration() -> None:
    name = "c" * 62
    held = MemoryApi(INSTANT, hosted_cluster("t", name))
    held.settle()

    assert said(held.get("HostedCluster", name))["ValidConfiguration"] == "False"


def test_a_running_cluster_with_a_wrong_change_goes_on_running() -> None:
    held = one_cluster()
    held.settle()
    held.edit("HostedCluster", "c", {"spec": {"secretEncryption": {"type": "kms"}}})
    held.settle()

    cluster = held.get("HostedCluster", "c")
    assert said(cluster)["ValidConfiguration"] == "False"
    assert said(cluster)["Available"] == "True"


@pytest.mark.parametrize(
    "keys, why",
    [
        pytest.param(None, "there is no Secret", id="missing"),
        pytest.param(frozenset({"other"}), "no key .dockerconfigjson", id="another key"),
    ],
)
def test_a_pull_secret_is_needed(keys: frozenset[str] | None, why: str) -> None:
    held = one_cluster()
    held.edit(
        "HostedCluster", "c", {"metadata": {"finalizers": ["hypershift.openshift.io/finalizer"]}}
    )
    held.edit("HostedCluster", "c", {"spec": {"infraID": "c-1", "clusterID": "x"}})
    seen = replace(held.see("t", "c"), pools=(), input_keys={"pull": keys})
    decision = decide_cluster(seen, INSTANT, held.now)
    held.carry_out(decision)

    cluster = held.get("HostedCluster", "c")
    assert reason(cluster, "ValidReleaseImage") == "SecretNotFound"
    assert why in message(cluster, "ValidReleaseImage")
    assert decision.next_check is not None


@pytest.mark.parametrize(
    "spec, platform",
    [
        pytest.param(
            {"platform": {"type": "KubeVirt", "kubevirt": {}}}, KUBEVIRT, id="no root volume"
        ),
        pytest.param(
            {"platform": VMS},
            {"type": "Agent", "agent": {"agentNamespace": "hosts"}},
            id="VMs among hosts",
        ),
    ],
)
def test_a_pool_that_makes_no_machines(spec: Object, platform: Object) -> None:
    held = MemoryApi(
        INSTANT, hosted_cluster("t", "c", platform=platform), node_pool("t", "p", "c", 1, **spec)
    )
    held.settle()

    assert said(held.get("NodePool", "p"))["ValidMachineTemplate"] == "False"
    assert held.all("Machine") == []

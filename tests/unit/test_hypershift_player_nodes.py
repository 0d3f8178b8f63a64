"""The player's decisions on stepped time: machines, agents, and changes of version."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.fakes.hypershift.agents import is_free
from boatyard.fakes.hypershift.faults import ControlFile
from boatyard.fakes.hypershift.snapshot import FakeSettings
from boatyard.fakes.hypershift.stage_delays import StageDelays
from tests.support.kube_hub.hypershift_manifests import RELEASE, agent, hosted_cluster, node_pool
from tests.support.kube_hub.memory_api import MemoryApi
from tests.support.kube_hub.memory_clusters import (
    DELETE_MACHINE,
    INSTANT,
    KUBEVIRT,
    NUMBER,
    REALISTIC,
    VMS,
    complete,
    history,
    hosts_of,
    message,
    one_cluster,
    ready,
    reason,
    said,
)

Object = dict[str, Any]


# --- nodes ------------------------------------------------------------------------------------


def test_machines_take_agents_that_the_selector_fits() -> None:
    held = MemoryApi(
        INSTANT,
        hosted_cluster("t", "c"),
        node_pool("t", "p", "c", 2),
        agent("a0", size="large"),
        agent("a1", approved=False),
        *(agent(f"a{number}") for number in (2, 3, 4)),
    )
    held.settle()

    assert hosts_of(held) == {"a2", "a3"}
    pool = held.get("NodePool", "p")
    assert pool is not None
    assert pool["status"]["replicas"] == 2
    machine = held.all("Machine")[0]
    assert machine["status"]["nodeRef"]["name"].startswith("host-a")
    bound = held.get("Agent", "a2", "hosts")
    assert bound is not None
    assert bound["spec"]["clusterDeploymentName"] == {"namespace": "t-c", "name": "c"}
    assert bound["status"]["debugInfo"]["state"] == "added-to-existing-cluster"


def test_a_machine_without_an_agent_waits_for_one() -> None:
    held = one_cluster(agents=1)
    held.settle()
    pool = held.get("NodePool", "p")
    assert pool is not None
    assert pool["status"]["replicas"] == 1
    assert reason(pool, "AllMachinesReady") == "NoSuitableAgents"

    held.put(agent("late"))
    held.settle()

    assert ready(held)


def test_two_clusters_never_share_an_agent() -> None:
    held = MemoryApi(
        INSTANT,
        hosted_cluster("t", "c"),
        hosted_cluster("t", "d"),
        node_pool("t", "p", "c", 2),
        node_pool("t", "q", "d", 2),
        *(agent(f"a{number}") for number in range(3)),
    )
    held.settle()

    owners = [one["metadata"].get("labels", {}).get("agentMachineRef") for one in held.all("Agent")]
    assert len(set(owners)) == 3
    assert len(hosts_of(held)) == 3


def test_a_pool_grows() -> None:
    held = one_cluster()
    held.settle()
    first = hosts_of(held)

    held.edit("NodePool", "p", {"spec": {"replicas": 4}})
    held.settle()

    assert ready(held)
    assert first < hosts_of(held)


def test_the_machine_that_is_named_leaves_first() -> None:
    held = one_cluster(replicas=3)
    held.settle()
    oldest = min(held.all("Machine"), key=lambda one: one["metadata"]["annotations"][NUMBER])
    name = oldest["metadata"]["name"]
    host = oldest["spec"]["providerID"].removeprefix("agent://")
    held.edit("Machine", name, {"metadata": {"annotations": {DELETE_MACHINE: "yes"}}}, "t-c")

    held.edit("NodePool", "p", {"spec": {"replicas": 2}})
    held.settle()

    assert held.get("Machine", name, "t-c") is None
    assert host not in hosts_of(held)
    freed = held.get("Agent", host, "hosts")
    assert freed is not None
    assert "clusterDeploymentName" not in freed["spec"]
    assert freed["status"]["debugInfo"]["state"] == "known-unbound"


def test_else_the_newest_machine_leaves() -> None:
    held = one_cluster(replicas=3)
    held.settle()

    held.edit("NodePool", "p", {"spec": {"replicas": 2}})
    held.settle()

    numbers = {one["metadata"]["annotations"][NUMBER] for one in held.all("Machine")}
    assert numbers == {"1", "2"}


def test_no_machine_name_is_given_twice() -> None:
    held, names = one_cluster(), set[str]()
    for replicas in (2, 0, 2, 1, 3):
        held.edit("NodePool", "p", {"spec": {"replicas": replicas}})
        held.settle()
        names |= {one["metadata"]["name"] for one in held.all("Machine")}

    assert len(names) == 2 + 2 + 2


def test_a_machine_that_somebody_deletes_is_replaced() -> None:
    held = one_cluster()
    held.settle()
    gone = held.all("Machine")[0]["metadata"]["name"]
    held.delete("Machine", gone, "t-c")

    held.settle()

    assert ready(held)
    assert gone not in {one["metadata"]["name"] for one in held.all("Machine")}


def test_a_machine_that_was_given_two_agents_keeps_one() -> None:
    held = one_cluster(replicas=1)
    held.settle()
    machine = held.all("Machine")[0]
    # What a killed player may leave behind: its last write arrives after the next one has looked.
    marks = {"labels": {"agentMachineRef": machine["metadata"]["uid"]}}
    bound = {"clusterDeploymentName": {"namespace": "t-c", "name": "c"}}
    held.edit("Agent", "a3", {"metadata": marks, "spec": bound}, "hosts")

    held.settle()

    other = held.get("Agent", "a3", "hosts")
    assert other is not None
    assert other["status"]["debugInfo"]["state"] == "known-unbound"
    assert hosts_of(held) == {"a0"}


def test_an_agents_label_taken_off_by_hand_changes_nothing() -> None:
    held = one_cluster(replicas=1)
    held.settle()
    held.edit("Agent", "a0", {"metadata": {"labels": {"agentMachineRef": None}}}, "hosts")

    held.settle()

    assert ready(held)
    assert hosts_of(held) == {"a0"}


def test_a_sick_node_is_repaired_where_that_is_asked_for() -> None:
    management = {"upgradeType": "InPlace", "autoRepair": True}
    held = one_cluster(REALISTIC, management=management)
    held.until(lambda: ready(held))
    held.plant("Agent", "a0", "lost", "hosts")
    held.settle()
    assert not ready(held)

    took = held.until(lambda: ready(held))

    assert took > 600
    assert "a0" not in hosts_of(held)


def test_agents_of_another_namespace_are_not_taken() -> None:
    held = MemoryApi(
        INSTANT, hosted_cluster("t", "c"), node_pool("t", "p", "c", 1), agent("a", namespace="x")
    )
    held.settle()

    assert hosts_of(held) == set()


def test_pools_of_one_cluster_take_different_agents_at_once() -> None:
    held = MemoryApi(
        INSTANT,
        hosted_cluster("t", "c"),
        node_pool("t", "p", "c", 2),
        node_pool("t", "q", "c", 2),
        *(agent(f"a{number}") for number in range(4)),
    )
    held.settle()

    assert len(hosts_of(held)) == 4
    assert held.conflicts == 0


def test_many_sick_nodes_are_not_repaired() -> None:
    held = one_cluster(
        REALISTIC, replicas=3, agents=6, management={"upgradeType": "InPlace", "autoRepair": True}
    )
    held.until(lambda: ready(held))
    for number in range(3):
        held.plant("Agent", f"a{number}", "lost", "hosts")
    held.rest()

    assert hosts_of(held) == {"a0", "a1", "a2"}


@pytest.mark.parametrize(
    "change, free",
    [
        pytest.param({}, True, id="free"),
        pytest.param({"spec": {"approved": False}}, False, id="not approved"),
        pytest.param({"spec": {"clusterDeploymentName": {"name": "x"}}}, False, id="bound"),
        pytest.param({"metadata": {"labels": {"agentMachineRef": "x"}}}, False, id="taken"),
        pytest.param({"status": {"debugInfo": {"state": "known"}}}, False, id="another state"),
        pytest.param({"status": {"conditions": []}}, False, id="not validated"),
    ],
)
def test_an_agent_that_may_be_taken(change: Object, free: bool) -> None:
    held = MemoryApi(INSTANT, agent("a"))
    held.settle()
    held.edit("Agent", "a", change, "hosts")

    found = held.get("Agent", "a", "hosts")
    assert found is not None
    assert is_free(found) is free


# --- versions ---------------------------------------------------------------------------------


def image(version: str) -> Object:
    return {"spec": {"release": {"image": f"{RELEASE}:{version}-multi"}}}


def versions(held: MemoryApi) -> list[str]:
    return sorted(one["spec"]["version"] for one in held.all("Machine"))


def test_the_control_plane_first_and_then_its_nodes() -> None:
    held = one_cluster(REALISTIC)
    held.until(lambda: ready(held) and complete(held))
    held.edit("NodePool", "p", image("4.19.1"))
    held.settle()
    pool = held.get("NodePool", "p")
    assert reason(pool, "ValidReleaseImage") == "ValidationFailed"
    assert said(pool)["SupportedVersionSkew"] == "False"
    assert versions(held) == ["4.18.2", "4.18.2"]

    held.edit("HostedCluster", "c", image("4.19.1"))
    held.settle()
    cluster = held.get("HostedCluster", "c")
    assert said(cluster)["Progressing"] == "True"
    assert said(cluster)["Available"] == "True"
    took = held.until(lambda: complete(held))
    assert took > 600
    assert history(held) == ["4.19.1", "4.18.2"]
    held.until(lambda: versions(held) == ["4.19.1", "4.19.1"])
    held.settle()
    pool = held.get("NodePool", "p")
    assert pool is not None
    assert pool["status"]["version"] == "4.19.1"


def test_in_place_one_node_after_the_other() -> None:
    held = one_cluster(REALISTIC, replicas=3)
    held.until(lambda: ready(held) and complete(held))
    held.edit("HostedCluster", "c", image("4.18.9"))
    held.until(lambda: complete(held))
    names = {one["metadata"]["name"] for one in held.all("Machine")}
    held.edit("NodePool", "p", image("4.18.9"))
    seen: list[list[str]] = []

    def updated() -> bool:
        marks = [one["metadata"]["annotations"] for one in held.all("Machine")]
        assert sum("player.boatyard.io/updating-since" in one for one in marks) <= 1
        seen.append(versions(held))
        return seen[-1] == ["4.18.9"] * 3

    held.until(updated)

    old, new = "4.18.2", "4.18.9"
    assert [old, old, new] in seen
    assert [old, new, new] in seen
    assert {one["metadata"]["name"] for one in held.all("Machine")} == names


def test_replaced_one_more_than_wanted_and_never_fewer() -> None:
    management = {"upgradeType": "Replace"}
    held = MemoryApi(
        REALISTIC,
        hosted_cluster("t", "c", platform=KUBEVIRT),
        node_pool("t", "p", "c", 3, platform=VMS, management=management),
    )
    held.until(lambda: ready(held) and complete(held))
    held.edit("HostedCluster", "c", image("4.19.0"))
    held.until(lambda: complete(held))
    before = {one["metadata"]["name"] for one in held.all("Machine")}
    held.edit("NodePool", "p", image("4.19.0"))
    counts: set[int] = set()

    def replaced() -> bool:
        alive = [one for one in held.all("Machine") if "deletionTimestamp" not in one["metadata"]]
        healthy = [one for one in alive if said(one).get("NodeHealthy") == "True"]
        counts.add(len(alive))
        assert len(healthy) >= 3
        return {one["spec"]["version"] for one in held.all("Machine")} == {"4.19.0"} and ready(held)

    held.until(replaced)

    assert counts == {3, 4}
    assert not before & {one["metadata"]["name"] for one in held.all("Machine")}


@pytest.mark.parametrize(
    "version, why",
    [
        pytest.param("4.13.1", "supported are 5.1, 5.0, 4.22", id="too old"),
        pytest.param("6.0.0", "supported are", id="too new"),
        pytest.param("4.17.9", "a downgrade", id="downgrade"),
    ],
)
def test_a_version_that_is_refused_leaves_the_cluster_running(version: str, why: str) -> None:
    held = one_cluster()
    held.settle()
    held.edit("HostedCluster", "c", image(version))
    held.rest()

    cluster = held.get("HostedCluster", "c")
    assert cluster is not None
    assert reason(cluster, "ValidReleaseImage") == "InvalidImage"
    assert why in message(cluster, "ValidReleaseImage")
    assert said(cluster)["Available"] == "True"
    assert cluster["status"]["version"]["desired"]["version"] == "4.18.2"


def test_an_image_without_a_version_is_refused_unless_the_file_names_it() -> None:
    digest = f"{RELEASE}@sha256:{'0' * 64}"
    held = MemoryApi(INSTANT, hosted_cluster("t", "c", release={"image": digest}))
    held.settle()
    assert reason(held.get("HostedCluster", "c"), "ValidReleaseImage") == "InvalidImage"

    held.manner = FakeSettings(StageDelays(0.0), ControlFile(releases={digest: "4.20.1"}))
    held.settle()

    cluster = held.get("HostedCluster", "c")
    assert cluster is not None
    assert cluster["status"]["version"]["desired"]["version"] == "4.20.1"


def test_an_upgrade_can_be_stuck_without_harm_to_what_runs() -> None:
    held = one_cluster()
    held.settle()
    held.plant("HostedCluster", "c", "stuck-upgrade")
    held.edit("HostedCluster", "c", image("4.19.1"))
    held.rest()

    cluster = held.get("HostedCluster", "c")
    assert said(cluster)["ClusterVersionSucceeding"] == "False"
    assert said(cluster)["Available"] == "True"
    assert not complete(held)

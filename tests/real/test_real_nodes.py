"""Two real nodes: pods run, find each other, are spoken to, and survive what kills their keepers."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from boatyard.platforms.drivers.local import real
from boatyard.processes.marked_processes import find_processes
from tests.real.cluster import GATEWAY, NamespacedCluster, wait
from tests.real.leftovers import find_leftovers

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def web(cluster: NamespacedCluster) -> str:
    """A deployment of four, two on each node."""
    cluster.deploy("web", 4)
    return "web"


def test_both_nodes_are_ready_and_of_the_right_version(cluster: NamespacedCluster) -> None:
    nodes = cluster.get("nodes")["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["n1", "n2"]
    for node in nodes:
        assert node["status"]["nodeInfo"]["kubeletVersion"] == f"v{cluster.programs.name}"
        assert node["metadata"]["labels"]["boatyard.example/number"] in "12"


def test_pods_of_different_nodes_talk_to_each_other(cluster: NamespacedCluster, web: str) -> None:
    one, two = (cluster.pods(web)[node] for node in ("n1", "n2"))
    for here, there in ((one[0], two[0]), (two[0], one[0]), (one[0], one[1])):
        assert cluster.fetch(here, f"{there['status']['podIP']}:8080") == name(there)


def test_logs_and_exec_reach_the_pods_of_every_node(cluster: NamespacedCluster, web: str) -> None:
    for pods in cluster.pods(web).values():
        assert cluster.kubectl("logs", name(pods[0])) == "serving\n"
        assert cluster.kubectl("exec", name(pods[0]), "--", "hostname") == f"{name(pods[0])}\n"


def test_a_services_address_leads_to_its_pods_from_every_node(
    cluster: NamespacedCluster, web: str
) -> None:
    address = cluster.expose(web)
    pods = cluster.pods(web)
    everybody = {name(pod) for group in pods.values() for pod in group}
    for here in (pods["n1"][0], pods["n2"][0]):
        # Also itself: the way back leads through the node in every case.
        answers: set[str] = set()
        wait(
            f"answer of all behind {address} to {name(here)}",
            lambda a=answers, h=here: a.update([cluster.fetch(h, address)]) or a >= everybody,  # type: ignore[misc]
            lambda a=answers: str(a),  # type: ignore[misc]
        )
        assert answers <= {*everybody, ""}


def test_the_cluster_itself_has_an_address_inside(cluster: NamespacedCluster, web: str) -> None:
    pod = cluster.pods(web)["n2"][0]
    for address in ("10.96.0.1 443", f"{GATEWAY} 6443"):
        words = f"timeout 5 nc {address} < /dev/null && echo reached"
        assert cluster.kubectl("exec", name(pod), "--", "sh", "-c", words) == "reached\n"


def test_no_pod_reaches_the_world(cluster: NamespacedCluster, web: str) -> None:
    pod = cluster.pods(web)["n1"][0]
    words = "timeout 3 nc 192.0.2.1 80 < /dev/null && echo reached || echo not"
    assert cluster.kubectl("exec", name(pod), "--", "sh", "-c", words) == "not\n"


def test_nothing_of_it_shows_on_the_machine(cluster: NamespacedCluster, web: str) -> None:
    left = find_leftovers(cluster.slug, cluster.folder)
    assert [line for line in left if line.startswith(("veth", "bridge"))] == []
    mounts = {line for line in left if line.startswith("mount")}
    assert mounts == {f"mount /run/netns/by-test1{end}" for end in ("", "-n1", "-n2")}


@pytest.mark.parametrize("component", ["kubelet", "containerd", "kube-proxy"])
def test_pods_survive_the_death_of(cluster: NamespacedCluster, web: str, component: str) -> None:
    before = running(cluster, web)
    cluster.kill_component("n1", component)
    cluster.start_component(cluster.nodes["n1"], component)
    cluster.wait_node_ready("n1")
    exec_works(cluster, web, "n1")
    assert running(cluster, web) == before


def test_pods_survive_the_death_of_all_programs_of_their_node(
    cluster: NamespacedCluster, web: str
) -> None:
    before = running(cluster, web)
    names = [component.name for component in real.list_programs(cluster.nodes["n1"])]
    for component in names:
        cluster.kill_component("n1", component)
    for component in names:
        cluster.start_component(cluster.nodes["n1"], component)
    cluster.wait_node_ready("n1")
    exec_works(cluster, web, "n1")
    assert running(cluster, web) == before


def test_who_keeps_a_node_may_prepare_it_again_while_it_runs(
    cluster: NamespacedCluster, web: str
) -> None:
    before = running(cluster, web)
    asyncio.run(real.prepare_segment(cluster.slug, f"{GATEWAY}/24"))
    for node in cluster.nodes.values():
        asyncio.run(real.prepare_node(node))
    one, two = (cluster.pods(web)[node][0] for node in ("n1", "n2"))
    assert cluster.fetch(one, f"{two['status']['podIP']}:8080") == name(two)
    assert running(cluster, web) == before


def test_another_kubelet_takes_over_without_a_reboot_of_the_node(
    cluster: NamespacedCluster, web: str
) -> None:
    before = running(cluster, web)
    other = cluster.folder / "other" / "kubelet"
    other.parent.mkdir()
    shutil.copy(cluster.programs / "kubelet", other)
    node = cluster.nodes["n2"] = replace(cluster.nodes["n2"], kubelet=other)
    asyncio.run(real.prepare_node(node))
    cluster.kill_component("n2", "kubelet")
    cluster.start_component(node, "kubelet")
    (pid,) = (
        process.pid
        for group in find_processes(f"{cluster.mark}/n2/kubelet").values()
        for process in group
    )
    assert os.readlink(f"/proc/{pid}/exe") == str(other)
    exec_works(cluster, web, "n2")
    assert running(cluster, web) == before


def test_a_node_that_stands_still_says_nothing_and_goes_on(
    cluster: NamespacedCluster, web: str
) -> None:
    before = running(cluster, web)
    kubelet = real.list_programs(cluster.nodes["n2"])[1]
    asyncio.run(real.freeze_node(cluster.slug, "n2", frozen=True))
    try:
        assert not asyncio.run(is_ready(kubelet))
    finally:
        asyncio.run(real.freeze_node(cluster.slug, "n2", frozen=False))
    wait("kubelet", lambda: asyncio.run(is_ready(kubelet)))
    exec_works(cluster, web, "n2")
    assert running(cluster, web) == before


def test_after_a_power_cut_a_node_runs_its_pods_anew(cluster: NamespacedCluster, web: str) -> None:
    node = cluster.nodes["n1"]
    before = running(cluster, web)
    # Pods are no children of ours and carry no mark: they run on, watched by nobody.
    for component in real.list_programs(node):
        cluster.kill_component("n1", component.name)
    for pid in said("pgrep", "-f", "containerd-shim-runc").split():
        if real.node_name(cluster.slug, "n1") in group_of(pid):
            subprocess.run(["kill", "-9", pid], check=True)
    orphans = [
        pid for pid in said("pgrep", "-f", "httpd").split() if "by-test1-n1" in group_of(pid)
    ]
    assert orphans
    for component in real.list_programs(node):
        cluster.start_component(node, component.name)
    cluster.wait_node_ready("n1")
    for pid in orphans:
        wait(f"the end of orphan {pid}", lambda p=pid: "by-test1-n1" not in group_of(p))  # type: ignore[misc]
    wait("new containers", lambda: has_new(before, running(cluster, web)), cluster.logs)
    cluster.wait_rolled_out(web)
    exec_works(cluster, web, "n1")


def test_orphans_of_a_pods_containers_are_buried(cluster: NamespacedCluster) -> None:
    """Containers that share their processes leave their orphans to the pause container."""
    cluster.deploy("shared", 1, shareProcessNamespace=True)
    (pod,) = next(iter(cluster.pods("shared").values()))
    words = "sh -c 'sleep 0.1 & exit' & sleep 0.5; ps -o stat | grep -c Z"
    found = cluster.kubectl("exec", name(pod), "--", "sh", "-c", words, check=False)
    assert found.startswith("0")
    cluster.kubectl("delete", "deployment", "shared")


def test_a_drained_node_has_no_pods_and_the_others_have_them(
    cluster: NamespacedCluster, web: str
) -> None:
    began = time.monotonic()
    cluster.kubectl("drain", "n1", "--timeout=60s")
    cluster.seconds["drain"] = time.monotonic() - began
    cluster.wait_rolled_out(web)
    assert {node: len(pods) for node, pods in cluster.pods(web).items()} == {"n2": 4}
    cluster.kubectl("uncordon", "n1")


def test_a_node_that_leaves_takes_everything_along_and_the_others_stay(
    cluster: NamespacedCluster, web: str
) -> None:
    node = cluster.nodes.pop("n1")
    cluster.kubectl("delete", "node", "n1")
    asyncio.run(real.clean_node(cluster.slug, "n1", node.directory))
    assert asyncio.run(real.list_nodes(cluster.slug)) == ["n2"]
    assert not node.directory.exists()
    routes = said("ip", "-n", real.segment_name(cluster.slug), "route")
    assert node.pod_cidr not in routes
    exec_works(cluster, web, "n2")


@pytest.fixture(scope="module", autouse=True)
def times(cluster: NamespacedCluster) -> Iterator[None]:
    """Shows with -s what took how long."""
    yield
    for what, seconds in cluster.seconds.items():
        print(f"{what:<20} {seconds:6.2f} s")


def exec_works(cluster: NamespacedCluster, web: str, node: str) -> None:
    """Through kubelet, containerd and a shim."""
    pod = cluster.pods(web)[node][0]
    words = ("exec", name(pod), "--", "echo", "alive")
    wait(f"exec on {node}", lambda: cluster.kubectl(*words, check=False) == "alive\n", cluster.logs)


def running(cluster: NamespacedCluster, web: str) -> dict[str, tuple[str, int]]:
    """By pod its container, and how often that was started."""
    return {
        name(pod): (status["containerID"], status["restartCount"])
        for pods in cluster.pods(web).values()
        for pod in pods
        for status in pod["status"]["containerStatuses"]
    }


def has_new(before: dict[str, Any], now: dict[str, Any]) -> bool:
    return any(now.get(pod) != container for pod, container in before.items())


async def is_ready(component: real.NodeProgram) -> bool:
    return await component.is_ready()


def group_of(pid: str) -> str:
    return said("cat", f"/proc/{pid}/cgroup")


def name(pod: Any) -> str:
    found: str = pod["metadata"]["name"]
    return found


def said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=30).stdout

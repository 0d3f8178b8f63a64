"""Real nodes in the hands of the keeper: they follow an upgrade, sleep and wake with their cluster, and go with it."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from boatyard.kube.kinds import NODES, PODS
from boatyard.model.errors import BoatyardError
from boatyard.platforms.drivers.local import real
from boatyard.platforms.drivers.local.records import slug_of
from boatyard.platforms.port import RestMode
from tests.support.assets import needs_assets
from tests.support.real_clusters.environment import LocalEnvironment, local_environment, until
from tests.support.real_clusters.local_cluster import (
    NEW,
    OLD,
    LocalCluster,
    control_groups,
    directory_mark,
    marks,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

ORDER = "real-1"
SLUG = slug_of(f"{ORDER}/cluster")
SLOTS = ("compute-0", "compute-1")
LONG = 300.0
KUBELET, PROXY, CONTAINERD = "kubelet", "kube-proxy", "containerd"


@pytest_asyncio.fixture
async def environment(machine: None) -> AsyncIterator[LocalEnvironment]:
    try:
        async with local_environment(needs_assets(OLD, NEW), words=["--real-nodes"]) as environment:
            yield environment
    finally:  # also of one that was not released
        for name in await real.list_nodes(SLUG):
            await real.clean_node(SLUG, name, environment.directory / name)
        await real.clean_segment(SLUG)


class RealCluster(LocalCluster):
    """Two nodes, and a pod on each."""

    def parts(self) -> dict[str, int]:
        """The pid of each program of each node; fails when one is there twice."""
        pids: dict[str, int] = {}
        start = f"{directory_mark(self.environment.keeper.directory)}/{self.slug}-nodes/"
        mark_by_pid = dict(marks())
        for pid, mark in mark_by_pid.items():
            # kube-proxy runs programs of its own for a moment; they inherit its mark,
            # and may have ended since the marks were read.
            if mark.startswith(start) and (ppid := parent(pid)) and mark_by_pid.get(ppid) != mark:
                part = "/".join(mark.split("/")[2:4])
                assert part not in pids, f"{part} is there twice"
                pids[part] = pid
        return pids

    async def versions(self) -> dict[str, str]:
        """Of the nodes that are ready."""
        found = {}
        async with self.api() as api:
            for node in (await api.list(NODES)).items:
                if any(
                    c["type"] == "Ready" and c["status"] == "True"
                    for c in node["status"]["conditions"]
                ):
                    found[node["metadata"]["name"]] = node["status"]["nodeInfo"]["kubeletVersion"]
        return found

    async def run_pods(self) -> None:
        async with self.api() as api:
            for slot in SLOTS:
                await api.apply(PODS, slot, _pod(slot), "default")
        await until(self.pods_run, "both pods run")

    async def pods_run(self) -> bool:
        try:
            return len(await self.containers()) == len(SLOTS)
        except BoatyardError:
            return False

    async def containers(self) -> dict[str, str]:
        """Which containers run, by pod: another one after a restart."""
        found = {}
        async with self.api() as api:
            for pod in (await api.list(PODS, "default")).items:
                for status in pod["status"].get("containerStatuses", ()):
                    if "running" in status["state"]:
                        found[pod["metadata"]["name"]] = status["containerID"]
        return found


def parent(pid: int) -> int:
    """Of a process that lives; 0 when it does not."""
    try:
        state, number = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return 0
    return 0 if state == "Z" else int(number)


def _pod(slot: str) -> dict[str, Any]:
    container = {"name": "web", "image": "localhost/busybox:1", "command": ["sleep", "100000"]}
    return {
        "spec": {"nodeName": slot, "terminationGracePeriodSeconds": 1, "containers": [container]}
    }


async def a_cluster(environment: LocalEnvironment, version: str) -> RealCluster:
    cluster = RealCluster(environment, ORDER, version=version, parameters={"nodes": "real"})
    await cluster.ensure(seconds=LONG)
    for slot in SLOTS:
        await cluster.join(slot)
    await cluster.run_pods()
    return cluster


async def test_an_upgrade_reaches_the_nodes_and_their_pods_run_on(
    environment: LocalEnvironment,
) -> None:
    cluster = await a_cluster(environment, OLD)
    assert await cluster.versions() == dict.fromkeys(SLOTS, f"v{OLD}")
    before, containers = cluster.parts(), await cluster.containers()

    await cluster.ensure(version=NEW, seconds=LONG)
    assert await cluster.versions() == dict.fromkeys(SLOTS, f"v{NEW}")
    await until(lambda: len(cluster.parts()) == 6, "every program of the nodes runs")
    after = cluster.parts()
    for slot in SLOTS:
        assert after[f"{slot}/{CONTAINERD}"] == before[f"{slot}/{CONTAINERD}"]
        for part in (KUBELET, PROXY):
            place = os.readlink(f"/proc/{after[f'{slot}/{part}']}/exe")
            assert NEW in place, f"{part} of {slot} is {place}"
    assert await cluster.containers() == containers

    await environment.keeper.end(signal.SIGKILL)
    await environment.keeper.start()
    await cluster.ensure()
    assert cluster.parts() == after, "a new keeper replaces nobody who is as wanted"
    await cluster.release()
    assert control_groups(environment.keeper.directory, cluster.slug) == []


def bound_of_pods(slot: str) -> int:
    """How much memory the pods of a node may take together; 0 when nobody is in its group."""
    for place, file in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        group = Path("/sys/fs/cgroup", place, real.node_name(SLUG, slot))
        if (group / file).exists():
            pods = (group / "kubepods").rglob("cgroup.procs")
            return int((group / file).read_text()) if any(p.read_text() for p in pods) else 0
    return 0


async def test_nodes_sleep_and_wake_with_their_cluster(environment: LocalEnvironment) -> None:
    cluster = await a_cluster(environment, NEW)
    containers, parts = await cluster.containers(), cluster.parts()
    assert {bound_of_pods(slot) for slot in SLOTS} == {4 * 1024**3}

    await cluster.ensure(rest=RestMode.FROZEN)
    await cluster.ensure(rest=RestMode.AWAKE)
    await until(cluster.pods_run, "the pods run")
    assert await cluster.containers() == containers
    assert cluster.parts() == parts

    await cluster.ensure(rest=RestMode.STOPPED)
    assert cluster.parts() == {}
    assert [name for name in os.listdir("/run/netns") if cluster.slug in name] == []
    assert control_groups(environment.keeper.directory, cluster.slug) == []

    await cluster.ensure(rest=RestMode.AWAKE)

    async def all_ready() -> bool:
        return set(await cluster.versions()) == set(SLOTS) and await cluster.pods_run()

    await until(all_ready, "the nodes are ready and run their pods")
    await cluster.release()
    assert control_groups(environment.keeper.directory, cluster.slug) == []
    assert [name for name in os.listdir("/run/netns") if cluster.slug in name] == []

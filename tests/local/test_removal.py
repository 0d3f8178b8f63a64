"""What belongs to nobody any more is gone: processes, ports and files; and what belongs to others is left alone."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.local import allocation, components
from boatyard.platforms.drivers.local.records import ClusterRecord, ClusterRecords
from boatyard.platforms.port import DesiredCluster, RestMode
from tests.support.real_clusters.environment import LocalEnvironment, until
from tests.support.real_clusters.local_cluster import (
    WANTED,
    LocalCluster,
    control_groups,
    marked,
    marks,
)

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


def listening() -> str:
    return subprocess.run(["ss", "-Htlnp"], capture_output=True, text=True, check=True).stdout


def in_its_groups(cluster: LocalCluster) -> set[str]:
    """By whom the processes of a cluster are bounded: how the names of their groups begin."""
    found = set()
    for path in control_groups(cluster.environment.keeper.directory, cluster.slug):
        members = {int(pid) for pid in (Path(path) / "cgroup.procs").read_text().split()}
        if members == {pid for (pid,) in cluster.running().values()}:
            found.add(Path(path).name.partition("-")[0])
    return found


def owned_by(user: int) -> str:
    """Wherever such files may be."""
    places = [tempfile.gettempdir(), "/dev/shm", "/run"]
    words = ["find", *places, "-xdev", "-uid", str(user)]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


async def test_a_deleted_cluster_leaves_no_process_port_or_file(shared: LocalEnvironment) -> None:
    files = {path for path in shared.directory.rglob("*") if path.name != "keeper.log"}
    cluster = LocalCluster(shared, "order-1")
    await cluster.ensure()
    await cluster.join("compute-0")
    await cluster.put()
    await cluster.until_whole()
    record = cluster.record()
    assert all(f":{port} " in listening() for port in record["ports"].values())
    if os.geteuid() == 0:
        assert in_its_groups(cluster) == {"boatyard"}

    await cluster.release()

    assert cluster.running() == {}
    assert shared.inside() == []
    assert control_groups(shared.keeper.directory, cluster.slug) == []
    assert not any(f":{port} " in listening() for port in record["ports"].values())
    left = {path for path in shared.directory.rglob("*") if path.name != "keeper.log"} - files
    assert {path for path in left if "twin" not in path.parts} == set()
    if record["user"] is not None:
        assert owned_by(record["user"]) == ""


async def test_a_cluster_can_be_removed_before_it_was_ready(shared: LocalEnvironment) -> None:
    cluster = LocalCluster(shared, "order-2")
    await cluster.platform.ensure_cluster(cluster.key, cluster.wanted)
    await cluster.release()
    assert cluster.running() == {}
    assert not cluster.directory.exists()
    assert shared.inside() == []


def record_by_hand(cluster: LocalCluster, wanted: DesiredCluster) -> Mapping[str, int]:
    """A cluster that was ordered and not begun; its ports."""
    environment = cluster.environment
    records = ClusterRecords(environment.keeper.directory / "clusters")
    ports = allocation.choose_ports(components.port_names(1), records.used_ports, seed="x")
    records.save(
        ClusterRecord(
            key=cluster.key,
            slug=cluster.slug,
            hub="boston-1",
            wanted=wanted,
            user=allocation.choose_user(environment.directory, cluster.slug, ()),
            ports=ports,
            members=1,
            real=False,
            made_at=1.0,
        )
    )
    return ports


async def test_a_bug_in_one_pass_is_not_the_end(shared: LocalEnvironment) -> None:
    """Planted: a record that nobody could have asked for."""
    cluster = LocalCluster(shared, "order-7")
    await shared.keeper.end(signal.SIGKILL)
    record_by_hand(cluster, WANTED)
    await shared.keeper.start()
    await until(lambda: "internal error" in shared.keeper.log(), "the bug is in the log")
    await cluster.ensure()
    await cluster.release()


async def test_a_port_that_a_stranger_took_before_anybody_was_told_of_it_is_replaced(
    shared: LocalEnvironment,
) -> None:
    cluster = LocalCluster(shared, "order-3")
    await shared.keeper.end(signal.SIGKILL)
    wanted = replace(WANTED, service_cidr=allocation.SERVICE_CIDR, pod_cidr=allocation.POD_CIDR)
    ports = record_by_hand(cluster, wanted)
    with socket.create_server((allocation.LOOPBACK, ports["api"])):
        await shared.keeper.start()
        await cluster.ensure()
        assert cluster.record()["ports"] != ports
        await cluster.put()
    await cluster.release()


async def test_a_port_that_was_told_is_waited_for(shared: LocalEnvironment) -> None:
    cluster = LocalCluster(shared, "order-4")
    await cluster.ensure()
    before = await cluster.put()
    port = cluster.record()["ports"]["api"]
    await cluster.ensure(rest=RestMode.STOPPED)
    with socket.create_server((allocation.LOOPBACK, port)):
        cluster.wanted = WANTED

        async def told() -> bool:
            try:
                await cluster.platform.ensure_cluster(cluster.key, cluster.wanted)
            except Unavailable as error:
                return error.reason == "PortTaken" and str(port) in str(error)
            return False

        await until(told, "the port is named")
        seen = await cluster.platform.observe(cluster.key)
        assert not seen.available
        assert str(port) in seen.message
    await cluster.ensure()
    assert cluster.record()["ports"]["api"] == port
    assert await cluster.get() == before
    await cluster.release()


async def test_a_directory_has_one_keeper(shared: LocalEnvironment) -> None:
    second = await shared.keeper.spawn()
    assert second.stdout is not None
    assert await second.stdout.read() == b""
    assert await second.wait() == 1
    assert "another keeper holds" in shared.keeper.log()
    assert await shared.answers(), "the first is not disturbed"


async def test_processes_of_a_cluster_that_was_removed_by_hand_are_ended(
    shared: LocalEnvironment,
) -> None:
    cluster = LocalCluster(shared, "order-5")
    await cluster.ensure()
    await cluster.until_whole()
    await shared.keeper.end(signal.SIGKILL)
    shutil.rmtree(cluster.directory)
    with marked("another/yard/of/somebody") as stranger:
        await shared.keeper.start()
        await until(lambda: cluster.running() == {}, "nothing of it runs")
        assert stranger.pid in dict(marks()), "what belongs to others is left alone"
        assert not (await cluster.platform.observe(cluster.key)).exists

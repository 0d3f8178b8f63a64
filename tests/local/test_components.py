"""The parts of a control plane: one process each, and whoever is killed is there again within seconds."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest
import pytest_asyncio

from boatyard.kube.kinds import NODES
from boatyard.processes.logs import LONGEST_LOG
from tests.support.real_clusters.environment import LocalEnvironment, until
from tests.support.real_clusters.local_cluster import KINDS, LocalCluster, marked, marks

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(shared: LocalEnvironment) -> LocalCluster:
    cluster = LocalCluster(shared, "order-1")
    await cluster.ensure()
    await cluster.join("compute-0")
    await cluster.until_whole()
    return cluster


async def kill(cluster: LocalCluster, *kinds: str) -> None:
    """And waits until others are there in their place."""
    # Who lost its API server a moment ago may just be starting again.
    await cluster.until_whole()
    before = cluster.running()
    killed = {before[f"{kind}-0"][0] for kind in kinds}
    for pid in killed:
        with suppress(ProcessLookupError):  # has ended by itself since, and is started again too
            os.kill(pid, signal.SIGKILL)

    def replaced() -> bool:
        now = {pid for pids in cluster.running().values() for pid in pids}
        return cluster.is_whole() and not killed & now

    await until(replaced, f"{kinds} are started again", seconds=30)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_killed_component_is_started_again(cluster: LocalCluster, kind: str) -> None:
    before = await cluster.put(f"before-{kind}")
    await kill(cluster, kind)
    await cluster.ensure()
    assert await cluster.get(f"before-{kind}") == before


async def test_all_of_them_killed_at_once_come_back_with_their_nodes(cluster: LocalCluster) -> None:
    before = await cluster.put()
    await kill(cluster, *KINDS)
    await cluster.ensure()
    assert await cluster.get() == before

    async def ready() -> bool:
        seen = await cluster.platform.observe(cluster.key)
        return seen.available and not seen.degraded

    await until(ready, "the nodes are ready again")
    async with cluster.api() as api:
        assert [node["metadata"]["name"] for node in (await api.list(NODES)).items] == ["compute-0"]


async def test_a_killed_keeper_is_followed_by_one_that_takes_everything_back(
    cluster: LocalCluster,
) -> None:
    before, processes = await cluster.put(), cluster.running()
    await cluster.environment.keeper.kill_and_start()
    await cluster.ensure()
    assert cluster.running() == processes, "nobody was started or ended"
    assert await cluster.get() == before


async def test_what_died_while_there_was_no_keeper_is_started_by_the_next(
    cluster: LocalCluster,
) -> None:
    before, processes = await cluster.put(), cluster.running()
    await cluster.environment.keeper.end(signal.SIGKILL)
    for kind in ("etcd", "kube-scheduler"):
        os.kill(processes[f"{kind}-0"][0], signal.SIGKILL)
    await cluster.environment.keeper.start()
    await cluster.until_whole()
    await cluster.ensure()
    assert cluster.running()["kube-apiserver-0"] == processes["kube-apiserver-0"]
    assert await cluster.get() == before


async def test_the_log_of_a_running_component_begins_anew_when_it_is_long(
    cluster: LocalCluster,
) -> None:
    before = cluster.running()
    log = cluster.directory / "log" / "kube-apiserver-0.log"
    with log.open("ab") as file:
        file.write(b"x" * (LONGEST_LOG + 1))
    await until(lambda: log.stat().st_size < LONGEST_LOG, "the log is short again")
    assert log.with_name("kube-apiserver-0.log.1").stat().st_size == LONGEST_LOG
    assert cluster.running() == before


async def test_a_second_process_of_a_component_is_ended(cluster: LocalCluster) -> None:
    """However it came to be: two keepers, say, of which one was stopped for a while."""
    await cluster.environment.keeper.end(signal.SIGKILL)
    (pid,) = cluster.running()["kube-scheduler-0"]
    with marked(dict(marks())[pid]):
        assert len(cluster.running()["kube-scheduler-0"]) == 2
        await cluster.environment.keeper.start()
        await until(
            lambda: len(cluster.running()["kube-scheduler-0"]) == 1, "there is one scheduler"
        )
        await cluster.until_whole()

"""Three members: any one of them may die, and the API goes on answering at the same address."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from boatyard.model.errors import BoatyardError
from tests.local.test_isolation import users
from tests.support.assets import needs_assets
from tests.support.real_clusters.environment import LocalEnvironment, local_environment, until
from tests.support.real_clusters.local_cluster import KINDS, NEW, OLD, LocalCluster, uids

# They judge for how long nobody answers.
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(420),
    pytest.mark.quiet,
]
# An election of etcd takes a second or two, and whoever asks meanwhile waits for it.
LONGEST_SILENCE = 20.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment() -> AsyncIterator[LocalEnvironment]:
    async with local_environment(needs_assets(OLD, NEW)) as environment:
        yield environment


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(environment: LocalEnvironment) -> LocalCluster:
    cluster = LocalCluster(environment, "order-1", version=OLD, settings={"control_planes": "3"})
    await cluster.ensure()
    await cluster.join("compute-0")
    await settled(cluster)
    return cluster


async def settled(cluster: LocalCluster) -> None:
    await cluster.until_whole()
    await cluster.settle()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each cluster a user of its own")
async def test_everybody_runs_as_the_clusters_own_user(cluster: LocalCluster) -> None:
    (user,) = users(cluster)
    assert "balancer" in cluster.running()
    assert user == cluster.record()["user"] != 0


@asynccontextmanager
async def never_silent(cluster: LocalCluster) -> AsyncIterator[None]:
    """Somebody writes through the balancer all the time, and is never without an answer for long."""
    longest = 0.0

    async def write() -> None:
        nonlocal longest
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            try:
                async with asyncio.timeout(5):
                    await cluster.put("beat")
            except (BoatyardError, TimeoutError):
                pass
            else:
                last = loop.time()
            longest = max(longest, loop.time() - last)
            await asyncio.sleep(0.2)

    writer = asyncio.create_task(write())
    try:
        yield
    finally:
        writer.cancel()
    assert longest < LONGEST_SILENCE, f"nobody answered for {longest:.1f} s"


async def kill_member(cluster: LocalCluster, number: int) -> None:
    """Everything of one member at once; until another stands in its place."""
    before = cluster.running()
    killed = {before[f"{kind}-{number}"][0] for kind in KINDS}
    for pid in killed:
        os.kill(pid, signal.SIGKILL)

    def replaced() -> bool:
        now = {pid for pids in cluster.running().values() for pid in pids}
        return cluster.is_whole() and not killed & now

    await until(replaced, f"member {number} is there again")
    await cluster.settle()


async def test_members_die_one_after_another_and_somebody_always_answers(
    cluster: LocalCluster,
) -> None:
    before = await cluster.put()
    async with never_silent(cluster):
        for number in range(3):
            await kill_member(cluster, number)
    assert await cluster.get() == before


async def test_a_member_that_dies_with_the_keeper_is_started_by_the_next(
    cluster: LocalCluster,
) -> None:
    before = await cluster.put()
    processes = cluster.running()
    async with never_silent(cluster):
        await cluster.environment.keeper.end(signal.SIGKILL)
        for kind in KINDS:
            os.kill(processes[f"{kind}-1"][0], signal.SIGKILL)
        await asyncio.sleep(2)  # nobody looks after them, and two of three are enough
        assert await cluster.get() == before
        await cluster.environment.keeper.start()
        await settled(cluster)
    assert cluster.running()["etcd-0"] == processes["etcd-0"]
    assert await cluster.get() == before


async def test_without_a_majority_nothing_is_written_and_nothing_is_lost(
    cluster: LocalCluster,
) -> None:
    """The plant for the tests above: the writer does notice when nobody answers."""
    before = await cluster.put()
    await cluster.environment.keeper.end(signal.SIGKILL)
    processes = cluster.running()
    for number in (0, 2):
        os.kill(processes[f"etcd-{number}"][0], signal.SIGKILL)
    with pytest.raises((BoatyardError, TimeoutError)):
        async with asyncio.timeout(5):
            await cluster.put("lost")
    await cluster.environment.keeper.start()
    await settled(cluster)
    assert await cluster.get() == before


async def test_an_upgrade_goes_from_member_to_member_and_somebody_always_answers(
    cluster: LocalCluster,
) -> None:
    before = await cluster.put()
    async with never_silent(cluster):
        await cluster.ensure(version=NEW, seconds=240)
    await settled(cluster)
    assert (await cluster.platform.observe(cluster.key)).version == NEW
    assert uids(await cluster.get()) == uids(before)
    await cluster.release()
    assert cluster.running() == {}

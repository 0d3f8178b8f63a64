"""A cluster that rests keeps its state and its address: standing still for a while, or stopped for long."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.local.allocation import is_port_free
from boatyard.platforms.port import RestMode
from tests.support.real_clusters.environment import LocalEnvironment
from tests.support.real_clusters.local_cluster import LocalCluster

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(shared: LocalEnvironment) -> LocalCluster:
    cluster = LocalCluster(shared, "order-1")
    await cluster.ensure()
    await cluster.join("compute-0")
    await cluster.until_whole()
    return cluster


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def awake(cluster: LocalCluster) -> AsyncIterator[None]:
    """Whatever the last test left behind."""
    await cluster.ensure(rest=RestMode.AWAKE)
    yield


def states(cluster: LocalCluster) -> set[str]:
    pids = [pid for pids in cluster.running().values() for pid in pids]
    return {Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pids}


async def test_a_frozen_cluster_stands_still_and_is_awake_within_a_second(
    cluster: LocalCluster,
) -> None:
    before, processes = await cluster.put(), cluster.running()
    address = (await cluster.platform.access(cluster.key)).api_url
    took = []
    for _ in range(3):
        await cluster.ensure(rest=RestMode.FROZEN)
        assert states(cluster) == {"T"}
        async with cluster.api() as api:
            with pytest.raises((Unavailable, TimeoutError)):
                async with asyncio.timeout(0.5):
                    await api.get_text("/readyz")
            began = time.monotonic()
            await cluster.ensure(rest=RestMode.AWAKE)
            await api.get_text("/readyz")
            took.append(time.monotonic() - began)
    assert min(took) < 1.0, took
    assert cluster.running() == processes
    assert await cluster.get() == before
    assert (await cluster.platform.access(cluster.key)).api_url == address


async def test_a_stopped_cluster_holds_no_process_and_no_port_and_comes_back_as_it_was(
    cluster: LocalCluster,
) -> None:
    before = await cluster.put()
    address = (await cluster.platform.access(cluster.key)).api_url
    await cluster.ensure(rest=RestMode.STOPPED)
    assert cluster.running() == {}
    assert all(is_port_free(port) for port in cluster.record()["ports"].values())
    await cluster.ensure(rest=RestMode.AWAKE)
    await cluster.until_whole()
    assert await cluster.get() == before
    assert (await cluster.platform.access(cluster.key)).api_url == address


@pytest.mark.parametrize("rest", [RestMode.FROZEN, RestMode.STOPPED])
async def test_a_resting_cluster_rests_on_under_the_next_keeper(
    cluster: LocalCluster, rest: RestMode
) -> None:
    before = await cluster.put()
    await cluster.ensure(rest=rest)
    asleep = cluster.running()
    await cluster.environment.keeper.kill_and_start()
    await cluster.ensure()
    seen = await cluster.platform.observe(cluster.key)
    assert (seen.rest, seen.available) == (rest, False)
    assert cluster.running() == asleep
    assert states(cluster) <= {"T"}
    await cluster.ensure(rest=RestMode.AWAKE)
    assert await cluster.get() == before


async def test_what_died_while_it_stood_still_is_started_when_it_wakes_up(
    cluster: LocalCluster,
) -> None:
    before = await cluster.put()
    await cluster.ensure(rest=RestMode.FROZEN)
    for pids in cluster.running().values():
        os.kill(pids[0], signal.SIGKILL)
    await cluster.ensure(rest=RestMode.AWAKE)
    await cluster.until_whole()
    assert await cluster.get() == before


async def test_an_orderly_end_stops_it_and_the_next_keeper_starts_it(cluster: LocalCluster) -> None:
    before = await cluster.put()
    await cluster.environment.client().call("keeper.shutdown", stop_clusters=True)
    assert cluster.environment.keeper.process is not None
    await cluster.environment.keeper.process.wait()
    assert cluster.environment.inside() == []
    await cluster.environment.keeper.start()
    await cluster.ensure()
    await cluster.until_whole()
    assert await cluster.get() == before

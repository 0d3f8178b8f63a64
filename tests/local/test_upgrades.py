"""Another version: one minor at a time, never back, and not half of it. With kills: test_killed_keeper."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from boatyard.model.errors import Refused
from tests.support.assets import needs_assets
from tests.support.real_clusters.environment import (
    KILLED,
    LocalEnvironment,
    local_environment,
    until,
)
from tests.support.real_clusters.local_cluster import NEW, OLD, LocalCluster, uids
from tests.support.real_clusters.planted_assets import PlantedAssets

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]
HANGS = "exec /bin/sleep 600"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedAssets:
    return PlantedAssets(needs_assets(OLD, NEW), tmp_path_factory.mktemp("assets"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(planted: PlantedAssets) -> AsyncIterator[LocalEnvironment]:
    """Its keeper has less patience than an ordinary one."""
    async with local_environment(planted.directory, command=KILLED) as environment:
        yield environment


async def test_a_version_that_hangs_is_given_up_and_the_old_one_goes_on(
    environment: LocalEnvironment, planted: PlantedAssets
) -> None:
    cluster = LocalCluster(environment, "order-1", version=OLD)
    await cluster.ensure()
    before = await cluster.put()
    planted.break_program(NEW, "kube-apiserver", HANGS)
    try:
        with pytest.raises(Refused) as refused:
            await cluster.ensure(version=NEW)
    finally:
        planted.mend(NEW, "kube-apiserver")
    assert refused.value.reason == "UpgradeFailed"
    await cluster.until_whole()
    assert uids(await cluster.get()) == uids(before)
    assert (await cluster.platform.observe(cluster.key)).version == OLD
    await cluster.ensure(version=OLD)
    await until(lambda: not ways_back(cluster), "what it was before is not kept for ever")
    await cluster.release()


def ways_back(cluster: LocalCluster) -> list[str]:
    return [path.name for path in (cluster.directory / "private").glob("before-*")]


async def test_once_it_has_come_up_nothing_is_kept_of_what_was_before(
    environment: LocalEnvironment,
) -> None:
    cluster = LocalCluster(environment, "order-4", version=OLD)
    await cluster.ensure()
    before = await cluster.put()
    await cluster.ensure(version=NEW)
    await until(lambda: not ways_back(cluster), "the snapshot before the upgrade is gone")
    assert uids(await cluster.get()) == uids(before)
    await cluster.release()


async def test_half_way_there_is_no_turning_round_but_an_end(
    environment: LocalEnvironment, planted: PlantedAssets
) -> None:
    cluster = LocalCluster(environment, "order-2", version=OLD)
    await cluster.ensure()
    planted.break_program(NEW, "kube-apiserver", HANGS)
    try:
        cluster.wanted = newer = LocalCluster(environment, "order-2", version=NEW).wanted
        await cluster.platform.ensure_cluster(cluster.key, newer)
        await until(lambda: cluster.record()["upgrading"] == NEW, "it is under way")
        with pytest.raises(Refused) as refused:
            await cluster.ensure(version=OLD)
        assert refused.value.reason == "VersionStep"
        began = time.monotonic()
        await cluster.release()
        assert time.monotonic() - began < 20, "nobody waits for the new version first"
    finally:
        planted.mend(NEW, "kube-apiserver")
    assert cluster.running() == {}


async def test_what_cannot_be_reached_is_refused_and_changes_nothing(
    environment: LocalEnvironment,
) -> None:
    cluster = LocalCluster(environment, "order-3", version=NEW)
    await cluster.ensure()
    await cluster.until_whole()
    processes = cluster.running()
    for version, reason in ((OLD, "VersionStep"), ("1.99.0", "NoSuchVersion")):
        with pytest.raises(Refused) as refused:
            await cluster.ensure(version=version)
        assert refused.value.reason == reason
    assert cluster.running() == processes
    await cluster.ensure(version=NEW)
    await cluster.release()

"""A keeper may be killed at any moment: the next one finishes what was wanted, and nothing is lost or there twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from boatyard.kube.kinds import CONFIG_MAPS
from boatyard.model.errors import Refused
from boatyard.platforms.port import DesiredRestore, RestMode
from tests.support.assets import needs_assets
from tests.support.real_clusters.environment import (
    KILLED,
    LocalEnvironment,
    local_environment,
    until,
)
from tests.support.real_clusters.local_cluster import NEW, OLD, LocalCluster, uids
from tests.support.real_clusters.planted_assets import PlantedAssets

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedAssets:
    return PlantedAssets(needs_assets(OLD, NEW), tmp_path_factory.mktemp("assets"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(planted: PlantedAssets) -> AsyncIterator[LocalEnvironment]:
    async with local_environment(planted.directory, command=KILLED) as environment:
        yield environment


@asynccontextmanager
async def killed_keeper(
    environment: LocalEnvironment, pattern: str = ""
) -> AsyncIterator[set[str]]:
    """While inside, the keeper is killed once at every point that matches; afterwards, where that was."""
    wanted, died = environment.keeper.directory / "die-at", environment.keeper.directory / "died-at"
    died.unlink(missing_ok=True)
    wanted.write_text(pattern)
    found: set[str] = set()
    try:
        yield found
    finally:
        wanted.unlink()
    await until(environment.answers, "the last life of the keeper answers")
    found |= set(died.read_text().splitlines() if died.exists() else ())


# Of the many files of a new cluster these are enough: each kind, and where one comes of two.
SOME_FILES = (
    r"writing (ca\.(crt|key)|sa\.(key|pub)|apiserver\.crt|admin\.kubeconfig|encryption\.json)$"
)


def starts(labels: set[str], *names: str) -> bool:
    """Died before and after each of them was started."""
    return all(
        any(label.startswith(f"{when} starting {name}-0 ") for label in labels)
        for when in ("before", "after")
        for name in names
    )


async def test_while_creating(environment: LocalEnvironment) -> None:
    cluster = LocalCluster(environment, "order-11")
    async with killed_keeper(environment, rf"saving|starting|binding|{SOME_FILES}") as died:
        await cluster.ensure()
        await cluster.until_whole()
    assert starts(died, "kube-apiserver", "kube-controller-manager", "kube-scheduler"), died
    # It starts while files are written: who dies at one of those finds it running in the next life.
    assert any("starting etcd-0 " in label for label in died), died
    assert {"after saving it for the first time", "before saving version"} <= died
    before = await cluster.put()

    async with killed_keeper(environment, "stopping|forgetting|removing|saving") as died:
        await cluster.release()
    assert {"after saving leaving", "after stopping True", "before forgetting"} <= died
    assert f"before removing .gone-{cluster.slug}" in died
    assert before
    await nothing_left(cluster)


async def test_while_upgrading_and_resting(environment: LocalEnvironment) -> None:
    cluster = LocalCluster(environment, "order-12", version=OLD)
    await cluster.ensure()
    before = await cluster.put()

    async with killed_keeper(environment) as died:
        await cluster.ensure(version=NEW)
        await cluster.until_whole()
    assert (await cluster.platform.observe(cluster.key)).version == NEW
    assert uids(await cluster.get()) == uids(before)
    assert starts(died, "etcd", "kube-apiserver", "kube-controller-manager"), died
    assert {"before taking before-1.36.3.db", "after saving upgrading"} <= died
    assert {"before saving version upgrading", "after saving version upgrading"} <= died

    address = (await cluster.platform.access(cluster.key)).api_url
    for rest, tell_tale in (
        (RestMode.FROZEN, "after freezing"),
        (RestMode.STOPPED, "after stopping False"),
    ):
        async with killed_keeper(environment) as died:
            await cluster.ensure(rest=rest)
        assert tell_tale in died
        async with killed_keeper(environment) as died:
            await cluster.ensure(rest=RestMode.AWAKE)
            await cluster.until_whole()
        assert died
        assert await cluster.get() == before
        assert (await cluster.platform.access(cluster.key)).api_url == address
    await cluster.release()


RUINED = "head -c 8192 /dev/urandom > /proc/self/cwd/var/etcd-0/member/snap/db; exit 1"


@pytest.mark.parametrize(
    "program, words, points, expected",
    [
        pytest.param(
            "kube-apiserver",
            "exit 1",
            "",
            {
                "after saving rolling_back",
                "before saving failed_version upgrading rolling_back",
                "after saving failed_version upgrading rolling_back",
            },
            id="it ends at once",
        ),
        pytest.param(
            "etcd",
            RUINED,
            "unreadable|unpacking|etcdutl|putting_back|swapping",
            {
                "after saving unreadable",
                "while etcdutl runs",
                "after saving putting_back",
                "after swapping out etcd-0",
                "before saving putting_back",
            },
            id="it ruins what it finds",
        ),
    ],
)
async def test_while_going_back_to_the_old_version(
    environment: LocalEnvironment,
    planted: PlantedAssets,
    program: str,
    words: str,
    points: str,
    expected: set[str],
) -> None:
    cluster = LocalCluster(environment, f"order-{program}", version=OLD)
    await cluster.ensure()
    before = await cluster.put()
    planted.break_program(NEW, program, words)
    try:
        async with killed_keeper(environment, points) as died:
            with pytest.raises(Refused) as refused:
                await cluster.ensure(version=NEW)
        assert refused.value.reason == "UpgradeFailed"
        assert expected <= died, died
        await cluster.until_whole()
        assert (await cluster.platform.observe(cluster.key)).version == OLD
        assert uids(await cluster.get()) == uids(before)
    finally:
        planted.mend(NEW, program)
    if program == "kube-apiserver":  # once is enough: asked again with good programs, it is moved
        await cluster.ensure(version=NEW)
        assert uids(await cluster.get()) == uids(before)
    await cluster.release()


async def test_while_taking_and_restoring_a_backup(environment: LocalEnvironment) -> None:
    cluster = LocalCluster(environment, "order-14")
    await cluster.ensure()
    before = await cluster.put()
    async with killed_keeper(environment) as died:
        await cluster.backup("backup-14")
    assert {"before taking snapshot.db", "before writing backup.json"} <= died
    await cluster.put("later")

    async with killed_keeper(environment) as died:
        await cluster.ensure(restore=DesiredRestore("first", "backup-14/backup"))
        await cluster.until_whole()
    assert {
        "while etcdutl runs",
        "after unpacking etcd-0",
        "before swapping etcd-0",
        "after swapping out etcd-0",
        "after saving putting_back",
        "after saving restored",
    } <= died, died
    assert uids(await cluster.get()) == uids(before)
    async with cluster.api() as api:
        names = {one["metadata"]["name"] for one in (await api.list(CONFIG_MAPS)).items}
    assert "later" not in names
    await cluster.release()


async def test_a_keeper_that_does_not_look_first_is_found_out(planted: PlantedAssets) -> None:
    """Planted: the next life starts what it should have found."""
    async with local_environment(
        planted.directory, command=(*KILLED, "--forgets-schedulers")
    ) as environment:
        cluster = LocalCluster(environment, "order-15")
        async with killed_keeper(environment, "after starting kube-scheduler"):
            await cluster.ensure()
            await until(
                lambda: len(cluster.running().get("kube-scheduler-0", ())) == 2, "there are two"
            )
        assert not cluster.is_whole()


async def nothing_left(cluster: LocalCluster) -> None:
    assert cluster.running() == {}
    assert not cluster.directory.exists()
    assert list(cluster.directory.parent.iterdir()) == []

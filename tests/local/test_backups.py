"""All objects of a cluster in a file: verified, put back into the same cluster or another one, and never half."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from pathlib import Path

import pytest

from boatyard.kube.kinds import CONFIG_MAPS, NODES
from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.port import DesiredRestore
from tests.support.real_clusters.environment import LocalEnvironment, until
from tests.support.real_clusters.local_cluster import LocalCluster, uids

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


async def names(cluster: LocalCluster) -> set[str]:
    async with cluster.api() as api:
        return {one["metadata"]["name"] for one in (await api.list(CONFIG_MAPS, "default")).items}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_objects_that_were_wiped_out_are_the_same_again(
    shared: LocalEnvironment, tmp_path: Path
) -> None:
    cluster = LocalCluster(shared, "order-1")
    await cluster.ensure()
    before = await cluster.put()
    place = Path((await cluster.backup("backup-1", str(tmp_path))).facts["place"])
    assert place.parent == tmp_path
    assert mode_of(place) == 0o700
    await cluster.put("later")
    kubeconfig = (await cluster.platform.access(cluster.key)).kubeconfig

    shutil.rmtree(cluster.directory / "run" / "var")
    for pids in cluster.running().values():
        os.kill(pids[0], signal.SIGKILL)

    async def told() -> bool:
        seen = await cluster.platform.observe(cluster.key)
        return not seen.available and "restore a backup" in seen.message

    await until(told, "it is said that the objects are gone")
    with pytest.raises(Unavailable, match="restore a backup"):
        await cluster.platform.ensure_cluster(cluster.key, cluster.wanted)
    await cluster.ensure(restore=DesiredRestore("first", "backup-1/backup"))
    await cluster.until_whole()
    assert uids(await cluster.get()) == uids(before)
    assert "later" not in await names(cluster)
    assert (await cluster.platform.access(cluster.key)).kubeconfig == kubeconfig

    assert await cluster.platform.release_backup("backup-1/backup")
    assert os.listdir(tmp_path) == []
    await cluster.release()


async def test_a_new_cluster_begins_with_the_objects_of_another(shared: LocalEnvironment) -> None:
    old = LocalCluster(shared, "order-2")
    await old.ensure()
    before = await old.put()
    await old.join("compute-0")
    facts = (await old.backup("backup-2")).facts
    assert Path(facts["place"]).is_relative_to(shared.keeper.directory / "backups")
    await old.release()

    new = LocalCluster(shared, "order-3", restore=DesiredRestore("first", "backup-2/backup"))
    await new.ensure()
    await new.join("compute-9")
    assert uids(await new.get()) == uids(before), "also the secret can be read"

    async def own_nodes() -> bool:
        async with new.api() as api:
            found = [node["metadata"]["name"] for node in (await api.list(NODES)).items]
        return found == ["compute-9"]

    await until(own_nodes, "its nodes are its own")
    await new.put("more")
    await new.environment.keeper.kill_and_start()
    await new.ensure()
    assert uids(await new.get()) == uids(before), "it is restored once, and keeps the keys"
    await new.get("more")
    await new.release()


@pytest.mark.parametrize("damage", ["a flipped bit", "cut short", "another one", "gone"])
async def test_a_damaged_backup_is_refused_and_the_cluster_goes_on(
    shared: LocalEnvironment, damage: str
) -> None:
    cluster = LocalCluster(shared, "order-4")
    await cluster.ensure()
    await cluster.until_whole()
    before, processes = await cluster.put(), cluster.running()
    name = f"backup-{damage.replace(' ', '-')}"
    file = Path((await cluster.backup(name)).facts["place"]) / "snapshot.db"
    match damage:
        case "a flipped bit":
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        case "cut short":
            os.truncate(file, file.stat().st_size // 2)
        case "another one":
            await cluster.put("different")
            other = Path((await cluster.backup("backup-other")).facts["place"]) / "snapshot.db"
            shutil.copy(other, file)
        case "gone":
            file.unlink()
    with pytest.raises(Refused) as refused:
        await cluster.ensure(restore=DesiredRestore(damage, f"{name}/backup"))
    assert refused.value.reason == "BrokenBackup"
    assert await cluster.get() == before
    seen = await cluster.platform.observe(cluster.key)
    assert seen.available
    assert cluster.running() == processes, "nobody was stopped for it"
    await cluster.ensure(restore=None)


async def test_a_folder_that_is_not_there_is_refused(shared: LocalEnvironment) -> None:
    cluster = LocalCluster(shared, "order-4")
    await cluster.ensure()
    for folder in ("relative", "/nonexistent/folder"):
        with pytest.raises(Refused) as refused:
            await cluster.backup("backup-5", folder)
        assert refused.value.reason == "NoFolder"

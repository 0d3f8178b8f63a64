"""Backups that outlive their cluster, restores that happen once, and what is left when a hub is dead."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.model.generated.boatyard import Backup, BackupState
from boatyard.model.generated.osac import ClusterRestore, ClusterState
from tests.journeys.conftest import NewYard
from tests.support import resting
from tests.support.yard import Yard


async def _ready(yard: Yard, name: str = "web", **how: object) -> str:
    web = await yard.order(name, sizes={"compute": 1}, **how)
    await yard.run_to(web, ClusterState.READY)
    return web


async def test_a_backup_says_what_it_is(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    web = await _ready(yard)
    await resting.write(yard, web, "a shop")

    copy = await resting.back_up(yard, web, "before")
    status = (await resting.run_until_backed_up(yard, copy)).status

    assert status.state == BackupState.READY
    assert (status.version, status.cluster_name) == ("4.17.9", "web")
    assert status.bytes > len("a shop")
    assert len(status.sha256) == 64
    assert status.taken_at is not None
    assert "BackedUp" in await resting.notes_of(yard, "Cluster", web)
    await resting.delete_backup(yard, copy)
    await resting.run_until_backup_gone(yard, copy)
    assert "backup" not in await yard.held()


async def test_what_came_after_the_backup_is_gone_after_the_restore(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    web = await _ready(yard)
    await resting.write(yard, web, "a shop")
    copy = await resting.back_up(yard, web, "before")
    await resting.run_until_backed_up(yard, copy)
    await resting.write(yard, web, "a mess")
    checks = {i.key for i in (await yard.order_of(web)).status.items if i.kind == "check"}

    await resting.restore(yard, web, copy, "first")
    await yard.turn()
    await yard.run_to(web, ClusterState.READY)

    assert (await resting.seen(yard, web))["contents"] == "a shop"
    assert (await yard.cluster(web)).status.restored == "first"
    again = {i.key for i in (await yard.order_of(web)).status.items if i.kind == "check"}
    assert again
    assert again.isdisjoint(checks), "every question is asked anew"
    assert "Restored" in await resting.notes_of(yard, "Cluster", web)


async def test_a_restore_happens_once(yard: Yard) -> None:
    web = await _ready(yard)
    await resting.write(yard, web, "a shop")
    copy = await resting.back_up(yard, web, "before")
    await resting.run_until_backed_up(yard, copy)
    await resting.restore(yard, web, copy, "first")
    await yard.run_to(web, ClusterState.READY)

    await resting.write(yard, web, "a bigger shop")
    await resting.delete_backup(yard, copy)
    await resting.run_until_backup_gone(yard, copy)
    await yard.set_version(web, "4.18.3")  # asks for the control plane once more
    await yard.run_to(web, ClusterState.READY)
    await yard.run(within=timedelta(minutes=5))

    assert (await resting.seen(yard, web))["contents"] == "a bigger shop"
    assert await yard.state(web) == ClusterState.READY


async def test_a_cluster_that_is_gone_comes_back_as_another(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    other = await _ready(yard, "other")  # the hub of the backup is not the emptiest one
    web = await _ready(yard)
    await resting.write(yard, web, "a shop")
    copy = await resting.back_up(yard, web, "before")
    await resting.run_until_backed_up(yard, copy)
    hub = (await yard.cluster(web)).status.hub
    await yard.delete(web)
    await yard.run_until_gone(web)
    assert (await resting.backup_of(yard, copy)).status.state == BackupState.READY
    third = await _ready(yard, "third")

    again = await yard.order(
        "again", sizes={"compute": 1}, restore=ClusterRestore(backup=copy, request="first")
    )
    await yard.run_to(again, ClusterState.READY)

    assert (await resting.seen(yard, again))["contents"] == "a shop"
    assert (await yard.cluster(again)).status.hub == hub, "it is where its backup is"
    for cluster in (other, third, again):
        await yard.delete(cluster)
        await yard.run_until_gone(cluster)
    await resting.delete_backup(yard, copy)
    await resting.run_until_backup_gone(yard, copy)
    await yard.assert_nothing_left()


async def test_a_sweep_leaves_backups_alone(yard: Yard) -> None:
    web = await _ready(yard)
    copy = await resting.back_up(yard, web, "before")
    await resting.run_until_backed_up(yard, copy)
    await yard.delete(web)
    await yard.run_until_gone(web)

    await yard.run(within=timedelta(hours=1))

    assert list((await yard.held())["backup"]) == [f"{copy}/backup"]
    assert await yard.leftover_of(copy) is None


async def test_a_platform_that_does_not_answer_is_waited_for(yard: Yard) -> None:
    web = await _ready(yard)
    await yard.break_service("platform.ensure_backup", "dead")
    copy = await resting.back_up(yard, web, "before")
    await yard.run(within=timedelta(minutes=10))

    status = (await resting.backup_of(yard, copy)).status
    assert status.state == BackupState.PENDING
    assert "tried again by itself" in status.message
    assert status.tries > 2

    await yard.heal()
    assert (await resting.run_until_backed_up(yard, copy)).status.state == BackupState.READY


@pytest.mark.parametrize("service", ["platform.ensure_backup", "platform"])
async def test_a_flaky_platform_makes_one_backup(yard: Yard, service: str) -> None:
    web = await _ready(yard)
    await yard.break_service(service, "flaky", every=3)
    copy = await resting.back_up(yard, web, "before")

    assert (await resting.run_until_backed_up(yard, copy)).status.state == BackupState.READY
    assert list((await yard.held())["backup"]) == [f"{copy}/backup"]


async def test_a_lie_is_not_taken_for_a_backup(yard: Yard) -> None:
    web = await _ready(yard)
    await yard.break_service("platform.ensure_backup", "lies")
    copy = await resting.back_up(yard, web, "before")
    await yard.run(within=timedelta(minutes=2))
    assert (await resting.backup_of(yard, copy)).status.state == BackupState.PENDING


async def test_a_refused_backup_has_failed_and_can_be_deleted(yard: Yard) -> None:
    web = await _ready(yard)
    await yard.call("set_mood", order_id="*", step="backup", mood="refused")
    copy = await resting.back_up(yard, web, "before")

    status = (await resting.run_until_backed_up(yard, copy)).status
    assert status.state == BackupState.FAILED
    assert "does not accept" in status.message

    await resting.delete_backup(yard, copy)
    await resting.run_until_backup_gone(yard, copy)


async def test_a_backup_of_a_cluster_that_went_first_fails(yard: Yard) -> None:
    web = await _ready(yard)
    await yard.break_service("platform.ensure_backup", "dead")
    copy = await resting.back_up(yard, web, "before")
    await yard.turn()
    await yard.delete(web)
    await yard.run_until_gone(web)
    await yard.heal()

    status = (await resting.run_until_backed_up(yard, copy)).status
    assert status.state == BackupState.FAILED
    assert "deleted before" in status.message


async def test_deleting_a_backup_ends_also_with_a_dead_platform(yard: Yard) -> None:
    web = await _ready(yard)
    copy = await resting.back_up(yard, web, "before")
    await resting.run_until_backed_up(yard, copy)
    await yard.break_service("platform.release_backup", "dead")

    await resting.delete_backup(yard, copy)
    await yard.run(within=timedelta(minutes=20))

    assert await yard.ledger.documents.get(Backup, copy) is None
    leftover = await yard.leftover_of(copy)
    assert leftover is not None
    assert [item.key for item in leftover.status.items] == ["backup"]

    await yard.heal()
    await yard.run_until_nothing_is_left()
    assert "backup" not in await yard.held()


async def test_a_backup_deleted_before_it_was_taken_leaves_nothing(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    web = await _ready(yard)
    copy = await resting.back_up(yard, web, "before")
    await yard.turn()
    assert "backup" in await yard.held()

    await resting.delete_backup(yard, copy)
    await resting.run_until_backup_gone(yard, copy)
    assert "backup" not in await yard.held()

"""Backups that outlive their cluster, restores that happen once, and what is left when a hub is dead."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.model.generated.boatyard import Backup, BackupState
from boatyard.model.generated.osac import ClusterRestore, ClusterState
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated import lifecycle
from tests.support.simulated.environment import SimulatedEnvironment


async def _ready(environment: SimulatedEnvironment, name: str = "web", **how: object) -> str:
    web = await environment.order(name, sizes={"compute": 1}, **how)
    await environment.run_to(web, ClusterState.READY)
    return web


async def test_a_backup_says_what_it_is(new_environment: NewEnvironment) -> None:
    environment = await new_environment(delays="demo")
    web = await _ready(environment)
    await lifecycle.write(environment, web, "a shop")

    copy = await lifecycle.back_up(environment, web, "before")
    status = (await lifecycle.run_until_backed_up(environment, copy)).status

    assert status.state == BackupState.READY
    assert (status.version, status.cluster_name) == ("4.17.9", "web")
    assert status.bytes > len("a shop")
    assert len(status.sha256) == 64
    assert status.taken_at is not None
    assert "BackedUp" in await lifecycle.notes_of(environment, "Cluster", web)
    await lifecycle.delete_backup(environment, copy)
    await lifecycle.run_until_backup_gone(environment, copy)
    assert "backup" not in await environment.held()


async def test_what_came_after_the_backup_is_gone_after_the_restore(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    web = await _ready(environment)
    await lifecycle.write(environment, web, "a shop")
    copy = await lifecycle.back_up(environment, web, "before")
    await lifecycle.run_until_backed_up(environment, copy)
    await lifecycle.write(environment, web, "a mess")
    checks = {i.key for i in (await environment.order_of(web)).status.items if i.kind == "check"}

    await lifecycle.restore(environment, web, copy, "first")
    await environment.turn()
    await environment.run_to(web, ClusterState.READY)

    assert (await lifecycle.seen(environment, web))["contents"] == "a shop"
    assert (await environment.cluster(web)).status.restored == "first"
    again = {i.key for i in (await environment.order_of(web)).status.items if i.kind == "check"}
    assert again
    assert again.isdisjoint(checks), "every question is asked anew"
    assert "Restored" in await lifecycle.notes_of(environment, "Cluster", web)


async def test_a_restore_happens_once(environment: SimulatedEnvironment) -> None:
    web = await _ready(environment)
    await lifecycle.write(environment, web, "a shop")
    copy = await lifecycle.back_up(environment, web, "before")
    await lifecycle.run_until_backed_up(environment, copy)
    await lifecycle.restore(environment, web, copy, "first")
    await environment.run_to(web, ClusterState.READY)

    await lifecycle.write(environment, web, "a bigger shop")
    await lifecycle.delete_backup(environment, copy)
    await lifecycle.run_until_backup_gone(environment, copy)
    await environment.set_version(web, "4.18.3")  # asks for the control plane once more
    await environment.run_to(web, ClusterState.READY)
    await environment.run(within=timedelta(minutes=5))

    assert (await lifecycle.seen(environment, web))["contents"] == "a bigger shop"
    assert await environment.state(web) == ClusterState.READY


async def test_a_cluster_that_is_gone_comes_back_as_another(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    other = await _ready(environment, "other")  # the hub of the backup is not the emptiest one
    web = await _ready(environment)
    await lifecycle.write(environment, web, "a shop")
    copy = await lifecycle.back_up(environment, web, "before")
    await lifecycle.run_until_backed_up(environment, copy)
    hub = (await environment.cluster(web)).status.hub
    await environment.delete(web)
    await environment.run_until_gone(web)
    assert (await lifecycle.backup_of(environment, copy)).status.state == BackupState.READY
    third = await _ready(environment, "third")

    again = await environment.order(
        "again", sizes={"compute": 1}, restore=ClusterRestore(backup=copy, request="first")
    )
    await environment.run_to(again, ClusterState.READY)

    assert (await lifecycle.seen(environment, again))["contents"] == "a shop"
    assert (await environment.cluster(again)).status.hub == hub, "it is where its backup is"
    for cluster in (other, third, again):
        await environment.delete(cluster)
        await environment.run_until_gone(cluster)
    await lifecycle.delete_backup(environment, copy)
    await lifecycle.run_until_backup_gone(environment, copy)
    await environment.assert_nothing_left()


async def test_a_sweep_leaves_backups_alone(environment: SimulatedEnvironment) -> None:
    web = await _ready(environment)
    copy = await lifecycle.back_up(environment, web, "before")
    await lifecycle.run_until_backed_up(environment, copy)
    await environment.delete(web)
    await environment.run_until_gone(web)

    await environment.run(within=timedelta(hours=1))

    assert list((await environment.held())["backup"]) == [f"{copy}/backup"]
    assert await environment.leftover_of(copy) is None


async def test_a_platform_that_does_not_answer_is_waited_for(
    environment: SimulatedEnvironment,
) -> None:
    web = await _ready(environment)
    await environment.break_service("platform.ensure_backup", "dead")
    copy = await lifecycle.back_up(environment, web, "before")
    await environment.run(within=timedelta(minutes=10))

    status = (await lifecycle.backup_of(environment, copy)).status
    assert status.state == BackupState.PENDING
    assert "tried again by itself" in status.message
    assert status.tries > 2

    await environment.heal()
    assert (
        await lifecycle.run_until_backed_up(environment, copy)
    ).status.state == BackupState.READY


@pytest.mark.parametrize("service", ["platform.ensure_backup", "platform"])
async def test_a_flaky_platform_makes_one_backup(
    environment: SimulatedEnvironment, service: str
) -> None:
    web = await _ready(environment)
    await environment.break_service(service, "flaky", every=3)
    copy = await lifecycle.back_up(environment, web, "before")

    assert (
        await lifecycle.run_until_backed_up(environment, copy)
    ).status.state == BackupState.READY
    assert list((await environment.held())["backup"]) == [f"{copy}/backup"]


async def test_a_lie_is_not_taken_for_a_backup(environment: SimulatedEnvironment) -> None:
    web = await _ready(environment)
    await environment.break_service("platform.ensure_backup", "lies")
    copy = await lifecycle.back_up(environment, web, "before")
    await environment.run(within=timedelta(minutes=2))
    assert (await lifecycle.backup_of(environment, copy)).status.state == BackupState.PENDING


async def test_a_refused_backup_has_failed_and_can_be_deleted(
    environment: SimulatedEnvironment,
) -> None:
    web = await _ready(environment)
    await environment.call("set_mood", order_id="*", step="backup", mood="refused")
    copy = await lifecycle.back_up(environment, web, "before")

    status = (await lifecycle.run_until_backed_up(environment, copy)).status
    assert status.state == BackupState.FAILED
    assert "does not accept" in status.message

    await lifecycle.delete_backup(environment, copy)
    await lifecycle.run_until_backup_gone(environment, copy)


async def test_a_backup_of_a_cluster_that_went_first_fails(
    environment: SimulatedEnvironment,
) -> None:
    web = await _ready(environment)
    await environment.break_service("platform.ensure_backup", "dead")
    copy = await lifecycle.back_up(environment, web, "before")
    await environment.turn()
    await environment.delete(web)
    await environment.run_until_gone(web)
    await environment.heal()

    status = (await lifecycle.run_until_backed_up(environment, copy)).status
    assert status.state == BackupState.FAILED
    assert "deleted before" in status.message


async def test_deleting_a_backup_ends_also_with_a_dead_platform(
    environment: SimulatedEnvironment,
) -> None:
    web = await _ready(environment)
    copy = await lifecycle.back_up(environment, web, "before")
    await lifecycle.run_until_backed_up(environment, copy)
    await environment.break_service("platform.release_backup", "dead")

    await lifecycle.delete_backup(environment, copy)
    await environment.run(within=timedelta(minutes=20))

    assert await environment.ledger.documents.get(Backup, copy) is None
    leftover = await environment.leftover_of(copy)
    assert leftover is not None
    assert [item.key for item in leftover.status.items] == ["backup"]

    await environment.heal()
    await environment.run_until_nothing_is_left()
    assert "backup" not in await environment.held()


async def test_a_backup_deleted_before_it_was_taken_leaves_nothing(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    web = await _ready(environment)
    copy = await lifecycle.back_up(environment, web, "before")
    await environment.turn()
    assert "backup" in await environment.held()

    await lifecycle.delete_backup(environment, copy)
    await lifecycle.run_until_backup_gone(environment, copy)
    assert "backup" not in await environment.held()

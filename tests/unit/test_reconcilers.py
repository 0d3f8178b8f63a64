"""What one pass over an order, a leftover or a backup writes, and when the next one is due; without a database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from boatyard.ledger.changes import Archive, Due, Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import (
    Backup,
    BackupSpec,
    BackupStatus,
    Item,
    ItemState,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
    Order,
)
from boatyard.model.generated.osac import Metadata
from boatyard.model.outcome import Done, Outcome
from boatyard.orderbook.port import RETRY_ANNOTATION, UNREADABLE_ANNOTATION, OrderBook
from boatyard.resources.backups.reconciler import BackupReconciler
from boatyard.resources.leftovers.reconciler import LeftoverReconciler
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.reconciler import OrderReconciler
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult
from tests.support.orders import NOW, an_order


class BackupPlatform:
    """Releases backups, or does not answer."""

    def __init__(self, *, answers: bool) -> None:
        self.answers = answers

    async def release_backup(self, key: str) -> Outcome:
        if not self.answers:
            raise Unavailable("the platform does not answer")
        return Done()


async def no_drivers(hub: str) -> HubDrivers:
    raise AssertionError("this pass needs no driver")


def changes_of(result: ReconcileResult, kind: type) -> list[Any]:
    return [change for change in result.changes if isinstance(change, kind)]


# --- orders --------------------------------------------------------------------------------------


@dataclass
class OneOrderBook:
    order: Order

    async def get(self, order_id: str) -> Order:
        return self.order


async def reconcile_order(annotations: dict[str, str]) -> ReconcileResult:
    order = an_order()
    metadata = msgspec.structs.replace(order.metadata, annotations=annotations)
    book = cast(OrderBook, OneOrderBook(msgspec.structs.replace(order, metadata=metadata)))
    reconciler = OrderReconciler(book_for=lambda turn: book, drivers_for=no_drivers)
    return await reconciler.reconcile(ReconcilePass(id="o-1", now=NOW))


async def test_a_change_that_the_cluster_shows_makes_it_due_at_once() -> None:
    result = await reconcile_order({UNREADABLE_ANNOTATION: "spec.version is no text"})

    assert len(changes_of(result, Replace)) == 1
    assert changes_of(result, Due) == [Due("Cluster", "o-1", NOW, tenant="acme", hub="hub-1")]


async def test_a_change_that_the_cluster_does_not_show_leaves_it_alone() -> None:
    result = await reconcile_order({RETRY_ANNOTATION: "1"})

    (replaced,) = changes_of(result, Replace)
    assert replaced.doc.status.retried == 1
    assert changes_of(result, Due) == []


# --- leftovers -----------------------------------------------------------------------------------


@dataclass
class OneLeftoverBook:
    leftover_doc: Leftover

    async def get_leftover(self, leftover_id: str) -> Leftover:
        return self.leftover_doc

    async def get(self, order_id: str) -> None:
        return None


def leftover_of(*keys: str) -> Leftover:
    items = tuple(
        Item(key=key, kind="backup", step="install", state=ItemState.LEAVING) for key in keys
    )
    return Leftover(
        id="o-1",
        metadata=Metadata(name="o-1", tenant="acme"),
        spec=LeftoverSpec(order="o-1", cluster_name="web", hub="hub-1"),
        status=LeftoverStatus(items=items),
    )


async def reconcile_leftover(
    leftover: Leftover, platform: BackupPlatform, now: datetime
) -> tuple[ReconcileResult, Leftover]:
    async def drivers_for(hub: str) -> HubDrivers:
        drivers: dict[str, Any] = dict.fromkeys(("inventory", "l2", "l3", "dns", "checks"))
        return HubDrivers(**drivers, platform=cast(Any, platform))

    book = cast(OrderBook, OneLeftoverBook(leftover))
    reconciler = LeftoverReconciler(book_for=lambda turn: book, drivers_for=drivers_for)
    result = await reconciler.reconcile(ReconcilePass(id=leftover.id, now=now))
    (written,) = changes_of(result, Replace) or changes_of(result, Archive)
    return result, written.doc


async def test_a_leftover_that_is_not_released_is_tried_ever_more_seldom_up_to_an_hour() -> None:
    leftover, now = leftover_of("backup"), NOW
    delays = []
    for _ in range(9):
        result, leftover = await reconcile_leftover(leftover, BackupPlatform(answers=False), now)
        assert result.look_again is not None
        delays.append((result.look_again - now).total_seconds())
        now = result.look_again

    assert delays == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert leftover.status.tries == 9
    assert leftover.status.next_look == now


async def test_a_leftover_that_is_released_ends() -> None:
    result, _ = await reconcile_leftover(leftover_of("backup"), BackupPlatform(answers=True), NOW)

    assert changes_of(result, Archive)
    assert result.look_again is None


# --- backups -------------------------------------------------------------------------------------

DELETE_BY = NOW + timedelta(minutes=15)


@dataclass
class OneBackupShelf:
    backup: Backup

    @property
    def documents(self) -> OneBackupShelf:
        return self

    async def get(self, kind: type, id: str) -> Backup:
        return self.backup


async def release_backup(now: datetime) -> ReconcileResult:
    """One pass over a backup that is being deleted, with a platform that does not answer."""
    backup = Backup(
        id="b-1",
        metadata=Metadata(name="before", tenant="acme", deletion_timestamp=NOW),
        spec=BackupSpec(cluster="c-1"),
        status=BackupStatus(hub="hub-1", delete_by=DELETE_BY),
    )

    async def drivers_for(hub: str) -> HubDrivers:
        drivers: dict[str, Any] = dict.fromkeys(("inventory", "l2", "l3", "dns", "checks"))
        return HubDrivers(**drivers, platform=cast(Any, BackupPlatform(answers=False)))

    reconciler = BackupReconciler(
        ledger=cast(Ledger, OneBackupShelf(backup)),
        drivers_for=drivers_for,
        delete_within=timedelta(minutes=15),
    )
    return await reconciler.reconcile(ReconcilePass(id="b-1", now=now))


@pytest.mark.parametrize("early", [timedelta(minutes=14), timedelta(seconds=1)])
async def test_a_backup_that_is_not_removed_yet_is_tried_again_until_its_time_is_over(
    early: timedelta,
) -> None:
    now = DELETE_BY - early

    result = await release_backup(now)

    assert changes_of(result, Insert) == changes_of(result, Archive) == []
    assert result.look_again is not None
    assert now < result.look_again <= DELETE_BY


async def test_a_backup_that_is_not_removed_in_time_becomes_a_leftover() -> None:
    result = await release_backup(DELETE_BY)

    (leftover,) = changes_of(result, Insert)
    assert [item.key for item in leftover.doc.status.items] == ["backup"]
    assert [archive.doc.id for archive in changes_of(result, Archive)] == ["b-1"]
    assert changes_of(result, Due) == [
        Due("Leftover", "b-1", DELETE_BY, tenant="acme", hub="hub-1")
    ]

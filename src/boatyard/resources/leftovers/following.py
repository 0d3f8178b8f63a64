"""Mirrors the Leftovers of Kubernetes hubs, where the hub's operator releases them. Called by the engine.

Also requests deletions that could not be requested while the hub was unreachable: an order that still exists there is
deleted there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from boatyard.ledger.changes import Archive, Change, Note, Replace, Unreserve, Wake
from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.boatyard import Backup, Leftover, OrderPhase
from boatyard.orderbook.port import OrderBook
from boatyard.resources.clusters.ending import leftover_owner
from boatyard.resources.clusters.reconciler import CAPACITY
from boatyard.resources.reconciling import Reconciler, Result, Turn

_LOOK_SECONDS = 60.0
_SOON_SECONDS = 5.0


class LeftoverFollower:
    """`remote` returns the order book of a hub that stores its orders itself, else None; then `local` is called."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        remote: Callable[[Turn, str], Awaitable[OrderBook | None]],
        local: Reconciler,
        delete_within: timedelta,
    ) -> None:
        self._ledger = ledger
        self._remote = remote
        self._local = local
        self._delete_within = delete_within

    async def reconcile(self, turn: Turn) -> Result:
        leftover = await self._ledger.documents.get(Leftover, turn.id)
        if leftover is None:
            return Result()
        if await self._ledger.documents.archived(Backup, leftover.spec.order) is not None:
            return await self._local.reconcile(turn)  # backups are released by the service itself
        book = await self._remote(turn, leftover.spec.hub)
        if book is None:
            return await self._local.reconcile(turn)
        order_gone = await self._end_order(book, leftover, turn)
        remote_leftover = await book.leftover(leftover.id)
        if order_gone and remote_leftover is None:
            return _released(leftover, turn)
        changes: list[Change] = []
        if remote_leftover is not None and remote_leftover.status != leftover.status:
            changes.append(
                Replace(msgspec.structs.replace(leftover, status=remote_leftover.status))
            )
        seconds = _LOOK_SECONDS if order_gone else _SOON_SECONDS
        look_again = turn.now + timedelta(seconds=seconds)
        return Result(changes=changes, look_again=look_again, hub=leftover.spec.hub)

    async def poisoned(self, turn: Turn) -> Result:
        return await self._local.poisoned(turn)

    async def _end_order(self, book: OrderBook, leftover: Leftover, turn: Turn) -> bool:
        """Whether the order is gone from the hub. Requests its deletion if nobody did before."""
        order = await book.get(leftover.spec.order)
        if order is None:
            return True
        if order.status.phase == OrderPhase.DELETED:
            await book.forget(order.id, now=turn.now)
        elif order.metadata.deletion_timestamp is None:
            await book.request_delete(
                order.id, delete_by=turn.now + self._delete_within, now=turn.now
            )
        return False


def _released(leftover: Leftover, turn: Turn) -> Result:
    status = msgspec.structs.replace(leftover.status, items=(), steps=())
    empty = msgspec.structs.replace(leftover, status=status)
    return Result(
        changes=[
            Unreserve(leftover_owner(leftover.id)),
            Archive(empty, note=Note("Released", "Everything left is released")),
            Wake(CAPACITY, turn.now),
        ],
        hub=leftover.spec.hub,
    )

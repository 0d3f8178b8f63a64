"""Mirrors the Leftovers of Kubernetes hubs, where the hub's operator releases them. Called by the engine.

Also requests deletions that could not be requested while the hub was unreachable: an order that still exists there is
deleted there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from boatyard.ledger.changes import Change, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.boatyard import Backup, Leftover, OrderPhase
from boatyard.orderbook.port import OrderBook
from boatyard.resources.leftovers.ending import end_leftover
from boatyard.resources.reconciler import ReconcilePass, Reconciler, ReconcileResult

_SLOW_INTERVAL_SECONDS = 60.0
_FAST_INTERVAL_SECONDS = 5.0


class LeftoverMirror:
    """`remote` returns the order book of a hub that stores its orders itself, else None; then `local` is called."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        remote: Callable[[ReconcilePass, str], Awaitable[OrderBook | None]],
        local: Reconciler,
        delete_within: timedelta,
    ) -> None:
        self._ledger = ledger
        self._remote_book_for = remote
        self._local_reconciler = local
        self._delete_within = delete_within

    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        leftover = await self._ledger.documents.get(Leftover, reconcile_pass.id)
        if leftover is None:
            return ReconcileResult()
        if await self._ledger.documents.get_archived(Backup, leftover.spec.order) is not None:
            return await self._local_reconciler.reconcile(
                reconcile_pass
            )  # backups are released by the service itself
        book = await self._remote_book_for(reconcile_pass, leftover.spec.hub)
        if book is None:
            return await self._local_reconciler.reconcile(reconcile_pass)
        order_gone = await self._delete_order(book, leftover, reconcile_pass)
        remote_leftover = await book.get_leftover(leftover.id)
        if order_gone and remote_leftover is None:
            return ReconcileResult(
                changes=end_leftover(leftover, reconcile_pass.now), hub=leftover.spec.hub
            )
        changes: list[Change] = []
        if remote_leftover is not None and remote_leftover.status != leftover.status:
            changes.append(
                Replace(msgspec.structs.replace(leftover, status=remote_leftover.status))
            )
        seconds = _SLOW_INTERVAL_SECONDS if order_gone else _FAST_INTERVAL_SECONDS
        look_again = reconcile_pass.now + timedelta(seconds=seconds)
        return ReconcileResult(changes=changes, look_again=look_again, hub=leftover.spec.hub)

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        return await self._local_reconciler.quarantine(reconcile_pass)

    async def _delete_order(
        self, book: OrderBook, leftover: Leftover, reconcile_pass: ReconcilePass
    ) -> bool:
        """Whether the order is gone from the hub. Requests its deletion if nobody did before."""
        order = await book.get(leftover.spec.order)
        if order is None:
            return True
        if order.status.phase == OrderPhase.DELETED:
            await book.forget(order.id, now=reconcile_pass.now)
        elif order.metadata.deletion_timestamp is None:
            await book.request_delete(
                order.id, delete_by=reconcile_pass.now + self._delete_within, now=reconcile_pass.now
            )
        return False

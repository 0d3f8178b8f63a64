"""A remote order book with a copy of its orders in the ledger. Used by the cluster reconciler.

The order itself is on the hub. Explanations, receipts and lists are made from the copy, also while the hub is away. The
copy contains no secrets, and no reconciler works on it: it is never due.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from boatyard.ledger.changes import Archive, Change, Due, EventNote, Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import WorkLease
from boatyard.model.generated.boatyard import (
    NO_CREDENTIALS,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
    Order,
    OrderPhase,
    OrderSpec,
)
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.port import RETRY_ANNOTATION, OrderBook, count_requested_retries


class RemoteOrderBook(OrderBook, Protocol):
    async def request_retry(self, order_id: str, count: int) -> None:
        """Sends the total number of requested retries to the order's operator. No such order: does nothing."""


class MirroredOrderBook:
    """An order book opened for one pass, under its lease. Every `get` of an order updates its copy."""

    def __init__(
        self, book: RemoteOrderBook, ledger: Ledger, *, lease: WorkLease | None, now: datetime
    ) -> None:
        self._book = book
        self._ledger = ledger
        self._lease = lease
        self._now = now
        self._lost_copy: Order | None = None  # the copy of an order that the hub has lost

    async def get(self, order_id: str) -> Order | None:
        copy = await self._ledger.documents.get(Order, order_id)
        order = await self._book.get(order_id)
        if order is None:
            return self._handle_missing_order(copy)
        retry_count = count_requested_retries(copy) if copy is not None else 0
        if retry_count > count_requested_retries(order):
            await self._book.request_retry(order_id, retry_count)
        await self._update_copy(copy, order)
        return order

    async def put(self, order_id: str, *, tenant: str, spec: OrderSpec, now: datetime) -> None:
        await self._book.put(order_id, tenant=tenant, spec=spec, now=now)
        missing, self._lost_copy = self._lost_copy, None
        if missing is not None and missing.id == order_id:
            # Only now: until the order is placed again, the copy shows that it has not ended.
            await self._write(
                [Archive(missing, note=EventNote("Lost", "Its hub no longer has it"))]
            )

    async def request_delete(self, order_id: str, *, delete_by: datetime, now: datetime) -> None:
        await self._book.request_delete(order_id, delete_by=delete_by, now=now)

    async def forget(self, order_id: str, *, tenant: str = "", now: datetime) -> None:
        """Forgets the order on the hub, then its copy. The copy of what is left on the hub is written with it."""
        copy = await self._ledger.documents.get(Order, order_id)
        leftover_changes = await self._make_leftover_changes(copy, now) if copy is not None else []
        await self._book.forget(order_id, tenant=tenant, now=now)
        if copy is not None:
            await self._write([*leftover_changes, Archive(copy)])

    async def claim(
        self, pool: str, candidates: Sequence[str], owner: str, *, now: datetime
    ) -> str | None:
        return await self._book.claim(pool, candidates, owner, now=now)

    async def unclaim(self, owner: str, *, now: datetime) -> None:
        await self._book.unclaim(owner, now=now)

    async def get_leftover(self, leftover_id: str) -> Leftover | None:
        return await self._book.get_leftover(leftover_id)

    def _handle_missing_order(self, copy: Order | None) -> Order | None:
        """Handles an order that the hub does not have. Returns the copy of an order that had ended.

        Such an order was forgotten on the hub by a process that died before it archived the copy.
        """
        if copy is None or copy.status.phase == OrderPhase.DELETED:
            return copy
        self._lost_copy = copy
        return None

    async def _update_copy(self, old_copy: Order | None, order: Order) -> None:
        new_copy = without_secrets(order)
        if old_copy is None:
            note = EventNote("Ordered", "Handed over to its hub")
            await self._write([Insert(new_copy, note=note)])
            return
        annotations = dict(new_copy.metadata.annotations)
        if RETRY_ANNOTATION in old_copy.metadata.annotations:
            annotations[RETRY_ANNOTATION] = old_copy.metadata.annotations[RETRY_ANNOTATION]
        metadata = msgspec.structs.replace(
            new_copy.metadata, annotations=annotations, version=old_copy.metadata.version
        )
        new_copy = msgspec.structs.replace(new_copy, metadata=metadata)
        if new_copy != old_copy:
            await self._write([Replace(new_copy, note=_make_phase_note(old_copy, new_copy))])

    async def _make_leftover_changes(self, order: Order, now: datetime) -> list[Change]:
        """Changes that copy the Leftover of a deleted order; none when there is no Leftover, or a copy exists."""
        if not order.status.receipt.leftover:
            return []
        if await self._ledger.documents.get(Leftover, order.id) is not None:
            return []
        leftover = await self._book.get_leftover(order.id) or Leftover(
            id=order.id,
            metadata=Metadata(
                name=order.id,
                tenant=order.metadata.tenant,
                creator="system",
                creation_timestamp=now,
            ),
            spec=LeftoverSpec(
                order=order.id, cluster_name=order.spec.cluster_name, hub=order.spec.hub
            ),
            status=LeftoverStatus(message="not released within the time a deletion may take"),
        )
        return make_leftover_copy_changes(leftover, now)

    async def _write(self, changes: Sequence[Change]) -> None:
        await self._ledger.commit(changes, lease=self._lease, now=self._now)


def make_leftover_copy_changes(leftover: Leftover, now: datetime) -> list[Change]:
    """Changes that store the copy of a hub's Leftover and make it due, so that the service follows it."""
    note = EventNote("Abandoned", "Kept on its hub until it is released there")
    return begin_leftover(leftover, note, now)


def begin_leftover(leftover: Leftover, note: EventNote, now: datetime) -> list[Change]:
    """Changes that store what could not be released in time, and make it due."""
    due = Due("Leftover", leftover.id, now, tenant=leftover.metadata.tenant, hub=leftover.spec.hub)
    return [Insert(leftover, note=note), due]


def without_secrets(order: Order) -> Order:
    return msgspec.structs.replace(
        order,
        spec=msgspec.structs.replace(order.spec, pull_secret="", secret_values=""),
        status=msgspec.structs.replace(order.status, credentials=NO_CREDENTIALS),
    )


def _make_phase_note(old_copy: Order, new_copy: Order) -> EventNote | None:
    phase = new_copy.status.phase
    if phase == old_copy.status.phase:
        return None
    return EventNote(phase.name.capitalize(), f"Order is {phase.name.lower()} on its hub")

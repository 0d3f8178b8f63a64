"""The order book that keeps orders in the ledger. Every write is guarded by the lease the book was opened with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from boatyard.ledger.changes import Archive, Change, Due, EventNote, Insert, Replace, Unclaim
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import WorkLease
from boatyard.model.errors import Precondition
from boatyard.model.generated.boatyard import Leftover, Order, OrderPhase, OrderSpec
from boatyard.model.generated.osac import Metadata


class EmbeddedOrderBook:
    def __init__(self, ledger: Ledger, lease: WorkLease | None = None) -> None:
        self._ledger = ledger
        self._lease = lease

    async def get(self, order_id: str) -> Order | None:
        return await self._ledger.documents.get(Order, order_id)

    async def put(self, order_id: str, *, tenant: str, spec: OrderSpec, now: datetime) -> None:
        order = await self.get(order_id)
        if order is None:
            metadata = Metadata(
                name=order_id, tenant=tenant, creation_timestamp=now, creator="system"
            )
            new = Order(id=order_id, metadata=metadata, spec=spec)
            await self._write(
                Insert(new, note=EventNote("Ordered", "Handed over to its hub")), new, now
            )
            return
        if order.metadata.deletion_timestamp is not None or order.spec == spec:
            return
        changed = msgspec.structs.replace(order, spec=spec)
        await self._write(Replace(changed), changed, now)

    async def request_delete(self, order_id: str, *, delete_by: datetime, now: datetime) -> None:
        order = await self.get(order_id)
        if order is None or order.metadata.deletion_timestamp is not None:
            return
        leaving = msgspec.structs.replace(
            order,
            metadata=msgspec.structs.replace(order.metadata, deletion_timestamp=now),
            spec=msgspec.structs.replace(order.spec, delete_by=delete_by),
        )
        await self._write(Replace(leaving), leaving, now)

    async def forget(self, order_id: str, *, tenant: str = "", now: datetime) -> None:
        order = await self.get(order_id)
        if order is None:
            return
        if order.status.phase != OrderPhase.DELETED:
            raise Precondition(f"order {order_id} has not ended yet")
        await self._ledger.commit([Archive(order)], lease=self._lease, now=now)

    async def claim(
        self, pool: str, candidates: Sequence[str], owner: str, *, now: datetime
    ) -> str | None:
        return await self._ledger.claims.claim(pool, candidates, owner, lease=self._lease, now=now)

    async def unclaim(self, owner: str, *, now: datetime) -> None:
        await self._ledger.commit([Unclaim(owner)], lease=self._lease, now=now)

    async def get_leftover(self, leftover_id: str) -> Leftover | None:
        return await self._ledger.documents.get(Leftover, leftover_id)

    async def _write(self, change: Change, order: Order, now: datetime) -> None:
        due = Due("Order", order.id, now, tenant=order.metadata.tenant, hub=order.spec.hub)
        await self._ledger.commit([change, due], lease=self._lease, now=now)

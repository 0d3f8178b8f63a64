"""Claims of identities, each held by one owner, and reservations within a capacity. A part of the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import msgspec

from boatyard.ledger.commit import encode_lease
from boatyard.ledger.connections import Connections
from boatyard.ledger.records import Claim, ClaimRequest, WorkLease

_OWNER_CONDITION = (
    "owner = $1 or (owner >= $1 || '/' and owner < $1 || '0')"  # '0' comes right after '/'
)


class Claims:
    """Rests on two unique keys: one owner per item, and one item per owner, in each pool."""

    def __init__(
        self, connections: Connections, on_write: Callable[[str], Awaitable[None]]
    ) -> None:
        """`on_write` is called with a label before and after each claim."""
        self._connections = connections
        self._report_write = on_write

    async def claim(
        self,
        pool: str,
        candidates: Sequence[str],
        owner: str,
        *,
        tenant: str = "",
        lease: WorkLease | None = None,
        now: datetime,
    ) -> str | None:
        """Returns what the owner holds of the pool, or else claims the first free candidate; None when all are taken.

        May be called any number of times. LeaseLost when another worker has the lease.
        """
        request = ClaimRequest(pool, candidates, owner)
        return (await self.claim_many([request], tenant=tenant, lease=lease, now=now))[0]

    async def claim_many(
        self,
        requests: Sequence[ClaimRequest],
        *,
        tenant: str = "",
        lease: WorkLease | None = None,
        now: datetime,
    ) -> list[str | None]:
        """Like `claim` for each of them, all in one transaction."""
        pools = ", ".join(sorted({request.pool for request in requests}))
        await self._report_write(f"before:claim:{pools}")
        items = await self._claim(requests, tenant=tenant, lease=lease, now=now)
        await self._report_write(f"after:claim:{pools}")
        return items

    async def _claim(
        self,
        requests: Sequence[ClaimRequest],
        *,
        tenant: str,
        lease: WorkLease | None,
        now: datetime,
    ) -> list[str | None]:
        # In the same order everywhere, so that concurrent claims cannot deadlock.
        indexes = sorted(range(len(requests)), key=lambda index: requests[index].pool)
        entries = [
            {"pool": request.pool, "candidates": list(request.candidates), "owner": request.owner}
            for request in (requests[index] for index in indexes)
        ]
        rows = await self._connections.write(
            "claiming",
            "select boatyard_claim($1, $2, $3, $4)",
            msgspec.json.encode(entries),
            encode_lease(lease),
            tenant,
            now,
        )
        items: list[str | None] = [None] * len(requests)
        for index, item in zip(indexes, rows[0][0], strict=True):
            items[index] = item
        return items

    async def list_by_owner(self, owner_prefix: str) -> list[Claim]:
        """The claims of this owner and of owners below it (`prefix/…`)."""
        query = (
            "select pool, item, owner, tenant, at from claims "
            f"where {_OWNER_CONDITION} order by pool, owner, item"
        )
        rows = await self._connections.read("reading claims", query, owner_prefix)
        return [Claim(*row) for row in rows]

    async def list_by_pool(self, pool: str) -> list[Claim]:
        """Everything claimed of a pool."""
        query = "select pool, item, owner, tenant, at from claims where pool = $1 order by item"
        rows = await self._connections.read("reading claims", query, pool)
        return [Claim(*row) for row in rows]

    async def sum_reserved(self, pool: str) -> int:
        """The sum of the pool's reservations."""
        query = "select coalesce(sum(used), 0)::bigint from pools where pool = $1"
        rows = await self._connections.read("reading reservations", query, pool)
        return int(rows[0][0])

    async def sum_reserved_by_pool(self) -> dict[str, int]:
        """The sum of the reservations of every pool that has some."""
        rows = await self._connections.read(
            "reading reservations", "select pool, used from pools where used > 0"
        )
        return {row[0]: row[1] for row in rows}

    async def list_reservations(self, owner: str) -> dict[str, int]:
        """The owner's amounts by pool."""
        query = "select pool, amount from reservations where owner = $1 order by pool"
        rows = await self._connections.read("reading reservations", query, owner)
        return {row[0]: row[1] for row in rows}

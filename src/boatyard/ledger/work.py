"""The queue of due objects: leased to workers, fair between tenants. A part of the ledger; commits finish leases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.connections import Connections
from boatyard.ledger.records import WorkLease

# `attempts` counts the leases taken since a pass last ended, so that workers that died are counted.
# The query hops from tenant to tenant through the index, reads the most overdue rows of each, and takes one
# of each tenant before a second of any. Rows locked by others are skipped, so it reads more than it takes.
_TAKE_QUERY = """
with recursive tenants as (
    (select w.tenant from work w order by w.tenant limit 1)
    union all
    select n.tenant from tenants t,
        lateral (select w.tenant from work w where w.tenant > t.tenant order by w.tenant limit 1) n
), ranked as (
    select q.kind, q.id, q.due, row_number() over (partition by t.tenant order by q.due) as place
        from tenants t, lateral (
            select w.kind, w.id, w.due from work w
                where w.tenant = t.tenant and w.due <= $5 and w.kind = any ($1::text[])
                order by w.due limit $2::int * greatest(1, 4 / (select count(*) from tenants))
        ) q
), chosen as materialized (
    select kind, id, place, due from ranked order by place, due limit 4 * $2::int
), locked as materialized (
    select w.kind, w.id, c.place, c.due
        from chosen c join work w on w.kind = c.kind and w.id = c.id
        where w.due <= $5
        order by c.place, c.due limit $2::int
        for update of w skip locked
), taken as (
    update work w set due = $3, token = nextval('work_token'), worker = $4,
            attempts = w.attempts + 1, poked = case when w.poked > $5 then w.poked end
        from locked l where w.kind = l.kind and w.id = l.id
        returning w.kind, w.id, w.tenant, w.hub, w.attempts, w.token, w.waiting_for, l.place, l.due
)
select kind, id, tenant, hub, attempts, token, waiting_for, pg_current_snapshot()::text as seen
    from taken order by place, due
"""

_EXTEND_QUERY = """
with held as (
    select w.kind, w.id from work w
        join jsonb_to_recordset($1) as x (kind text, id text, token bigint)
            on w.kind = x.kind and w.id = x.id and w.token = x.token
        order by w.kind, w.id
        for update of w
)
update work w set due = $2 from held h where w.kind = h.kind and w.id = h.id
    returning w.kind, w.id
"""

_REFUND_QUERY = (
    "update work set attempts = attempts - 1 where kind = $1 and id = $2 and attempts > 0"
)

_NEXT_DUE_QUERY = """
with recursive tenants as (
    (select tenant, due from work order by tenant, due limit 1)
    union all
    select n.tenant, n.due from tenants t, lateral (
        select w.tenant, w.due from work w where w.tenant > t.tenant order by w.tenant, w.due limit 1
    ) n
)
select min(due) from tenants
"""


class WorkTable:
    """The work table. While a row is leased, its `due` is the end of the lease."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def take(
        self, *, kinds: Sequence[str], limit: int, lease_seconds: float, worker: str, now: datetime
    ) -> list[WorkLease]:
        """Leases due objects: one of each tenant before a second of any, the most overdue first."""
        until = now + timedelta(seconds=lease_seconds)
        rows = await self._connections.write(
            "taking work", _TAKE_QUERY, list(kinds), limit, until, worker, now
        )
        return [
            WorkLease(
                kind=row["kind"],
                id=row["id"],
                tenant=row["tenant"],
                hub=row["hub"],
                attempts=row["attempts"],
                token=row["token"],
                until=until,
                waiting_for=row["waiting_for"],
                snapshot=row["seen"],
            )
            for row in rows
        ]

    async def extend(
        self, leases: Sequence[WorkLease], lease_seconds: float, now: datetime
    ) -> set[tuple[str, str]]:
        """Extends the leases that are still held, and returns them as (kind, id)."""
        entries = [{"kind": lease.kind, "id": lease.id, "token": lease.token} for lease in leases]
        until = now + timedelta(seconds=lease_seconds)
        rows = await self._connections.write(
            "extending leases", _EXTEND_QUERY, msgspec.json.encode(entries), until
        )
        return {(row["kind"], row["id"]) for row in rows}

    async def refund_attempt(self, lease: WorkLease) -> None:
        """Counts one attempt less, for a worker that lost its lease because it was slow and not because it died."""
        await self._connections.write("forgiving", _REFUND_QUERY, lease.kind, lease.id)

    async def next_due(self) -> datetime | None:
        """The earliest time at which something is due or a lease ends; None when there is nothing."""
        rows = await self._connections.read("reading what is due", _NEXT_DUE_QUERY)
        due: datetime | None = rows[0][0]
        return due

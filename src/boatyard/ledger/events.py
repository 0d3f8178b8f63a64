"""The event log: numbered by a publisher, read by watchers. A part of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from boatyard.ledger.connections import Connections
from boatyard.ledger.records import EventRow
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Refused

BATCH_SIZE = 1000
_COLUMNS = "seq, kind, id, tenant, type, at, reason, message, data"

# Returns the log's bounds with the rows, from the same snapshot, also when there are no rows.
_AFTER_QUERY = f"""
select l.last_seq, l.trimmed, e.* from event_log l left join lateral (
    select {_COLUMNS} from events
        where seq > $1
            and ($3::text[] is null or tenant = any ($3::text[]))
            and ($4::text[] is null or kind = any ($4::text[]))
        order by seq limit $2
) e on true order by e.seq
"""

_HISTORY_QUERY = f"""
select {_COLUMNS} from events
    where seq is not null and (kind, id) in (select * from unnest($1::text[], $2::text[]))
    order by seq desc limit $3
"""


class Events:
    """Events numbered without gaps; the events of one object are in the order of their commits."""

    def __init__(self, connections: Connections, seal: Seal) -> None:
        self._connections = connections
        self._seal = seal

    async def publish(self, *, poke: bool = False) -> int:
        """Numbers all events committed before the call, and returns how many. `poke` always wakes other processes."""
        total = 0
        while True:
            numbered = await self._publish(many=BATCH_SIZE, poke=poke and total == 0)
            total += numbered
            if numbered < BATCH_SIZE:
                return total

    async def _publish(self, *, many: int, poke: bool) -> int:
        rows = await self._connections.write(
            "publishing events", "select boatyard_publish($1, $2)", many, poke
        )
        return int(rows[0][0])

    async def list_after(
        self,
        seq: int,
        limit: int,
        *,
        tenants: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
    ) -> list[EventRow]:
        """Events with larger numbers, in order. Refused when `seq` was trimmed or does not exist yet."""
        rows = await self._connections.read(
            "reading events", _AFTER_QUERY, seq, limit, tenants, kinds
        )
        last, trimmed = rows[0]["last_seq"], rows[0]["trimmed"]
        if seq < trimmed:
            oldest = self._seal.event_id(trimmed)
            raise Refused(
                f"events up to that one are no longer kept; the oldest id to resume after is {oldest}",
                reason="EventsTrimmed",
            )
        if seq > last:
            raise Refused(
                "there is no such event yet; watch from now instead", reason="NoSuchEvent"
            )
        return [_to_event_row(row) for row in rows if row["seq"] is not None]

    async def first_seq(self) -> int:
        """The number of the oldest event that is not trimmed; it may not exist yet."""
        return (await self._read_bounds())[0]

    async def last_seq(self) -> int:
        """The number of the last published event; 0 when there is none."""
        return (await self._read_bounds())[1]

    async def _read_bounds(self) -> tuple[int, int]:
        query = "select trimmed + 1, last_seq from event_log"
        rows = await self._connections.read("reading the event log", query)
        return rows[0][0], rows[0][1]

    async def list_history(self, kind_ids: Sequence[tuple[str, str]], limit: int) -> list[EventRow]:
        """The latest published events of some objects, oldest first."""
        kinds, ids = [kind for kind, _ in kind_ids], [id for _, id in kind_ids]
        rows = await self._connections.read("reading events", _HISTORY_QUERY, kinds, ids, limit)
        return [_to_event_row(row) for row in reversed(rows)]

    async def trim(self, before: datetime) -> int:
        """Deletes the oldest events, all of them older than `before`, and returns how many."""
        rows = await self._connections.write("trimming events", "select boatyard_trim($1)", before)
        return int(rows[0][0])


def _to_event_row(row: asyncpg.Record) -> EventRow:
    return EventRow(
        seq=row["seq"],
        kind=row["kind"],
        id=row["id"],
        tenant=row["tenant"],
        type=row["type"],
        at=row["at"],
        reason=row["reason"],
        message=row["message"],
        doc=row["data"],
    )

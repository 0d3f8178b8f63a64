"""Logs of the runs of templates' roles, stored by order. Written by the steps of orders, read by the API.

Bounded: of each order the newest lines are kept, the oldest are dropped. Adding is idempotent: a line is identified
by its order, run, start and number, so a worker that is killed between reading and storing lines just does both
again. For the same reason no lease is needed: a worker that lost its lease adds the lines that its successor adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg
import msgspec

from boatyard.ledger.connections import Connections

MOST_LINES = 2000  # of one order
MOST_BYTES = 1024 * 1024
_ROW_OVERHEAD_BYTES = 64  # bytes of a line besides its texts

_COLUMNS = "seq, run, part, attempt, start, number, at, kind, task, text, shown_task, shown_text"

# Returns the count of dropped lines with the lines, from the same snapshot, also when there are no lines.
_READ_QUERY = f"""
select s.last_seq, s.dropped, l.* from stories s left join lateral (
    select {_COLUMNS} from story_lines
        where order_id = s.order_id and seq > $2
            and ($3 = '' or $3 in (run, part, split_part(run, '/', 1)))
        order by seq limit $4
) l on true where s.order_id = $1 order by l.seq
"""

_LAST_QUERY = """
select start, number, kind from story_lines where order_id = $1 and run = $2 order by seq desc limit 1
"""


@dataclass(frozen=True)
class StoredLogLine:
    """One line. `seq` is its position among all lines of the order, assigned when it is stored.

    `shown_task` and `shown_text` are what tenants read; None: the same as `task` and `text`.
    """

    run: str  # the item's key
    part: str  # of the role: "post_install"
    attempt: int
    start: str
    number: int
    at: datetime
    kind: str
    task: str = ""
    text: str = ""
    shown_task: str | None = None
    shown_text: str | None = None
    seq: int = 0


@dataclass(frozen=True)
class LastLogLine:
    start: str
    number: int
    kind: str


@dataclass(frozen=True)
class RunLogPage:
    """Some lines of an order, in order. `missing` counts the dropped lines between `after` and the first."""

    lines: tuple[StoredLogLine, ...] = ()
    missing: int = 0
    last_seq: int = 0  # of all lines of the order


class RunLogTable:
    def __init__(
        self,
        connections: Connections,
        *,
        most_lines: int = MOST_LINES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._connections = connections
        self._most_lines = most_lines
        self._most_bytes = most_bytes

    async def store_lines(
        self, order_id: str, run: str, lines: Sequence[StoredLogLine], now: datetime
    ) -> int:
        """Adds the lines that are not stored yet, all or none, and returns how many were added.

        May be called any number of times and by several workers at once. The lines are of this one run.
        """
        lines_by_key = {(line.start, line.number): line for line in lines}
        if not lines_by_key:
            return 0
        payload = [_to_row(place, line) for place, line in enumerate(lines_by_key.values())]
        rows = await self._connections.write(
            "keeping a run's story",
            "select boatyard_tell($1, $2, $3, $4, $5, $6)",
            order_id,
            run,
            msgspec.json.encode(payload),
            self._most_lines,
            self._most_bytes,
            now,
        )
        return int(rows[0][0])

    async def read_last_line(self, order_id: str, run: str) -> LastLogLine | None:
        """The last stored line of a run."""
        rows = await self._connections.read("reading a run's story", _LAST_QUERY, order_id, run)
        return LastLogLine(*rows[0]) if rows else None

    async def read_lines(
        self, order_id: str, *, after: int = 0, run: str = "", limit: int = MOST_LINES
    ) -> RunLogPage:
        """Lines after `after`: of all runs, or of those whose key, beginning of the key, or role part is `run`."""
        rows = await self._connections.read(
            "reading an order's story", _READ_QUERY, order_id, after, run, limit
        )
        if not rows:
            return RunLogPage()
        lines = tuple(_from_row(row) for row in rows if row["seq"] is not None)
        missing = max(0, rows[0]["dropped"] - after)
        return RunLogPage(lines, missing, rows[0]["last_seq"])

    async def delete_old(self, before: datetime) -> int:
        """Deletes the logs of orders that were archived and got their last line before that time. Returns how many."""
        rows = await self._connections.write(
            "forgetting stories", "select boatyard_forget_stories($1)", before
        )
        return int(rows[0][0])


def _to_row(place: int, line: StoredLogLine) -> dict[str, object]:
    texts = (line.task, line.text, line.shown_task or "", line.shown_text or "")
    return {
        "place": place,
        "part": line.part,
        "attempt": line.attempt,
        "start": line.start,
        "number": line.number,
        "at": line.at,
        "kind": line.kind,
        "task": line.task,
        "text": line.text,
        "shown_task": line.shown_task,
        "shown_text": line.shown_text,
        "bytes": _ROW_OVERHEAD_BYTES + sum(len(text.encode()) for text in texts),
    }


def _from_row(row: asyncpg.Record) -> StoredLogLine:
    return StoredLogLine(**{name: row[name] for name in _COLUMNS.split(", ")})

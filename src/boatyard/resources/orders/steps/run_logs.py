"""Copies the log of a role run into the ledger, where every API server can read it. Called by the role step.

The copy is made before the order is written, so whoever sees that a run has ended finds its whole log. If the worker
is killed in between, the next pass copies again; lines that are stored already are not stored twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Protocol

from boatyard.automation.port import Automation, RunEvent
from boatyard.ledger.run_logs import LastLogLine, StoredLogLine
from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import Item, Order
from boatyard.resources.orders.item_graph import ITEM_KINDS
from boatyard.resources.orders.redaction import collect_provider_names, redact_names

logger = logging.getLogger(__name__)

END_LINE_KIND = "end"  # kind of the last line of a run
LONGEST_TEXT, LONGEST_NAME = 4000, 300  # characters
_MOST_PAGES = 100  # read at once; drivers limit the length of a log, and a page is many lines


class RunLogSink(Protocol):
    """The store of run logs. The ledger has the real one."""

    async def read_last_line(self, order_id: str, run: str) -> LastLogLine | None:
        """The last stored line of a run; None when there is none."""

    async def store_lines(
        self, order_id: str, run: str, lines: Sequence[StoredLogLine], now: datetime
    ) -> int:
        """Stores the lines that are not stored yet and returns how many. May be called any number of times."""


class NoRunLogSink:
    """Stores nothing: for processes without a ledger, such as the operator of a Kubernetes hub."""

    async def read_last_line(self, order_id: str, run: str) -> LastLogLine | None:
        return None

    async def store_lines(
        self, order_id: str, run: str, lines: Sequence[StoredLogLine], now: datetime
    ) -> int:
        return 0


@dataclass(frozen=True)
class RunLogCopier:
    """Copies the log of one run of one order."""

    order: Order
    items: tuple[Item, ...]
    item: Item
    automation: Automation
    run_logs: RunLogSink
    now: datetime

    async def copy_new_lines(self) -> None:
        """Stores the new lines. Raises Unavailable when the store does not answer; the step is then tried again."""
        try:
            await self._copy_lines()
        except Refused as error:
            # These lines can never be stored. The run itself must not fail because of that.
            logger.warning(
                "run log not stored",
                extra={"order": self.order.id, "run": self._run_key, "why": str(error)},
            )

    async def write_end_line(self) -> None:
        """Ends the log once the run is released: a log without an end line gets one that says so."""
        last = await self.run_logs.read_last_line(self.order.id, self._run_key)
        if last is None or last.kind == END_LINE_KIND:
            return
        text = "released; what it said last was not heard"
        event = RunEvent(last.number + 1, "", END_LINE_KIND, text=text, start=last.start)
        await self.run_logs.store_lines(
            self.order.id, self._run_key, [self._to_log_line(event)], self.now
        )

    async def count_tasks(self) -> tuple[int, int]:
        """How many tasks ran since the last start of the run, and how many of them changed something."""
        events = await self._events(0)
        start = events[-1].start if events else ""
        kinds = [event.kind for event in events if event.start == start]
        return kinds.count("task"), kinds.count("changed")

    @property
    def _run_key(self) -> str:
        return self.item.key

    async def _copy_lines(self) -> None:
        last = await self.run_logs.read_last_line(self.order.id, self._run_key)
        events = await self._read_new_events(last)
        lines = [self._to_log_line(event) for event in events]
        await self.run_logs.store_lines(self.order.id, self._run_key, lines, self.now)

    async def _read_new_events(self, last: LastLogLine | None) -> list[RunEvent]:
        """The events after the last stored line.

        That line is read again too: if it is a different one, the run was started again, and all events are new.
        """
        if last is None:
            return await self._events(0)
        events = await self._events(last.number - 1)
        if events and (events[0].number, events[0].start) == (last.number, last.start):
            return events[1:]
        return await self._events(0)

    async def _events(self, after: int) -> list[RunEvent]:
        events: list[RunEvent] = []
        key = f"{self.order.id}/{self._run_key}"
        for _ in range(_MOST_PAGES):
            page = await self.automation.events(key, events[-1].number if events else after)
            if not page:
                break
            events += page
        return events

    def _to_log_line(self, event: RunEvent) -> StoredLogLine:
        task, text = _clean_text(event.task, LONGEST_NAME), _clean_text(event.text, LONGEST_TEXT)
        line = StoredLogLine(
            run=self._run_key,
            part=ITEM_KINDS[self.item.kind].phase,
            attempt=event.attempt,
            start=event.start,
            number=event.number,
            at=_parse_time(event.at) or self.now,
            kind=event.kind,
            task=task,
            text=text,
        )
        # The provider's names are removed now, while the order still knows them: later its items are released.
        shown_task, shown_text = (
            redact_names(task, self._provider_names),
            redact_names(text, self._provider_names),
        )
        if (shown_task, shown_text) == (task, text):
            return line
        return replace(line, shown_task=shown_task, shown_text=shown_text)

    @cached_property
    def _provider_names(self) -> dict[str, str]:
        return collect_provider_names(self.order, self.items)


def _clean_text(text: str, longest: int) -> str:
    """The text without what the ledger cannot store, shortened to `longest` characters."""
    clean = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def _parse_time(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None

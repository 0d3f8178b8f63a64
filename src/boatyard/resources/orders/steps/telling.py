"""Copies what a run tells to where every server of ours can read it. Called by the steps that run roles, at each look.

The copy is made before the order is written: who sees that a run has ended finds its whole story. Killed in between,
the next look copies again, and what is known already is not kept twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Protocol

from boatyard.automation.port import Automation, RunEvent
from boatyard.ledger.stories import LastLine, StoryLine
from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import Item, Order
from boatyard.resources.orders.road import KINDS
from boatyard.resources.orders.words import hidden, names_of_ours

logger = logging.getLogger(__name__)

END = "end"  # kind of the last line of a run
LONGEST_TEXT, LONGEST_NAME = 4000, 300  # characters
_MOST_PAGES = 100  # of one look; drivers bound their stories, and a page is many lines


class Stories(Protocol):
    """Where stories are kept. The ledger's `Stories` is one."""

    async def last(self, order_id: str, run: str) -> LastLine | None:
        """The last line that is kept of a run; None when there is none."""

    async def keep(self, order_id: str, run: str, lines: Sequence[StoryLine], now: datetime) -> int:
        """Adds the lines that are not known yet. May be called any number of times."""


class NoStories:
    """For who has no place for them, such as the operator of a Kubernetes hub."""

    async def last(self, order_id: str, run: str) -> LastLine | None:
        return None

    async def keep(self, order_id: str, run: str, lines: Sequence[StoryLine], now: datetime) -> int:
        return 0


@dataclass(frozen=True)
class Telling:
    """The story of one run of one order."""

    order: Order
    items: tuple[Item, ...]
    item: Item
    automation: Automation
    stories: Stories
    now: datetime

    async def copy(self) -> None:
        """Keeps what is new. Unavailable when it cannot be kept now: then the look is made again."""
        try:
            await self._copy()
        except Refused as error:
            # It never can be kept. The run itself must not suffer from it.
            logger.warning(
                "story not kept",
                extra={"order": self.order.id, "run": self._run, "why": str(error)},
            )

    async def close(self) -> None:
        """To be called once the run is released: a story that stops in the middle says so."""
        last = await self.stories.last(self.order.id, self._run)
        if last is None or last.kind == END:
            return
        text = "released; what it said last was not heard"
        event = RunEvent(last.number + 1, "", END, text=text, start=last.start)
        await self.stories.keep(self.order.id, self._run, [self._line(event)], self.now)

    async def tally(self) -> tuple[int, int]:
        """How many tasks the last start of the run has come to, and how many of them changed something."""
        events = await self._events(0)
        start = events[-1].start if events else ""
        kinds = [event.kind for event in events if event.start == start]
        return kinds.count("task"), kinds.count("changed")

    @property
    def _run(self) -> str:
        return self.item.key

    async def _copy(self) -> None:
        last = await self.stories.last(self.order.id, self._run)
        events = await self._news(last)
        lines = [self._line(event) for event in events]
        await self.stories.keep(self.order.id, self._run, lines, self.now)

    async def _news(self, last: LastLine | None) -> list[RunEvent]:
        """What was told since. The last known line is asked for too: is it another, the story has begun anew."""
        if last is None:
            return await self._events(0)
        events = await self._events(last.number - 1)
        if events and (events[0].number, events[0].start) == (last.number, last.start):
            return events[1:]
        return await self._events(0)

    async def _events(self, after: int) -> list[RunEvent]:
        events: list[RunEvent] = []
        key = f"{self.order.id}/{self._run}"
        for _ in range(_MOST_PAGES):
            page = await self.automation.events(key, events[-1].number if events else after)
            if not page:
                break
            events += page
        return events

    def _line(self, event: RunEvent) -> StoryLine:
        task, text = _plain(event.task, LONGEST_NAME), _plain(event.text, LONGEST_TEXT)
        line = StoryLine(
            run=self._run,
            part=KINDS[self.item.kind].phase,
            attempt=event.attempt,
            start=event.start,
            number=event.number,
            at=_moment(event.at) or self.now,
            kind=event.kind,
            task=task,
            text=text,
        )
        # Names of ours are known now; once the order's things are released nobody could tell them any more.
        shown_task, shown_text = hidden(task, self._names), hidden(text, self._names)
        if (shown_task, shown_text) == (task, text):
            return line
        return replace(line, shown_task=shown_task, shown_text=shown_text)

    @cached_property
    def _names(self) -> dict[str, str]:
        return names_of_ours(self.order, self.items)


def _plain(text: str, longest: int) -> str:
    """As the ledger can keep it, whatever a driver says."""
    clean = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None

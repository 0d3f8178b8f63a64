"""Watches on events. One task per process reads the event log; every watcher has a small queue of its own.

A watcher that falls behind reads from the log until it has caught up; one whose client does not read
at all is disconnected, and may resume after the last event it has read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import msgspec

from boatyard.api import policy
from boatyard.api.answers import Answers, OnStart, Part
from boatyard.api.crud import Call, compile_predicate
from boatyard.api.kinds import KINDS, OSAC_PRIVATE, OSAC_PUBLIC, ResourceKind
from boatyard.api.permissions import Verb
from boatyard.api.requests import WatchRequest
from boatyard.ledger.filters.conditions import Predicate
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import EventRow
from boatyard.model import wire
from boatyard.model.errors import Refused, Unavailable, Violation
from boatyard.model.generated import convert
from boatyard.model.generated.osac import Event, EventType

logger = logging.getLogger(__name__)

QUEUE_SIZE = 256  # events a watcher may be behind before it reads from the log
PAGE_EVENTS = 500
POLL_SECONDS = 2.0  # how long a lost wake-up can go unnoticed
BOOKMARK_SECONDS = 30.0
_RETRY_SECONDS = 0.5

_RESPONSE_TYPES = {
    package: wire.message(f"{package}.EventsWatchResponse")
    for package in (OSAC_PUBLIC, OSAC_PRIVATE)
}


@dataclass(frozen=True)
class EventEntry:
    """One event of the log, decoded once and sent to many watchers."""

    row: EventRow
    id: str

    @property
    def kind(self) -> ResourceKind | None:
        return KINDS.get(self.row.kind)

    @cached_property
    def event(self) -> Event:
        kind = KINDS[self.row.kind]
        doc = msgspec.json.decode(self.row.doc or b"{}", type=kind.struct)
        if self.row.doc is None:
            doc = msgspec.structs.replace(doc, id=self.row.id)
        payload: dict[str, Any] = {kind.field: doc}
        return Event(
            id=self.id,
            type=EventType(self.row.type),
            at=self.row.at,
            reason=self.row.reason,
            message=self.row.message,
            **payload,
        )

    @cached_property
    def public(self) -> Part:
        return _event_part(self.event, OSAC_PUBLIC)

    @cached_property
    def private(self) -> Part:
        return _event_part(self.event, OSAC_PRIVATE)


class Watcher:
    """One watch's position in the log, and a queue of the events after it."""

    def __init__(self, watches: EventWatchers, seq: int, tenants: Sequence[str] | None) -> None:
        self._watches = watches
        self.seq = seq
        self._tenants = tenants
        self._queue: deque[EventEntry] = deque()
        self._new_events = asyncio.Event()
        self._live_from: int | None = None  # the queue holds everything above; None: read the log

    def queue_entries(self, entries: Sequence[EventEntry]) -> None:
        """Queues a batch of new events. Called by the log's reader; never waits."""
        self._new_events.set()
        if self._live_from is None:
            return
        if len(self._queue) + len(entries) > QUEUE_SIZE:
            self._queue.clear()
            self._live_from = None
            return
        self._queue.extend(entries)

    async def next_entries(self, timeout: float) -> list[EventEntry]:
        """Returns the next events, in order and without gaps; empty after the timeout."""
        while True:
            self._watches.check_running()
            if self._live_from is None:
                entries = await self._catch_up()
            else:
                entries = [entry for entry in self._queue if entry.row.seq > self.seq]
                self._queue.clear()
                if entries:
                    self.seq = entries[-1].row.seq
            visible_entries = [entry for entry in entries if self._can_see(entry)]
            if visible_entries:
                return visible_entries
            if self._live_from is None or self._queue:
                continue
            if not await self._wait_for_events(timeout):
                return []

    def last_passed_seq(self) -> int:
        """The number of the last event that this watcher has passed, visible to it or not."""
        if self._live_from is not None and not self._queue:
            return max(self.seq, self._watches.seq)
        return self.seq

    async def _catch_up(self) -> list[EventEntry]:
        """Reads a page of the log; after the last page the watcher goes back to its queue."""
        upto = self._watches.seq
        self._new_events.clear()
        if self.seq >= upto:
            self._queue.clear()
            self._live_from = upto
            return []
        rows = await self._watches.ledger.events.list_after(
            self.seq, PAGE_EVENTS, tenants=self._tenants
        )
        entries = [self._watches.make_entry(row) for row in rows if row.seq <= upto]
        self.seq = entries[-1].row.seq if len(rows) == PAGE_EVENTS and entries else upto
        return entries

    def _can_see(self, entry: EventEntry) -> bool:
        return self._tenants is None or entry.row.tenant in self._tenants

    async def _wait_for_events(self, timeout: float) -> bool:
        try:
            async with asyncio.timeout(timeout):
                await self._new_events.wait()
        except TimeoutError:
            return False
        finally:
            self._new_events.clear()
        return True


class EventWatchers:
    """The reader of the event log, and the watchers that it serves."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._watchers: set[Watcher] = set()
        self._has_watchers = asyncio.Event()
        self.seq = 0  # the last event that was offered to the watchers
        self._stopping = False

    async def run(self) -> None:
        """Reads the log until cancelled, and hands every batch to all watchers at once."""
        async with self.ledger.publish_notifier.subscribe() as wake:
            while True:
                await self._has_watchers.wait()
                try:
                    full = await self._read_page()
                except Exception as error:
                    # After any error the reader goes on: otherwise watchers would wait for ever.
                    level = logging.WARNING if isinstance(error, Unavailable) else logging.ERROR
                    logger.log(level, "events cannot be read", exc_info=True)
                    await asyncio.sleep(_RETRY_SECONDS)
                    continue
                if not full:
                    await wake.wait(POLL_SECONDS)

    def stop(self) -> None:
        """Ends every watch; clients may resume on another server."""
        self._stopping = True
        for watcher in self._watchers:
            watcher.queue_entries(())

    def check_running(self) -> None:
        if self._stopping:
            raise Unavailable("the server is stopping; resume after the last event you have read")

    def make_entry(self, row: EventRow) -> EventEntry:
        return EventEntry(row, self.ledger.seal.event_id(row.seq))

    async def _read_page(self) -> bool:
        """Reads a page and offers it to the watchers. Returns whether more may be there already."""
        seq = self.seq
        rows = await self.ledger.events.list_after(seq, PAGE_EVENTS)
        if self.seq != seq:
            return True  # the last watcher left and another came, who begins elsewhere
        if not rows:
            return False
        entries = [self.make_entry(row) for row in rows]
        self.seq = rows[-1].seq
        for watcher in self._watchers:
            watcher.queue_entries(entries)
        return len(rows) == PAGE_EVENTS

    async def add_watcher(self, after: str | None, tenants: Sequence[str] | None) -> Watcher:
        """Returns a watcher that starts now, or after an event. The caller must release it with `remove_watcher`."""
        self.check_running()
        if after:
            seq = self.ledger.seal.event_seq(after)
            await self.ledger.events.list_after(
                seq, 1, tenants=()
            )  # refuses what is no longer kept
            last = await self.ledger.events.last_seq()
        else:
            await self.ledger.events.publish()
            seq = last = await self.ledger.events.last_seq()
        # Without watchers the log is not read: the first watcher sets where reading starts.
        if not self._watchers:
            self.seq = last
        watcher = Watcher(self, seq, tenants)
        self._watchers.add(watcher)
        self._has_watchers.set()
        return watcher

    def remove_watcher(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)
        if not self._watchers:
            self._has_watchers.clear()

    def answers(self) -> Mapping[str, Answers]:
        return {
            f"{package}.Events": Answers(streams={"Watch": partial(self.watch, package)})
            for package in (OSAC_PUBLIC, OSAC_PRIVATE)
        }

    async def watch(
        self, package: str, request: WatchRequest, call: Call, on_start: OnStart
    ) -> AsyncIterator[Part]:
        """Implements Events/Watch of both packages. Calls `on_start` with the id after which the watch starts.

        A request that sets `after`, even to the empty string, also gets bookmarks: one at the start, and
        one whenever no event came for a while.
        """
        private = package == OSAC_PRIVATE
        policy.check(call.caller, Verb.WATCH, "Event", private=private)
        predicate = (
            compile_predicate(request.filter, f"{package}.Event", "event")
            if request.filter
            else None
        )
        bookmarks = request.HasField("after")
        watcher = await self.add_watcher(_parse_after(request), call.caller.visible_tenants)
        try:
            start = self.ledger.seal.resume_id(watcher.seq)
            await on_start(start)
            if bookmarks:
                yield self._bookmark(package, watcher.seq)
            while True:
                entries = await watcher.next_entries(BOOKMARK_SECONDS)
                for entry in entries:
                    if _is_shown(entry, predicate, private=private):
                        yield entry.private if private else entry.public
                if bookmarks and not entries:
                    yield self._bookmark(package, watcher.last_passed_seq())
        finally:
            self.remove_watcher(watcher)

    def _bookmark(self, package: str, seq: int) -> Part:
        return _event_part(Event(id=self.ledger.seal.resume_id(seq), bookmark=True), package)


def _parse_after(request: WatchRequest) -> str:
    after = request.after
    if len(after) > 64:
        raise Refused("", Violation("after", "is not an event id of this service"))
    return after


def _is_shown(entry: EventEntry, predicate: Predicate | None, *, private: bool) -> bool:
    kind = entry.kind
    if kind is None or kind.written_by_service or kind.in_boatyard_package:
        return False  # orders, leftovers and backups have their own calls
    if not private and (not kind.public or entry.row.type == EventType.OBJECT_SIGNALED):
        return False
    return predicate is None or predicate.matches(entry.event)


def _event_part(event: Event, package: str) -> Part:
    fields = convert.TO_FIELDS[f"{package}.Event"](event)
    return Part(_RESPONSE_TYPES[package](event=fields).SerializeToString(), event.id)

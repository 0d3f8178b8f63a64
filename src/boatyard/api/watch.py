"""Watches on events. One task per process reads the event log; every watcher has a small queue of its own.

A watcher that falls behind reads from the log until it has caught up; one whose client does not read
at all is disconnected, and may resume after the last event it has read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from boatyard.api import policy
from boatyard.api.crud import Call, compiled
from boatyard.api.kinds import KINDS, PRIVATE, PUBLIC, Kind
from boatyard.api.policy import Verb
from boatyard.ledger.filters.conditions import Predicate
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import EventRow
from boatyard.model import wire
from boatyard.model.errors import Refused, Unavailable, Violation
from boatyard.model.generated import convert
from boatyard.model.generated.osac import Event, EventType

logger = logging.getLogger(__name__)

QUEUE = 256  # events a watcher may be behind before it reads from the log
PAGE = 500
LOOK_SECONDS = 2.0  # how long a lost wake-up can go unnoticed
BOOKMARK_SECONDS = 30.0
_RETRY_SECONDS = 0.5

_RESPONSE = {
    package: wire.message(f"{package}.EventsWatchResponse") for package in (PUBLIC, PRIVATE)
}


@dataclass(frozen=True)
class Part:
    """One serialized message of a stream; `id` is the event id to resume after, where there is one."""

    data: bytes
    id: str = ""


@dataclass(frozen=True)
class Entry:
    """One event of the log, decoded once and sent to many watchers."""

    row: EventRow
    id: str

    @property
    def kind(self) -> Kind | None:
        return KINDS.get(self.row.kind)

    @cached_property
    def event(self) -> Event:
        kind = KINDS[self.row.kind]
        doc = msgspec.json.decode(self.row.doc or b"{}", type=kind.struct)
        if self.row.doc is None:
            doc = msgspec.structs.replace(doc, id=self.row.id)
        return Event(
            id=self.id,
            type=EventType(self.row.type),
            at=self.row.at,
            reason=self.row.reason,
            message=self.row.message,
            **{kind.field: doc},
        )

    @cached_property
    def public(self) -> Part:
        return _part(self.event, PUBLIC)

    @cached_property
    def private(self) -> Part:
        return _part(self.event, PRIVATE)


class Watcher:
    """One watch's position in the log, and a queue of the events after it."""

    def __init__(self, watches: Watches, seq: int, tenants: Sequence[str] | None) -> None:
        self._watches = watches
        self.seq = seq
        self._tenants = tenants
        self._queue: deque[Entry] = deque()
        self._bell = asyncio.Event()
        self._live_from: int | None = None  # the queue holds everything above; None: read the log

    def offer(self, entries: Sequence[Entry]) -> None:
        """Queues a batch of new events. Called by the log's reader; never waits."""
        self._bell.set()
        if self._live_from is None:
            return
        if len(self._queue) + len(entries) > QUEUE:
            self._queue.clear()
            self._live_from = None
            return
        self._queue.extend(entries)

    async def entries(self, timeout: float) -> list[Entry]:
        """Returns the next events, in order and without gaps; empty after the timeout."""
        while True:
            self._watches.check()
            if self._live_from is None:
                entries = await self._catch_up()
            else:
                entries = [entry for entry in self._queue if entry.row.seq > self.seq]
                self._queue.clear()
                if entries:
                    self.seq = entries[-1].row.seq
            visible_entries = [entry for entry in entries if self._sees(entry)]
            if visible_entries:
                return visible_entries
            if self._live_from is None or self._queue:
                continue
            if not await self._ring(timeout):
                return []

    def at(self) -> int:
        """The number of the last event that this watcher has passed, visible to it or not."""
        if self._live_from is not None and not self._queue:
            return max(self.seq, self._watches.seq)
        return self.seq

    async def _catch_up(self) -> list[Entry]:
        """Reads a page of the log; after the last page the watcher goes back to its queue."""
        upto = self._watches.seq
        self._bell.clear()
        if self.seq >= upto:
            self._queue.clear()
            self._live_from = upto
            return []
        rows = await self._watches.ledger.events.after(self.seq, PAGE, tenants=self._tenants)
        entries = [self._watches.entry(row) for row in rows if row.seq <= upto]
        self.seq = entries[-1].row.seq if len(rows) == PAGE and entries else upto
        return entries

    def _sees(self, entry: Entry) -> bool:
        return self._tenants is None or entry.row.tenant in self._tenants

    async def _ring(self, timeout: float) -> bool:
        try:
            async with asyncio.timeout(timeout):
                await self._bell.wait()
        except TimeoutError:
            return False
        finally:
            self._bell.clear()
        return True


class Watches:
    """The reader of the event log, and the watchers that it serves."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._watchers: set[Watcher] = set()
        self._watched = asyncio.Event()
        self.seq = 0  # the last event that was offered to the watchers
        self._stopping = False

    async def run(self) -> None:
        """Reads the log until cancelled, and hands every batch to all watchers at once."""
        async with self.ledger.published.subscribe() as wake:
            while True:
                await self._watched.wait()
                try:
                    full = await self._read()
                except Exception as error:
                    # After any error the reader goes on: otherwise watchers would wait for ever.
                    level = logging.WARNING if isinstance(error, Unavailable) else logging.ERROR
                    logger.log(level, "events cannot be read", exc_info=True)
                    await asyncio.sleep(_RETRY_SECONDS)
                    continue
                if not full:
                    await wake.wait(LOOK_SECONDS)

    def stop(self) -> None:
        """Ends every watch; clients may resume on another server."""
        self._stopping = True
        for watcher in self._watchers:
            watcher.offer(())

    def check(self) -> None:
        if self._stopping:
            raise Unavailable("the server is stopping; resume after the last event you have read")

    def entry(self, row: EventRow) -> Entry:
        return Entry(row, self.ledger.seal.event_id(row.seq))

    async def _read(self) -> bool:
        """Reads a page and offers it to the watchers. Returns whether more may be there already."""
        seq = self.seq
        rows = await self.ledger.events.after(seq, PAGE)
        if self.seq != seq:
            return True  # the last watcher left and another came, who begins elsewhere
        if not rows:
            return False
        entries = [self.entry(row) for row in rows]
        self.seq = rows[-1].seq
        for watcher in self._watchers:
            watcher.offer(entries)
        return len(rows) == PAGE

    async def follow(self, after: str | None, tenants: Sequence[str] | None) -> Watcher:
        """Returns a watcher that starts now, or after an event. The caller must release it with `leave`."""
        self.check()
        if after:
            seq = self.ledger.seal.event_seq(after)
            await self.ledger.events.after(seq, 1, tenants=())  # refuses what is no longer kept
            last = await self.ledger.events.last_seq()
        else:
            await self.ledger.events.publish()
            seq = last = await self.ledger.events.last_seq()
        # Without watchers the log is not read: the first watcher sets where reading starts.
        if not self._watchers:
            self.seq = last
        watcher = Watcher(self, seq, tenants)
        self._watchers.add(watcher)
        self._watched.set()
        return watcher

    def leave(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)
        if not self._watchers:
            self._watched.clear()

    async def watch(
        self, package: str, request: Any, call: Call, on_start: Callable[[str], Any]
    ) -> AsyncIterator[Part]:
        """Implements Events/Watch of both packages. Calls `on_start` with the id after which the watch starts.

        A request that sets `after`, even to the empty string, also gets bookmarks: one at the start, and
        one whenever no event came for a while.
        """
        private = package == PRIVATE
        policy.check(call.caller, Verb.WATCH, "Event", private=private)
        predicate = (
            compiled(request.filter, f"{package}.Event", "event") if request.filter else None
        )
        bookmarks = request.HasField("after")
        watcher = await self.follow(_after(request), call.caller.visible_tenants)
        try:
            start = self.ledger.seal.place_id(watcher.seq)
            await on_start(start)
            if bookmarks:
                yield self._bookmark(package, watcher.seq)
            while True:
                entries = await watcher.entries(BOOKMARK_SECONDS)
                for entry in entries:
                    if _shows(entry, predicate, private=private):
                        yield entry.private if private else entry.public
                if bookmarks and not entries:
                    yield self._bookmark(package, watcher.at())
        finally:
            self.leave(watcher)

    def _bookmark(self, package: str, seq: int) -> Part:
        return _part(Event(id=self.ledger.seal.place_id(seq), bookmark=True), package)


def _after(request: Any) -> str:
    after: str = request.after
    if len(after) > 64:
        raise Refused("", Violation("after", "is not an event id of this service"))
    return after


def _shows(entry: Entry, predicate: Predicate | None, *, private: bool) -> bool:
    kind = entry.kind
    if kind is None or kind.rules is None or kind.ours:
        return False  # orders, leftovers and backups have their own calls
    if not private and (not kind.public or entry.row.type == EventType.OBJECT_SIGNALED):
        return False
    return predicate is None or predicate.matches(entry.event)


def _part(event: Event, package: str) -> Part:
    fields = convert.TO_FIELDS[f"{package}.Event"](event)
    return Part(_RESPONSE[package](event=fields).SerializeToString(), event.id)

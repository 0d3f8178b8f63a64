"""The twin's whole state, and the few kinds of entries that change it. Pure; called by its verbs.

A change is an entry: applied here, then handed to the journal. Replaying the entries gives the same
state.
"""

from __future__ import annotations

import heapq
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from boatyard.model.errors import Refused
from boatyard.twin.delays import Delays
from boatyard.twin.faults import Fault
from boatyard.twin.hub import Hub, Thing
from boatyard.twin.layout import HubLayout

Entry = tuple[Any, ...]

HISTORY_LIMIT = 50_000
SETTLED_ORDERS_LIMIT = 10_000


class Counts(msgspec.Struct, gc=False):
    """How often one effect was really made, really removed, and requested."""

    applied: int = 0
    removed: int = 0
    calls: int = 0


class Happening(NamedTuple):
    """One thing made (+1) or removed (-1), numbered without gaps."""

    number: int
    at: float
    hub: str
    kind: str
    name: str
    key: str
    change: int


class State:
    def __init__(
        self,
        *,
        history_limit: int = HISTORY_LIMIT,
        settled_limit: int = SETTLED_ORDERS_LIMIT,
    ) -> None:
        self.hubs: dict[str, Hub] = {}
        self.owned: dict[str, set[Thing]] = {}  # by order id
        self.effects: dict[str, dict[tuple[str, str], Counts]] = {}  # by order id, (kind, key)
        self.history: deque[Happening] = deque(maxlen=history_limit)
        self.happened = 0
        self.faults: dict[tuple[str, str], Fault] = {}
        self.moods: dict[tuple[str, str], str] = {}
        self.delays = Delays()
        self.changes: list[Entry] = []  # not yet taken by the journal
        self._settled: dict[str, None] = {}  # orders that hold nothing, oldest first
        self._settled_limit = settled_limit
        self._due: list[tuple[float, str, str, str]] = []

    # --- what verbs do ---------------------------------------------------------------------

    def change(self, *entry: Any) -> None:
        """Applies one entry and queues it for the journal."""
        self.apply(entry)
        self.changes.append(entry)

    def make(self, thing: Thing, now: float) -> Thing:
        self.change("made", thing, now)
        return thing

    def set(self, thing: Thing, **fields: Any) -> Thing:
        """The thing with some fields different; its identity stays."""
        changed = msgspec.structs.replace(thing, **fields)
        self.change("set", changed)
        return changed

    def remove(self, thing: Thing, now: float) -> None:
        self.change("gone", thing.hub, thing.kind, thing.id, now)

    def flag(self, hub: str, name: str, flags: Mapping[str, bool], now: float) -> None:
        """Switches flags of a host; one that runs again because of it starts now."""
        host = self.hubs[hub].host(name)
        was_running = host.running
        self.change("host", hub, name, dict(flags))
        if host.running and not was_running:
            self.change("started", hub, name, now)

    def count_call(self, kind: str, key: str) -> None:
        """Counts a call, in memory only: a journal entry per call would cost more than the effect."""
        self._counts(kind, key).calls += 1

    def settle(self, now: float) -> None:
        """Removes the things whose removal is over by now. Called before every verb."""
        due = self._due
        while due and due[0][0] <= now:
            at, hub, kind, identity = heapq.heappop(due)
            thing = self.hubs[hub].things[kind].get(identity)
            if thing is not None and thing.gone_at and thing.gone_at <= now:
                self.remove(thing, at)

    def remind(self, at: float, thing: Thing) -> None:
        """Records that the thing changes by itself at that time: stepped time must stop there."""
        heapq.heappush(self._due, (at, thing.hub, thing.kind, thing.id))

    def next_event(self, now: float) -> float | None:
        self.settle(now)
        return self._due[0][0] if self._due else None

    # --- entries ---------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        match entry:
            case ("made", thing, at):
                thing = _thing(thing)
                self._store(thing)
                self._counts(thing.kind, thing.key).applied += 1
                self._happen(at, thing, +1)
            case ("set", thing):
                self._store(_thing(thing))
            case ("gone", hub, kind, identity, at):
                self._take_away(self.hubs[hub].things[kind][identity], at)
            case ("host", hub, name, flags):
                self.hubs[hub].flag(name, dict(flags))
            case ("started", hub, name, at):
                self.hubs[hub].host(name).started_at = at
            case ("hub", name, layout):
                self._add_hub(sys.intern(name), msgspec.convert(layout, HubLayout))
            case ("fault", hub, target, fault):
                self._set_fault(hub, target, fault)
            case ("mood", order, step, mood):
                self._set_mood(order, step, mood)
            case ("delays", profile, overrides):
                self.delays = Delays(profile, overrides)
            case _:
                self._apply_kept(entry)

    def _apply_kept(self, entry: Entry) -> None:
        """Entries that only a snapshot holds."""
        match entry:
            case ("counts", kind, key, applied, removed, calls):
                counts = self._counts(sys.intern(kind), key)
                counts.applied, counts.removed, counts.calls = applied, removed, calls
            case ("happened", *fields):
                self.history.append(Happening(*fields))
            case ("number", number):
                self.happened = number
            case ("forget", prefix):
                self.forget(prefix)
            case _:
                raise Refused(
                    f"the twin's journal has an entry {entry[0]!r} that this version does not know"
                )

    def snapshot(self) -> Iterator[Entry]:
        """The entries that lead from nothing to this state."""
        for name, hub in self.hubs.items():
            yield "hub", name, msgspec.to_builtins(hub.layout)
            yield from _host_entries(hub)
        yield "delays", self.delays.profile, self.delays.overrides
        for (hub_name, target), fault in self.faults.items():
            yield "fault", hub_name, target, msgspec.to_builtins(fault)
        for (order, step), mood in self.moods.items():
            yield "mood", order, step, mood
        for hub in self.hubs.values():
            for table in hub.things.values():
                for thing in table.values():
                    yield "set", thing
        for kinds in self.effects.values():
            for (kind, key), counts in kinds.items():
                yield "counts", kind, key, counts.applied, counts.removed, counts.calls
        for happening in self.history:
            yield "happened", *happening
        yield "number", self.happened

    def forget(self, prefix: str) -> None:
        """Drops the counts of orders whose id starts with `prefix` and that hold nothing now."""
        for order in [order for order in self._settled if order.startswith(prefix)]:
            self._forget(order)

    # --- questions -------------------------------------------------------------------------

    def orders(self, prefix: str, among: Mapping[str, Any]) -> Iterable[str]:
        """The order ids in `among` that may have keys with this prefix."""
        order, slash, _ = prefix.partition("/")
        if slash:
            return (order,) if order in among else ()
        return [order_id for order_id in among if order_id.startswith(prefix)]

    def things(self, prefix: str = "", hub: str = "") -> Iterator[Thing]:
        for order in self.orders(prefix, self.owned):
            for thing in self.owned[order]:
                if thing.key.startswith(prefix) and (not hub or thing.hub == hub):
                    yield thing

    # --- book-keeping ----------------------------------------------------------------------

    def _store(self, thing: Thing) -> None:
        old = self.hubs[thing.hub].put(thing)
        if old is not None:
            self._disown(old)
        order = order_of(thing.key)
        self.owned.setdefault(order, set()).add(thing)
        self._settled.pop(order, None)
        if thing.ready_at:
            self.remind(thing.ready_at, thing)
        if thing.gone_at:
            self.remind(thing.gone_at, thing)

    def _take_away(self, thing: Thing, at: float) -> None:
        self.hubs[thing.hub].drop(thing)
        self._counts(thing.kind, thing.key).removed += 1
        self._happen(at, thing, -1)
        self._disown(thing)
        order = order_of(thing.key)
        if order not in self.owned:
            self._holds_nothing(order)

    def _disown(self, thing: Thing) -> None:
        order = order_of(thing.key)
        things = self.owned[order]
        things.discard(thing)
        if not things:
            del self.owned[order]

    def _holds_nothing(self, order: str) -> None:
        """Records that an order holds nothing. Beyond a limit the counts of the oldest are dropped."""
        self._settled[order] = None
        if len(self._settled) > self._settled_limit:
            self._forget(next(iter(self._settled)))

    def _forget(self, order: str) -> None:
        self._settled.pop(order, None)
        self.effects.pop(order, None)

    def _counts(self, kind: str, key: str) -> Counts:
        order = order_of(key)
        kinds = self.effects.get(order)
        if kinds is None:
            kinds = self.effects[order] = {}
            if order not in self.owned:
                self._holds_nothing(order)
        counts = kinds.get((kind, key))
        if counts is None:
            counts = kinds[kind, key] = Counts()
        return counts

    def _happen(self, at: float, thing: Thing, change: int) -> None:
        self.happened += 1
        self.history.append(
            Happening(self.happened, at, thing.hub, thing.kind, thing.name, thing.key, change)
        )

    def _add_hub(self, name: str, layout: HubLayout) -> None:
        hub = self.hubs.get(name)
        if hub is not None and hub.layout != layout and any(hub.things.values()):
            raise Refused(f"hub {name} holds things and cannot be laid out anew; delete them first")
        if hub is None or hub.layout != layout:
            self.hubs[name] = Hub(name, layout, number=len(self.hubs))

    def _set_fault(self, hub: str, target: str, fault: Mapping[str, Any] | None) -> None:
        if fault is None:
            self.faults.pop((hub, target), None)
        else:
            self.faults[hub, target] = msgspec.convert(fault, Fault)

    def _set_mood(self, order: str, step: str, mood: str) -> None:
        if mood:
            self.moods[order, step] = mood
        else:
            self.moods.pop((order, step), None)


def _host_entries(hub: Hub) -> Iterator[Entry]:
    for host in hub.hosts.values():
        if host.flags:
            yield "host", hub.name, host.name, dict.fromkeys(host.flags, True)
        if host.started_at:
            yield "started", hub.name, host.name, host.started_at


def order_of(key: str) -> str:
    """The order a key belongs to: what stands before the first slash."""
    return key.partition("/")[0]


def _thing(value: Any) -> Thing:
    """The thing in an entry; the journal returns it as a row. Common names are interned."""
    if isinstance(value, Thing):
        return value
    kind, hub, key, name, ref, extra, *times = value
    return Thing(sys.intern(kind), sys.intern(hub), key, name, ref, tuple(extra), *times)

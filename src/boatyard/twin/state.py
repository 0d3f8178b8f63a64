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
from boatyard.twin.faults import TwinFault
from boatyard.twin.hub import Thing, TwinHub
from boatyard.twin.layout import HubLayout

Entry = tuple[Any, ...]

HISTORY_LIMIT = 50_000
EMPTY_ORDERS_LIMIT = 10_000


class EffectCounts(msgspec.Struct, gc=False):
    """How often one effect was really made, really removed, and requested."""

    applied: int = 0
    removed: int = 0
    calls: int = 0


class TwinHistoryEntry(NamedTuple):
    """One thing made (+1) or removed (-1), numbered without gaps."""

    number: int
    at: float
    hub: str
    kind: str
    name: str
    key: str
    change: int


class TwinState:
    def __init__(
        self,
        *,
        history_limit: int = HISTORY_LIMIT,
        settled_limit: int = EMPTY_ORDERS_LIMIT,
    ) -> None:
        self.hubs: dict[str, TwinHub] = {}
        self.things_by_order: dict[str, set[Thing]] = {}  # by order id
        self.counts_by_order: dict[
            str, dict[tuple[str, str], EffectCounts]
        ] = {}  # by order id, (kind, key)
        self.history: deque[TwinHistoryEntry] = deque(maxlen=history_limit)
        self.last_history_number = 0
        self.faults: dict[tuple[str, str], TwinFault] = {}
        self.behaviours: dict[tuple[str, str], str] = {}
        self.delays = Delays()
        self.changes: list[Entry] = []  # not yet taken by the journal
        self._empty_orders: dict[str, None] = {}  # orders that hold nothing, oldest first
        self._empty_orders_limit = settled_limit
        self._scheduled: list[tuple[float, str, str, str]] = []

    # --- what verbs do ---------------------------------------------------------------------

    def change(self, *entry: Any) -> None:
        """Applies one entry and queues it for the journal."""
        self.apply(entry)
        self.changes.append(entry)

    def make(self, thing: Thing, now: float) -> Thing:
        self.change("made", thing, now)
        return thing

    def replace(self, thing: Thing, **fields: Any) -> Thing:
        """The thing with some fields different; its identity stays."""
        changed = msgspec.structs.replace(thing, **fields)
        self.change("set", changed)
        return changed

    def remove(self, thing: Thing, now: float) -> None:
        self.change("gone", thing.hub, thing.kind, thing.id, now)

    def set_host_flags(self, hub: str, name: str, flags: Mapping[str, bool], now: float) -> None:
        """Switches flags of a host; one that runs again because of it starts now."""
        host = self.hubs[hub].get_host(name)
        was_running = host.is_running
        self.change("host", hub, name, dict(flags))
        if host.is_running and not was_running:
            self.change("started", hub, name, now)

    def count_call(self, kind: str, key: str) -> None:
        """Counts a call, in memory only: a journal entry per call would cost more than the effect."""
        self._get_counts(kind, key).calls += 1

    def finish_removals(self, now: float) -> None:
        """Removes the things whose removal is over by now. Called before every verb."""
        due = self._scheduled
        while due and due[0][0] <= now:
            at, hub, kind, identity = heapq.heappop(due)
            thing = self.hubs[hub].things[kind].get(identity)
            if thing is not None and thing.gone_at and thing.gone_at <= now:
                self.remove(thing, at)

    def schedule_change(self, at: float, thing: Thing) -> None:
        """Records that the thing changes by itself at that time: stepped time must stop there."""
        heapq.heappush(self._scheduled, (at, thing.hub, thing.kind, thing.id))

    def next_change_time(self, now: float) -> float | None:
        self.finish_removals(now)
        return self._scheduled[0][0] if self._scheduled else None

    # --- entries ---------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        match entry:
            case ("made", thing, at):
                thing = _to_thing(thing)
                self._store(thing)
                self._get_counts(thing.kind, thing.key).applied += 1
                self._add_history_entry(at, thing, +1)
            case ("set", thing):
                self._store(_to_thing(thing))
            case ("gone", hub, kind, identity, at):
                self._remove(self.hubs[hub].things[kind][identity], at)
            case ("host", hub, name, flags):
                self.hubs[hub].set_host_flags(name, dict(flags))
            case ("started", hub, name, at):
                self.hubs[hub].get_host(name).started_at = at
            case ("hub", name, layout):
                self._add_hub(sys.intern(name), msgspec.convert(layout, HubLayout))
            case ("fault", hub, target, fault):
                self._set_fault(hub, target, fault)
            case ("mood", order, step, mood):
                self._set_behaviour(order, step, mood)
            case ("delays", profile, overrides):
                self.delays = Delays(profile, overrides)
            case _:
                self._apply_snapshot_entry(entry)

    def _apply_snapshot_entry(self, entry: Entry) -> None:
        """Entries that only a snapshot holds."""
        match entry:
            case ("counts", kind, key, applied, removed, calls):
                counts = self._get_counts(sys.intern(kind), key)
                counts.applied, counts.removed, counts.calls = applied, removed, calls
            case ("happened", *fields):
                self.history.append(TwinHistoryEntry(*fields))
            case ("number", number):
                self.last_history_number = number
            case ("forget", prefix):
                self.forget_counts(prefix)
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
        for (order, step), mood in self.behaviours.items():
            yield "mood", order, step, mood
        for hub in self.hubs.values():
            for table in hub.things.values():
                for thing in table.values():
                    yield "set", thing
        for kinds in self.counts_by_order.values():
            for (kind, key), counts in kinds.items():
                yield "counts", kind, key, counts.applied, counts.removed, counts.calls
        for happening in self.history:
            yield "happened", *happening
        yield "number", self.last_history_number

    def forget_counts(self, prefix: str) -> None:
        """Drops the counts of orders whose id starts with `prefix` and that hold nothing now."""
        for order in [order for order in self._empty_orders if order.startswith(prefix)]:
            self._forget_order(order)

    # --- questions -------------------------------------------------------------------------

    def find_orders(self, prefix: str, among: Mapping[str, Any]) -> Iterable[str]:
        """The order ids in `among` that may have keys with this prefix."""
        order, slash, _ = prefix.partition("/")
        if slash:
            return (order,) if order in among else ()
        return [order_id for order_id in among if order_id.startswith(prefix)]

    def things(self, prefix: str = "", hub: str = "") -> Iterator[Thing]:
        for order in self.find_orders(prefix, self.things_by_order):
            for thing in self.things_by_order[order]:
                if thing.key.startswith(prefix) and (not hub or thing.hub == hub):
                    yield thing

    # --- book-keeping ----------------------------------------------------------------------

    def _store(self, thing: Thing) -> None:
        old = self.hubs[thing.hub].store(thing)
        if old is not None:
            self._disown(old)
        order = order_id_of(thing.key)
        self.things_by_order.setdefault(order, set()).add(thing)
        self._empty_orders.pop(order, None)
        if thing.ready_at:
            self.schedule_change(thing.ready_at, thing)
        if thing.gone_at:
            self.schedule_change(thing.gone_at, thing)

    def _remove(self, thing: Thing, at: float) -> None:
        self.hubs[thing.hub].remove(thing)
        self._get_counts(thing.kind, thing.key).removed += 1
        self._add_history_entry(at, thing, -1)
        self._disown(thing)
        order = order_id_of(thing.key)
        if order not in self.things_by_order:
            self._mark_order_empty(order)

    def _disown(self, thing: Thing) -> None:
        order = order_id_of(thing.key)
        things = self.things_by_order[order]
        things.discard(thing)
        if not things:
            del self.things_by_order[order]

    def _mark_order_empty(self, order: str) -> None:
        """Records that an order holds nothing. Beyond a limit the counts of the oldest are dropped."""
        self._empty_orders[order] = None
        if len(self._empty_orders) > self._empty_orders_limit:
            self._forget_order(next(iter(self._empty_orders)))

    def _forget_order(self, order: str) -> None:
        self._empty_orders.pop(order, None)
        self.counts_by_order.pop(order, None)

    def _get_counts(self, kind: str, key: str) -> EffectCounts:
        order = order_id_of(key)
        kinds = self.counts_by_order.get(order)
        if kinds is None:
            kinds = self.counts_by_order[order] = {}
            if order not in self.things_by_order:
                self._mark_order_empty(order)
        counts = kinds.get((kind, key))
        if counts is None:
            counts = kinds[kind, key] = EffectCounts()
        return counts

    def _add_history_entry(self, at: float, thing: Thing, change: int) -> None:
        self.last_history_number += 1
        self.history.append(
            TwinHistoryEntry(
                self.last_history_number, at, thing.hub, thing.kind, thing.name, thing.key, change
            )
        )

    def _add_hub(self, name: str, layout: HubLayout) -> None:
        hub = self.hubs.get(name)
        if hub is not None and hub.layout != layout and any(hub.things.values()):
            raise Refused(f"hub {name} holds things and cannot be laid out anew; delete them first")
        if hub is None or hub.layout != layout:
            self.hubs[name] = TwinHub(name, layout, number=len(self.hubs))

    def _set_fault(self, hub: str, target: str, fault: Mapping[str, Any] | None) -> None:
        if fault is None:
            self.faults.pop((hub, target), None)
        else:
            self.faults[hub, target] = msgspec.convert(fault, TwinFault)

    def _set_behaviour(self, order: str, step: str, mood: str) -> None:
        if mood:
            self.behaviours[order, step] = mood
        else:
            self.behaviours.pop((order, step), None)


def _host_entries(hub: TwinHub) -> Iterator[Entry]:
    for host in hub.hosts.values():
        if host.flags:
            yield "host", hub.name, host.name, dict.fromkeys(host.flags, True)
        if host.started_at:
            yield "started", hub.name, host.name, host.started_at


def order_id_of(key: str) -> str:
    """The order a key belongs to: what stands before the first slash."""
    return key.partition("/")[0]


def _to_thing(value: Any) -> Thing:
    """The thing in an entry; the journal returns it as a row. Common names are interned."""
    if isinstance(value, Thing):
        return value
    kind, hub, key, name, ref, extra, *times = value
    return Thing(sys.intern(kind), sys.intern(hub), key, name, ref, tuple(extra), *times)

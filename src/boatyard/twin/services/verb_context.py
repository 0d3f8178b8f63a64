"""The context of a verb (state, hub, time), and what the verbs of all services share. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.twin.behaviours import STEP_BY_KIND, parse_behaviour
from boatyard.twin.hub import Thing, TwinHub
from boatyard.twin.state import TwinState, order_id_of

SHORTEST_WAIT_SECONDS = 0.01
LONGEST_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class VerbContext:
    """The twin's state, one hub of it, and the time of the call."""

    state: TwinState
    hub: TwinHub
    now: float

    def find(self, kind: str, identity: str) -> Thing | None:
        return self.hub.things[kind].get(identity)

    def make(
        self, kind: str, key: str, name: str, *, ref: str = "", extra: tuple[str, ...] = ()
    ) -> Thing:
        """Makes a thing that is ready after its kind's delay."""
        times = self.now, self.finish_time(kind, key)
        return self.state.make(Thing(kind, self.hub.name, key, name, ref, extra, *times), self.now)

    def finish_time(self, delay: str, key: str, start: float = 0.0) -> float:
        """When something that begins now, or at `start`, is finished.

        In whole milliseconds: a clock that is stepped to that time must not be a rounding error early.
        """
        start = start or self.now
        seconds = self.state.delays.seconds_for(delay, key)
        return math.ceil((start + seconds) * 1000) / 1000 if seconds else start

    def replace(self, thing: Thing, **fields: Any) -> Thing:
        return self.state.replace(thing, **fields)

    def to_outcome(
        self, thing: Thing, why: str, facts: dict[str, str], *, named: str = ""
    ) -> Outcome:
        """Done once the thing is ready, Waiting until then. The mood of its order may change that."""
        match self.find_behaviour(thing.kind, thing.key, named):
            case "stuck":
                return Waiting(why, LONGEST_WAIT_SECONDS, reason="Stuck")
            case "unavailable":
                raise Unavailable(
                    f"the simulated {thing.kind} service does not answer for this order"
                )
        if thing.ready_at > self.now:
            return self.wait_until(why, thing.ready_at)
        return Done(facts)

    def refuse_by_behaviour(self, kind: str, key: str, named: str = "") -> None:
        if self.find_behaviour(kind, key, named) == "refused":
            raise Refused(
                f"the simulated {kind} service does not accept this order", reason="Simulated"
            )

    def find_behaviour(self, kind: str, key: str, named: str = "") -> str:
        step = STEP_BY_KIND[kind]
        if self.state.behaviours:
            order = order_id_of(key)
            for mood_key in ((order, step), ("*", step)):
                if mood_key in self.state.behaviours:
                    return self.state.behaviours[mood_key]
        return parse_behaviour(named, step)

    def wait_until(self, why: str, until: float) -> Waiting:
        return Waiting(why, min(max(until - self.now, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS))

    def release(self, thing: Thing | None, why: str = "", *, named: str = "") -> Outcome:
        """Removes the thing after its kind's delay for removals. Done when there is none."""
        if thing is None:
            return Done()
        if self.find_behaviour(thing.kind, thing.key, named) == "kept":
            return Waiting(why or "It does not go away.", LONGEST_WAIT_SECONDS, reason="Stuck")
        if not thing.gone_at:
            gone_at = self.finish_time(f"-{thing.kind}", thing.key)
            if gone_at <= self.now:
                self.state.remove(thing, self.now)
                return Done()
            thing = self.replace(thing, gone_at=gone_at)
        return self.wait_until(why or "It is being taken away.", thing.gone_at)

    def count_call(self, kind: str, key: str) -> None:
        self.state.count_call(kind, key)


Verb = Callable[..., Any]


def make_look_verb(kinds: tuple[str, ...]) -> Verb:
    """A verb that returns what is really there, for drivers that verify an answer."""

    def look_at(context: VerbContext, kind: str, id: str) -> dict[str, Any] | None:
        if kind not in kinds:
            raise Refused(f"this service has no {kind!r}; it has {', '.join(kinds)}")
        thing = context.find(kind, id)
        if thing is None:
            return None
        return {
            "key": thing.key,
            "name": thing.name,
            "ref": thing.ref,
            "extra": list(thing.extra),
            "ready": thing.ready_at <= context.now,
            "leaving": bool(thing.gone_at),
        }

    return look_at


def make_list_owned_verb(kinds: tuple[str, ...]) -> Verb:
    """A verb that lists everything of these kinds on the hub whose key starts with `prefix`."""

    def list_things(context: VerbContext, prefix: str = "") -> list[list[str]]:
        rows = [
            [thing.key, thing.kind, thing.name]
            for thing in context.state.things(prefix, context.hub.name)
            if thing.kind in kinds
        ]
        return sorted(rows)

    return list_things


def ping(context: VerbContext) -> bool:
    """Answers, so that a driver knows that the twin is there."""
    return True

"""Automation in memory: runs that somebody ends by hand, or that end by themselves. For rules and journeys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boatyard.automation.port import RUN_FAILED, RunEvent, RunSpec
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, OwnedObject, Waiting


@dataclass(frozen=True)
class Started:
    """A run as it reached whoever carries it out."""

    action: str
    attempt: int
    values: Mapping[str, Any]


@dataclass
class MemoryAutomation:
    """Driver and harness in one."""

    runs: dict[str, tuple[RunSpec, Outcome | Refused]] = field(default_factory=dict)
    begun: list[Started] = field(default_factory=list)
    dead: bool = False
    warning: str = ""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def automation(self) -> Any:
        return self

    def order(self) -> str:
        return f"order-{next(self.numbers)}"

    def started(self) -> Sequence[Started]:
        return self.begun

    async def finish(self, *, message: str = "", **facts: str) -> None:
        end = Refused(message, reason=RUN_FAILED) if message else Done(facts)
        for key, (wanted, outcome) in self.runs.items():
            if isinstance(outcome, Waiting):
                self.runs[key] = (wanted, end)

    async def misbehave(self, mood: str) -> None:
        self.dead = mood == "dead"

    async def wait(self, seconds: float) -> None:
        """Nothing takes time here."""

    async def check_ready(self) -> None:
        if self.dead:
            raise Unavailable("dead")

    async def get_isolation_warning(self) -> str:
        return self.warning

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        await self.check_ready()
        if key not in self.runs or self.runs[key][0].attempt != wanted.attempt:
            self.begun.append(Started(wanted.action, wanted.attempt, wanted.values))
            self.runs[key] = (wanted, Waiting("it runs"))
        outcome = self.runs[key][1]
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    async def release_run(self, key: str) -> Outcome:
        self.runs.pop(key, None)
        return Done()

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        if key not in self.runs:
            return ()
        told = [RunEvent(1, "now", "task"), RunEvent(2, "now", "end")]
        return told[after:]

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        return [OwnedObject(key, "run", key) for key in self.runs if key.startswith(prefix)]

    async def close(self) -> None:
        """Nothing is held."""


@dataclass
class Roles(MemoryAutomation):
    """Every run ends well at the second look, unless its action is told to `fail` or to `hang`."""

    fail: dict[str, str] = field(default_factory=dict)  # action → words
    hang: set[str] = field(default_factory=set)
    wanted: dict[str, RunSpec] = field(default_factory=dict)  # by action, the last that was begun
    all_wanted: list[RunSpec] = field(default_factory=list)  # at every look

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        known = key in self.runs and self.runs[key][0].attempt == wanted.attempt
        outcome = await super().ensure_run(key, wanted)
        self.wanted[wanted.action] = wanted
        self.all_wanted.append(wanted)
        if not known or wanted.action in self.hang or isinstance(outcome, Done):
            return outcome
        words = self.fail.get(wanted.action, "")
        end = Refused(words, reason=RUN_FAILED) if words else Done({wanted.action: "done"})
        self.runs[key] = (wanted, end)
        if isinstance(end, Refused):
            raise end
        return end

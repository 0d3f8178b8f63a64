"""Limits runs at once and starts per minute, per machine, hub and template. Called by the driver.

A run under way holds a turn: a file in `active/`. Several Boatyard processes on one directory count the same files.
Each process counts starts per minute on its own.

A run that another run waits for shares the turn of that run. If it needed its own turn, runs that wait for other runs
could hold all turns and wait forever.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from boatyard.automation.drivers.local.limits import RunRateLimits

_MINUTE_SECONDS = 60.0


class RunSlot(msgspec.Struct, frozen=True):
    hub: str
    template: str
    within: str = ""  # slug of the run whose turn it shares, while that run holds one


class RunSlots:
    def __init__(
        self,
        directory: Path,
        rate_limits: RunRateLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._limits = rate_limits
        self._clock = clock
        self._starts: defaultdict[tuple[str, str], deque[tuple[float, str]]] = defaultdict(deque)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def take(self, slug: str, slot: RunSlot, is_over: Callable[[str], bool]) -> str:
        """Takes a turn for the run. Returns empty when it has one, otherwise why it has to wait."""
        with self._locked():
            if (self._directory / slug).exists():
                return ""
            reason = (
                ""
                if self._shares_parent_slot(slot, is_over)
                else self._find_full_limit(slot, is_over)
            )
            reason = reason or self._find_rate_limit(slot)
            if not reason:
                now = self._clock()
                for counter_key in _counter_keys(slot):
                    self._starts[counter_key].append((now, slug))
                (self._directory / slug).write_bytes(msgspec.json.encode(slot))
            return reason

    def return_unused(self, slug: str, slot: RunSlot) -> None:
        """Returns a turn with which nothing was started, so that it does not count as a start."""
        with self._locked():
            self.release(slug)
            for counter_key in _counter_keys(slot):
                self._starts[counter_key] = deque(
                    start for start in self._starts[counter_key] if start[1] != slug
                )

    def release(self, slug: str) -> None:
        (self._directory / slug).unlink(missing_ok=True)

    def _shares_parent_slot(self, slot: RunSlot, is_over: Callable[[str], bool]) -> bool:
        within = slot.within
        return bool(within) and (self._directory / within).exists() and not is_over(within)

    def _find_full_limit(self, slot: RunSlot, is_over: Callable[[str], bool]) -> str:
        hubs: Counter[str] = Counter()
        templates: Counter[str] = Counter()
        turns = dict(self._iter_slots())
        for slug in [slug for slug in turns if is_over(slug)]:
            self.release(slug)  # the run has ended and nobody has looked at it since
            del turns[slug]
        for other in turns.values():
            if other.within not in turns:
                hubs[other.hub] += 1
                templates[other.template] += 1
        if hubs.total() >= self._limits.max_runs:
            return "other runs are under way on this machine"
        if hubs[slot.hub] >= self._limits.max_runs_per_hub:
            return "other runs of this hub are under way"
        if templates[slot.template] >= self._limits.max_runs_per_template:
            return "other runs of this template are under way"
        return ""

    def _find_rate_limit(self, slot: RunSlot) -> str:
        since = self._clock() - _MINUTE_SECONDS
        for kind, name, maximum in (
            ("hub", slot.hub, self._limits.starts_per_minute_per_hub),
            ("template", slot.template, self._limits.starts_per_minute_per_template),
        ):
            starts = self._starts[kind, name]
            while starts and starts[0][0] < since:
                starts.popleft()
            if len(starts) >= maximum:
                return f"runs of this {kind} are started no faster"
        return ""

    def _iter_slots(self) -> Iterator[tuple[str, RunSlot]]:
        for path in self._directory.iterdir():
            if not path.name.startswith("."):
                try:
                    yield path.name, msgspec.json.decode(path.read_bytes(), type=RunSlot)
                except (OSError, msgspec.DecodeError):
                    path.unlink(missing_ok=True)  # half written when its writer died

    @contextmanager
    def _locked(self) -> Iterator[None]:
        file = os.open(self._directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _counter_keys(slot: RunSlot) -> tuple[tuple[str, str], ...]:
    return ("hub", slot.hub), ("template", slot.template)

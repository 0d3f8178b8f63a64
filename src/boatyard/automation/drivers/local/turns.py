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

from boatyard.automation.drivers.local.limits import Pace

_MINUTE = 60.0


class Turn(msgspec.Struct, frozen=True):
    hub: str
    template: str
    within: str = ""  # slug of the run whose turn it shares, while that run holds one


class Turns:
    def __init__(
        self, directory: Path, pace: Pace, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._directory = directory
        self._pace = pace
        self._clock = clock
        self._starts: defaultdict[tuple[str, str], deque[tuple[float, str]]] = defaultdict(deque)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def take(self, slug: str, turn: Turn, is_over: Callable[[str], bool]) -> str:
        """Takes a turn for the run. Returns empty when it has one, otherwise why it has to wait."""
        with self._alone():
            if (self._directory / slug).exists():
                return ""
            reason = "" if self._has_part(turn, is_over) else self._full(turn, is_over)
            reason = reason or self._hurried(turn)
            if not reason:
                now = self._clock()
                for counter_key in _counted(turn):
                    self._starts[counter_key].append((now, slug))
                (self._directory / slug).write_bytes(msgspec.json.encode(turn))
            return reason

    def leave(self, slug: str, turn: Turn) -> None:
        """Returns a turn with which nothing was started, so that it does not count as a start."""
        with self._alone():
            self.give_back(slug)
            for counter_key in _counted(turn):
                self._starts[counter_key] = deque(
                    start for start in self._starts[counter_key] if start[1] != slug
                )

    def give_back(self, slug: str) -> None:
        (self._directory / slug).unlink(missing_ok=True)

    def _has_part(self, turn: Turn, is_over: Callable[[str], bool]) -> bool:
        within = turn.within
        return bool(within) and (self._directory / within).exists() and not is_over(within)

    def _full(self, turn: Turn, is_over: Callable[[str], bool]) -> str:
        hubs: Counter[str] = Counter()
        templates: Counter[str] = Counter()
        turns = dict(self._held())
        for slug in [slug for slug in turns if is_over(slug)]:
            self.give_back(slug)  # the run has ended and nobody has looked at it since
            del turns[slug]
        for other in turns.values():
            if other.within not in turns:
                hubs[other.hub] += 1
                templates[other.template] += 1
        if hubs.total() >= self._pace.at_once:
            return "other runs are under way on this machine"
        if hubs[turn.hub] >= self._pace.at_once_per_hub:
            return "other runs of this hub are under way"
        if templates[turn.template] >= self._pace.at_once_per_template:
            return "other runs of this template are under way"
        return ""

    def _hurried(self, turn: Turn) -> str:
        since = self._clock() - _MINUTE
        for kind, name, maximum in (
            ("hub", turn.hub, self._pace.starts_per_minute_per_hub),
            ("template", turn.template, self._pace.starts_per_minute_per_template),
        ):
            starts = self._starts[kind, name]
            while starts and starts[0][0] < since:
                starts.popleft()
            if len(starts) >= maximum:
                return f"runs of this {kind} are started no faster"
        return ""

    def _held(self) -> Iterator[tuple[str, Turn]]:
        for path in self._directory.iterdir():
            if not path.name.startswith("."):
                try:
                    yield path.name, msgspec.json.decode(path.read_bytes(), type=Turn)
                except (OSError, msgspec.DecodeError):
                    path.unlink(missing_ok=True)  # half written when its writer died

    @contextmanager
    def _alone(self) -> Iterator[None]:
        file = os.open(self._directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _counted(turn: Turn) -> tuple[tuple[str, str], ...]:
    return ("hub", turn.hub), ("template", turn.template)

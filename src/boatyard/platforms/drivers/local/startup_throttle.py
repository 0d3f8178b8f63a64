"""Throttles clusters that start together, so that all have an API before controllers start. Used by control planes."""

from __future__ import annotations

import time
from collections.abc import Callable

MAX_WAIT_SECONDS = 15.0  # seconds that a cluster waits for the others at most


class StartupThrottle:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._starting: dict[
            str, float
        ] = {}  # clusters whose API does not answer yet, and since when
        self._started: dict[str, float] = {}

    def mark_starting(self, slug: str) -> None:
        self._started.pop(slug, None)
        self._starting.setdefault(slug, self._clock())

    def mark_started(self, slug: str) -> None:
        if self._starting.pop(slug, None) is not None:
            self._started[slug] = self._clock()

    def remove(self, slug: str) -> None:
        """Forgets a cluster that was removed or rests."""
        self._starting.pop(slug, None)
        self._started.pop(slug, None)

    @property
    def starting_count(self) -> int:
        """The number of starting clusters, at least one: the more there are, the less often each is probed."""
        return max(1, len(self._starting))

    def should_wait(self, slug: str) -> bool:
        """Whether this cluster should wait: others are still starting, and it has not waited for long."""
        now = self._clock()
        if now - self._started.get(slug, 0.0) > MAX_WAIT_SECONDS:
            return False
        return any(
            now - since < MAX_WAIT_SECONDS
            for other, since in self._starting.items()
            if other != slug
        )

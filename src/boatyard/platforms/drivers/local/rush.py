"""Throttles clusters that start together, so that all have an API before controllers start. Used by control planes."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST = 15.0  # seconds that a cluster waits for the others at most


class Rush:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._coming: dict[
            str, float
        ] = {}  # clusters whose API does not answer yet, and since when
        self._arrived: dict[str, float] = {}

    def begin(self, slug: str) -> None:
        self._arrived.pop(slug, None)
        self._coming.setdefault(slug, self._clock())

    def arrive(self, slug: str) -> None:
        if self._coming.pop(slug, None) is not None:
            self._arrived[slug] = self._clock()

    def leave(self, slug: str) -> None:
        """Forgets a cluster that was removed or rests."""
        self._coming.pop(slug, None)
        self._arrived.pop(slug, None)

    @property
    def size(self) -> int:
        """The number of starting clusters, at least one: the more there are, the less often each is probed."""
        return max(1, len(self._coming))

    def is_on(self, slug: str) -> bool:
        """Whether this cluster should wait: others are still starting, and it has not waited for long."""
        now = self._clock()
        if now - self._arrived.get(slug, 0.0) > LONGEST:
            return False
        return any(now - since < LONGEST for other, since in self._coming.items() if other != slug)

"""When many clusters start at once, each has an API before the first has everything. Shared by the control planes."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST = 15.0  # seconds nobody waits longer than for the others


class Rush:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._coming: dict[str, float] = {}  # who is on the way to its first answer, since when
        self._arrived: dict[str, float] = {}

    def begin(self, slug: str) -> None:
        self._arrived.pop(slug, None)
        self._coming.setdefault(slug, self._clock())

    def arrive(self, slug: str) -> None:
        if self._coming.pop(slug, None) is not None:
            self._arrived[slug] = self._clock()

    def leave(self, slug: str) -> None:
        """It comes no more, or rests."""
        self._coming.pop(slug, None)
        self._arrived.pop(slug, None)

    @property
    def size(self) -> int:
        """How many are coming, at least one: the more there are, the less often each is looked at."""
        return max(1, len(self._coming))

    def is_on(self, slug: str) -> bool:
        """Others are still coming, and this one has not waited for long."""
        now = self._clock()
        if now - self._arrived.get(slug, 0.0) > LONGEST:
            return False
        return any(now - since < LONGEST for other, since in self._coming.items() if other != slug)

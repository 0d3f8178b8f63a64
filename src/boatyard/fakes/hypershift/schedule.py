"""What is to be looked at, and when: each key once, however often it is named. Used by the player's workers."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Agenda(Generic[K]):
    """Keys due now or later. A key that is being worked on is not handed out a second time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._now: dict[K, None] = {}
        self._later: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0
        self._busy: set[K] = set()
        self._changed = asyncio.Event()

    def add(self, key: K) -> None:
        """As soon as somebody has time for it."""
        self._now[key] = None
        self._changed.set()

    def add_at(self, key: K, moment: float) -> None:
        """At that moment, or earlier when something else asks for it."""
        current = self._later.get(key)
        if current is not None and current <= moment:
            return
        self._later[key] = moment
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, key))
        self._changed.set()

    async def take(self) -> K:
        """The next key that is due; `done` must be called with it."""
        while True:
            wait = self._wake()
            for key in self._now:
                if key not in self._busy:
                    del self._now[key]
                    self._busy.add(key)
                    return key
            self._changed.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def done(self, key: K) -> None:
        self._busy.discard(key)
        self._changed.set()

    def _wake(self) -> float | None:
        """Moves what is due, and answers the seconds until the next."""
        now = self._clock()
        while self._heap:
            moment, _, key = self._heap[0]
            if self._later.get(key) != moment:
                heapq.heappop(self._heap)  # asked for at another moment since
                continue
            if moment > now:
                return moment - now
            heapq.heappop(self._heap)
            del self._later[key]
            self._now[key] = None
        return None

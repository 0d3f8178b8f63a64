"""The work queue of the fake: keys that are due now or later, each once, however often it is added."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class DueQueue(Generic[K]):
    """Keys due now or later. A key that is being worked on is not handed out a second time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due_keys: dict[K, None] = {}
        self._due_times: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0
        self._busy: set[K] = set()
        self._changed = asyncio.Event()

    def add(self, key: K) -> None:
        """Makes the key due now."""
        self._due_keys[key] = None
        self._changed.set()

    def add_at(self, key: K, moment: float) -> None:
        """Makes the key due at that time, or earlier when it is added for an earlier one."""
        current = self._due_times.get(key)
        if current is not None and current <= moment:
            return
        self._due_times[key] = moment
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, key))
        self._changed.set()

    async def take(self) -> K:
        """Waits for the next key that is due. The caller must call `done` with it."""
        while True:
            wait = self._move_due_keys()
            for key in self._due_keys:
                if key not in self._busy:
                    del self._due_keys[key]
                    self._busy.add(key)
                    return key
            self._changed.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def finish(self, key: K) -> None:
        self._busy.discard(key)
        self._changed.set()

    def _move_due_keys(self) -> float | None:
        """Moves the keys that are due, and returns the seconds until the next one."""
        now = self._clock()
        while self._heap:
            moment, _, key = self._heap[0]
            if self._due_times.get(key) != moment:
                heapq.heappop(self._heap)  # it was added for another time since
                continue
            if moment > now:
                return moment - now
            heapq.heappop(self._heap)
            del self._due_times[key]
            self._due_keys[key] = None
        return None

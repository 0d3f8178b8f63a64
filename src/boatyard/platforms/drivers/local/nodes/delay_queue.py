"""A queue of keys by due time, with one timer for all the nodes and pods of a cluster. Used by the agent."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque


class DelayQueue:
    """Gives each key to one taker at a time, once it is due. A key put twice is due once, at the earlier time.

    Times are those of the running loop.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []  # may contain outdated entries
        self._busy: set[str] = set()
        self._takers: deque[asyncio.Future[str]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._paused_until = 0.0

    def put(self, key: str, at: float = 0.0) -> None:
        """Makes the key due at that time, or leaves it if it is due earlier."""
        due_at = self._due.get(key)
        if due_at is not None and due_at <= at:
            return
        self._due[key] = at
        if key not in self._busy:
            heapq.heappush(self._heap, (at, key))
            self._deliver_due_keys()

    def drop(self, key: str) -> None:
        self._due.pop(key, None)

    def pause_until(self, until: float) -> None:
        """Gives no key before that time."""
        self._paused_until = max(self._paused_until, until)
        self._deliver_due_keys()

    async def take(self) -> str:
        """Waits for the next due key and returns it. The taker must call `done` afterwards."""
        taker: asyncio.Future[str] = self._loop.create_future()
        self._takers.append(taker)
        self._deliver_due_keys()
        try:
            return await taker
        except asyncio.CancelledError:
            if taker.done() and not taker.cancelled():
                self._busy.discard(taker.result())
            raise

    def done(self, key: str) -> None:
        self._busy.discard(key)
        at = self._due.get(key)
        if at is not None:
            heapq.heappush(self._heap, (at, key))
            self._deliver_due_keys()

    def _deliver_due_keys(self) -> None:
        now = self._loop.time()
        while self._takers:
            if self._takers[0].done():  # it was cancelled
                self._takers.popleft()
                continue
            at = self._earliest()
            if at is None:
                return
            at = max(at, self._paused_until)
            if at > now:
                self._set_timer(at)
                return
            key = heapq.heappop(self._heap)[1]
            del self._due[key]
            self._busy.add(key)
            self._takers.popleft().set_result(key)

    def _earliest(self) -> float | None:
        heap = self._heap
        while heap:
            at, key = heap[0]
            if self._due.get(key) == at and key not in self._busy:
                return at
            heapq.heappop(heap)
        return None

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            if self._timer.when() == at and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._deliver_due_keys()

"""Notifications between tasks of this process. Used by the worker and by watchers."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Wake:
    """One subscription. When it is woken while nobody waits, the next wait returns at once."""

    def __init__(self, wakes: Wakes) -> None:
        self._wakes = wakes
        self._bell = asyncio.Event()

    def ring(self) -> None:
        self._bell.set()

    async def wait(self, timeout: float | None = None) -> bool:
        """True when it was woken since the last wait, False after the timeout."""
        try:
            async with asyncio.timeout(timeout):
                await self._bell.wait()
        except TimeoutError:
            return False
        self._bell.clear()
        return True

    async def __aenter__(self) -> Wake:
        self._wakes.add(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wakes.discard(self)


class Wakes:
    """A fan-out: `fire` wakes every subscriber, once."""

    def __init__(self) -> None:
        self._waiting: set[Wake] = set()

    def subscribe(self) -> Wake:
        """Returns a subscription, to be used as `async with wakes.subscribe() as wake`."""
        return Wake(self)

    def fire(self) -> None:
        for wake in self._waiting:
            wake.ring()

    def add(self, wake: Wake) -> None:
        self._waiting.add(wake)

    def discard(self, wake: Wake) -> None:
        self._waiting.discard(wake)

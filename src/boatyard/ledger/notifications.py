"""Notifications between tasks of this process. Used by the worker and by watchers."""

from __future__ import annotations

import asyncio
from types import TracebackType


class WakeSubscription:
    """One subscription. When it is woken while nobody waits, the next wait returns at once."""

    def __init__(self, wakes: Notifier) -> None:
        self._notifier = wakes
        self._notified = asyncio.Event()

    def notify(self) -> None:
        self._notified.set()

    async def wait(self, timeout: float | None = None) -> bool:
        """True when it was woken since the last wait, False after the timeout."""
        try:
            async with asyncio.timeout(timeout):
                await self._notified.wait()
        except TimeoutError:
            return False
        self._notified.clear()
        return True

    async def __aenter__(self) -> WakeSubscription:
        self._notifier.add(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._notifier.discard(self)


class Notifier:
    """A fan-out: `fire` wakes every subscriber, once."""

    def __init__(self) -> None:
        self._subscriptions: set[WakeSubscription] = set()

    def subscribe(self) -> WakeSubscription:
        """Returns a subscription, to be used as `async with wakes.subscribe() as wake`."""
        return WakeSubscription(self)

    def notify_all(self) -> None:
        for wake in self._subscriptions:
            wake.notify()

    def add(self, wake: WakeSubscription) -> None:
        self._subscriptions.add(wake)

    def discard(self, wake: WakeSubscription) -> None:
        self._subscriptions.discard(wake)

"""Calls to the twin, in a process of its own or in this process. Used by sim drivers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from boatyard.model.clock import Clock
from boatyard.twin.world import LYING_VERB_PREFIXES, TwinWorld


class TwinCalls(Protocol):
    async def call(self, verb: str, /, **args: Any) -> Any:
        """Carries out one verb of the twin and answers its value: an Outcome, plain data or None.

        Fails as the verb fails: Refused, Unavailable, NotFound. When it is Unavailable the effect
        may have happened or not. Calls that do not wait for each other keep their order.
        """

    async def close(self) -> None:
        """Lets go of the connection. May be called twice."""


class LocalTwin:
    """The twin in this process, on a clock that the caller steps. Nothing is stored on disk."""

    def __init__(self, world: TwinWorld, clock: Clock) -> None:
        self.world = world
        self._clock = clock

    async def call(self, verb: str, /, **args: Any) -> Any:
        reply = self.world.call(verb, args, self._clock.now().timestamp())
        self.world.take_changes()
        if reply.delay:
            await self._clock.sleep(reply.delay)
        # With stepped time a silent twin would never answer: treat the caller's timeout as over.
        if reply.error is not None:
            raise reply.error
        return reply.value

    async def close(self) -> None:
        return None


class ObservedTwin:
    """Calls `on_effect` before and after each effect, with `before:<verb>` and `after:<verb>`.

    The crash proof kills the process at these points.
    """

    def __init__(self, twin: TwinCalls, on_effect: Callable[[str], Awaitable[None] | None]) -> None:
        self._twin = twin
        self._on_effect = on_effect

    async def call(self, verb: str, /, **args: Any) -> Any:
        if not verb.partition(".")[2].startswith(LYING_VERB_PREFIXES):
            return await self._twin.call(verb, **args)
        await self._announce(f"before:{verb}")
        value = await self._twin.call(verb, **args)
        await self._announce(f"after:{verb}")
        return value

    async def close(self) -> None:
        await self._twin.close()

    async def _announce(self, point: str) -> None:
        awaitable = self._on_effect(point)
        if awaitable is not None:
            await awaitable

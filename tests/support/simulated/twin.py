"""What the simulated environment stands on: stepped time, a small data centre, and notice of each effect in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from boatyard.twin.calls import LocalTwin
from boatyard.twin.layout import HubLayout, Layout
from boatyard.twin.world import LYING_VERB_PREFIXES

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
# Everything takes two seconds each way: few moments to look at, and every step has its own.
EVEN = dict.fromkeys(
    (
        *("host", "network", "port", "agent", "subnet", "binding", "floating", "record"),
        *("cluster", "upgrade", "node", "-node", "-cluster", "-host", "-port", "-network"),
    ),
    2.0,
)


class SteppedClock:
    """Time that moves only when somebody moves it."""

    def __init__(self, now: datetime = BEGIN) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def step_to(self, moment: datetime) -> None:
        self._now = max(self._now, moment)


# Told before and after every effect: "before:dns.ensure_record" and the key.
OnEffect = Callable[[str, str], Awaitable[None] | None]


def no_effect(point: str, key: str) -> None:
    """Nobody listens."""


def no_write() -> None:
    """Nobody listens."""


class AnnouncingTwin:
    """The twin of this process; whoever listens is told of every effect."""

    def __init__(self, twin: LocalTwin, on_effect: OnEffect) -> None:
        self._twin = twin
        self._on_effect = on_effect

    async def call(self, verb: str, /, **args: Any) -> Any:
        if not verb.partition(".")[2].startswith(LYING_VERB_PREFIXES):
            return await self._twin.call(verb, **args)
        await self._tell(f"before:{verb}", args["key"])
        value = await self._twin.call(verb, **args)
        await self._tell(f"after:{verb}", args["key"])
        return value

    async def _tell(self, point: str, key: str) -> None:
        waiting = self._on_effect(point, key)
        if waiting is not None:
            await waiting

    async def close(self) -> None:
        await self._twin.close()


def small_layout(hosts: int = 8, hubs: int = 2, versions: tuple[str, ...] = ()) -> Layout:
    return Layout(
        hubs={
            f"hub-{number}": HubLayout(
                hosts={"bm-small": hosts},
                versions=versions,
                subnets=f"10.{number}.0.0/16",
                floating=f"198.51.{number}.0/24",
                zone=f"zone-{number}.example",
            )
            for number in range(1, hubs + 1)
        }
    )

"""What a contract suite works on: the drivers of one hub, and somebody who can break things there.

A suite asks for nothing else. Each driver name has its benches in `BENCHES`; a driver without one
cannot be proved and fails its suite.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import boatyard.checks
import boatyard.infra.dns
import boatyard.infra.inventory
import boatyard.infra.l2
import boatyard.infra.l3
import boatyard.platforms
from boatyard.checks.port import Checks
from boatyard.infra.dns.port import Dns
from boatyard.infra.inventory.port import Inventory
from boatyard.infra.l2.port import L2
from boatyard.infra.l3.port import L3
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.port import Platform
from boatyard.twin.calls import LocalTwin, TwinCalls
from boatyard.twin.client import TwinClient
from boatyard.twin.layout import HubLayout, Layout
from boatyard.twin.world import World

DRIVERS: Mapping[str, Mapping[str, str]] = {
    "inventory": boatyard.infra.inventory.DRIVERS,
    "l2": boatyard.infra.l2.DRIVERS,
    "l3": boatyard.infra.l3.DRIVERS,
    "dns": boatyard.infra.dns.DRIVERS,
    "platform": boatyard.platforms.DRIVERS,
    "checks": boatyard.checks.DRIVERS,
}
PATIENCE = 200  # looks before a suite gives up on something that is Waiting


@dataclass
class Bench:
    inventory: Inventory
    l2: L2
    l3: L3
    dns: Dns
    platform: Platform
    checks: Checks
    host_type: str
    wait: Callable[[float], Awaitable[None]]
    misbehave: Callable[[str, str], Awaitable[None]]  # service, "dead" | "lies" | "none"
    break_host: Callable[[str], Awaitable[None]]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def order(self) -> str:
        """An order id that nothing carries yet."""
        return f"order-{next(self._numbers)}"

    async def until_done(self, ask: Callable[[], Awaitable[Outcome]]) -> Done:
        for _ in range(PATIENCE):
            outcome = await ask()
            if isinstance(outcome, Done):
                return outcome
            assert isinstance(outcome, Waiting)
            assert outcome.why, "Waiting says why"
            await self.wait(outcome.look_again)
        raise AssertionError(f"still waiting: {outcome}")

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Waits for something that comes by itself."""
        for _ in range(PATIENCE):
            if await holds():
                return
            await self.wait(1.0)
        raise AssertionError("it did not come true")

    async def free_hosts(self, count: int) -> list[str]:
        hosts = [host.name for host in await self.inventory.list_free(self.host_type, count)]
        assert len(hosts) == count, "the bench has hosts to give"
        return hosts

    async def joined_host(self, order: str, slot: str) -> tuple[str, str]:
        """A host that is held and on the order's network, and its agent's address."""
        (host,) = await self.free_hosts(1)
        key, network = f"{order}/host/{slot}", f"{order}/l2"
        await self.until_done(lambda: self.inventory.ensure_held(key, host))
        vlan = (await self.l2.vlans())[int(order.partition("-")[2])]
        await self.until_done(lambda: self.l2.ensure_network(network, vlan))
        await self.until_done(lambda: self.l2.ensure_port(f"{order}/port/{slot}", network, host))
        seen = await self.until_done(lambda: self.inventory.agent_address(key, host))
        return host, seen.facts["address"]


class SteppedClock:
    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


NewBench = Callable[[], Awaitable[Bench]]
HUB = HubLayout(hosts={"bm-small": 12, "bm-large": 2}, zone="boston.example")


@asynccontextmanager
async def sim_in_process() -> AsyncIterator[NewBench]:
    """The twin as a value, with delays, on stepped time; a new one for every bench."""

    async def new_bench() -> Bench:
        clock = SteppedClock()
        twin = LocalTwin(World(Layout(hubs={"boston-1": HUB})), clock)
        await twin.call("twin.set_delays", profile="demo")
        return _sim_bench(twin, "boston-1", clock.sleep)

    yield new_bench


@asynccontextmanager
async def sim_over_socket() -> AsyncIterator[NewBench]:
    """The twin as a process of its own, without delays; a new hub in it for every bench."""
    numbers = itertools.count(1)

    async def new_bench() -> Bench:
        hub = f"boston-{next(numbers)}"
        await twin.call("twin.add_hub", hub=hub, layout=msgspec.to_builtins(HUB))
        return _sim_bench(twin, hub, lambda seconds: asyncio.sleep(min(seconds, 0.01)))

    # Short, for the kernel's sake: the path of a socket has 107 bytes.
    with tempfile.TemporaryDirectory(prefix="twin-") as directory:
        socket = Path(directory, "twin.sock")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "boatyard.twin", "--with-parent", "--delays", "instant"),
            *("--state", str(Path(directory, "state")), "--socket", str(socket)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        twin = TwinClient(socket, timeout=30)
        try:
            yield new_bench
        finally:
            await twin.close()
            process.terminate()
            await process.communicate()


def _sim_bench(twin: TwinCalls, hub: str, wait: Callable[[float], Awaitable[None]]) -> Bench:
    async def misbehave(service: str, profile: str) -> None:
        await twin.call("twin.set_fault", hub=hub, service=service, profile=profile)

    async def break_host(host: str) -> None:
        await twin.call("twin.fail_host", hub=hub, host=host)

    drivers = {port: load(table["sim"])(twin, hub) for port, table in DRIVERS.items()}
    return Bench(
        **drivers, host_type="bm-small", wait=wait, misbehave=misbehave, break_host=break_host
    )


BENCHES: Mapping[str, Mapping[str, Any]] = {
    "sim": {"sim-in-process": sim_in_process, "sim-over-socket": sim_over_socket},
    "hosted": {},  # needs a real API server: tests/kube runs the same rules
    "kube": {},  # asks a real cluster: tests/kube/test_checks.py plants the faults
    "local": {},  # needs real programs and minutes: tests/local runs the same rules
}


def load(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def benches_of(port: str) -> list[Any]:
    """Every bench of every driver of the port; fails for a driver that has none."""
    return [
        pytest.param(site, id=name)
        for driver in DRIVERS[port]
        for name, site in BENCHES[driver].items()
    ]

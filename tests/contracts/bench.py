"""What a contract suite works on: the drivers of one hub, and somebody who can break things there.

A suite asks for nothing else. Each driver name has its benches in `BENCHES`; a driver without one
cannot be proved and fails its suite.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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
from boatyard.twin.layout import HubLayout, Layout, write_layout
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
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

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


HUB = "boston-1"
LAYOUT = Layout(hubs={HUB: HubLayout(hosts={"bm-small": 12, "bm-large": 2}, zone="boston.example")})


@asynccontextmanager
async def sim_in_process(directory: Path) -> AsyncIterator[Bench]:
    """The twin as a value, with delays, on stepped time."""
    clock = SteppedClock()
    twin = LocalTwin(World(LAYOUT), clock)
    await twin.call("twin.set_delays", profile="demo")
    yield _sim_bench(twin, clock.sleep)


@asynccontextmanager
async def sim_over_socket(directory: Path) -> AsyncIterator[Bench]:
    """The twin as a process of its own, without delays."""
    layout = directory / "layout.json"
    await asyncio.to_thread(layout.write_bytes, write_layout(LAYOUT))
    socket = directory / "twin.sock"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "boatyard.twin", "--with-parent", "--delays", "instant"),
        *("--state", str(directory / "twin"), "--socket", str(socket), "--layout", str(layout)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    twin = TwinClient(socket, timeout=30)
    try:
        yield _sim_bench(twin, lambda seconds: asyncio.sleep(min(seconds, 0.01)))
    finally:
        await twin.close()
        process.terminate()
        await process.communicate()


def _sim_bench(twin: TwinCalls, wait: Callable[[float], Awaitable[None]]) -> Bench:
    async def misbehave(service: str, profile: str) -> None:
        await twin.call("twin.set_fault", hub=HUB, service=service, profile=profile)

    async def break_host(host: str) -> None:
        await twin.call("twin.fail_host", hub=HUB, host=host)

    drivers = {port: load(table["sim"])(twin, HUB) for port, table in DRIVERS.items()}
    return Bench(
        **drivers, host_type="bm-small", wait=wait, misbehave=misbehave, break_host=break_host
    )


BENCHES = {"sim": {"sim in process": sim_in_process, "sim over socket": sim_over_socket}}


def load(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def benches_of(port: str) -> list[str]:
    """Every bench of every driver of the port; fails for a driver that has none."""
    return [bench for driver in DRIVERS[port] for bench in BENCHES[driver]]

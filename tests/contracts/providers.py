"""Who provides the harness of each driver: `PROVIDERS[port][driver]` holds its providers by name.

To test a new driver, add one function here that opens it with the surroundings its port's harness names. Nothing of
another port is needed. `pytest tests/contracts/test_dns.py --driver sim` runs one driver alone.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import boatyard.orderbook
from boatyard.resources.hubs.ports import OPTIONAL_PORTS, PORTS
from boatyard.twin.calls import LocalTwin, TwinCalls
from boatyard.twin.client import TwinClient
from boatyard.twin.layout import Layout
from boatyard.twin.world import TwinWorld
from tests.contracts.harness import (
    ChecksHarness,
    DnsHarness,
    InventoryHarness,
    L2Harness,
    L3Harness,
    NewHarness,
    PlatformHarness,
    PortHarness,
)
from tests.contracts.memory_dns import memory_dns
from tests.contracts.order_books import embedded_order_books, kube_order_books
from tests.contracts.twin_surroundings import HOST_TYPE, HUB_LAYOUT, TwinSurroundings
from tests.support.memory_automation import MemoryAutomation
from tests.support.simulated.twin import SteppedClock

DRIVERS: Mapping[str, Mapping[str, str]] = {
    **PORTS,
    **OPTIONAL_PORTS,
    "orderbook": boatyard.orderbook.DRIVERS,
}

Provider = Callable[[], AbstractAsyncContextManager[NewHarness]]
MakeHarness = Callable[[TwinCalls, str, TwinSurroundings], PortHarness]


def sim_inventory(twin: TwinCalls, hub: str, around: TwinSurroundings) -> InventoryHarness:
    return InventoryHarness(
        inventory=sim_driver("inventory")(twin, hub),
        host_type=HOST_TYPE,
        break_host=around.break_host,
        connect_host=around.connect_host,
        wait=around.wait,
        misbehave=around.misbehave("inventory"),
    )


def sim_l2(twin: TwinCalls, hub: str, around: TwinSurroundings) -> L2Harness:
    return L2Harness(
        l2=sim_driver("l2")(twin, hub),
        hosts=around.hosts,
        wait=around.wait,
        misbehave=around.misbehave("l2"),
    )


def sim_l3(twin: TwinCalls, hub: str, around: TwinSurroundings) -> L3Harness:
    return L3Harness(
        l3=sim_driver("l3")(twin, hub),
        make_l2_network=around.make_l2_network,
        wait=around.wait,
        misbehave=around.misbehave("l3"),
    )


def sim_dns(twin: TwinCalls, hub: str, around: TwinSurroundings) -> DnsHarness:
    return DnsHarness(
        dns=sim_driver("dns")(twin, hub), wait=around.wait, misbehave=around.misbehave("dns")
    )


def sim_platform(twin: TwinCalls, hub: str, around: TwinSurroundings) -> PlatformHarness:
    return PlatformHarness(
        platform=sim_driver("platform")(twin, hub),
        break_host=around.break_host,
        host_with_agent=around.host_with_agent,
        wait=around.wait,
        misbehave=around.misbehave("platform"),
    )


def sim_checks(twin: TwinCalls, hub: str, around: TwinSurroundings) -> ChecksHarness:
    return ChecksHarness(
        checks=sim_driver("checks")(twin, hub),
        make_cluster=around.make_cluster,
        everything=around.everything,
        lose_node=around.lose_node,
        remove_name=around.remove_name,
        misdirect_api_name=around.misdirect_api_name,
        remove_route=around.remove_route,
        wait=around.wait,
        misbehave=around.misbehave("checks"),
    )


@asynccontextmanager
async def in_process(make: MakeHarness) -> AsyncIterator[NewHarness]:
    """The twin as a value, with delays, on stepped time; a new one for every harness."""

    @asynccontextmanager
    async def new_harness() -> AsyncIterator[PortHarness]:
        clock = SteppedClock()
        twin = LocalTwin(TwinWorld(Layout(hubs={"boston-1": HUB_LAYOUT})), clock)
        await twin.call("twin.set_delays", profile="demo")
        yield make(twin, "boston-1", TwinSurroundings(twin, "boston-1", clock.sleep))

    yield new_harness


@asynccontextmanager
async def over_socket(make: MakeHarness) -> AsyncIterator[NewHarness]:
    """The twin as a process of its own, without delays; a new hub in it for every harness."""
    numbers = itertools.count(1)

    @asynccontextmanager
    async def new_harness() -> AsyncIterator[PortHarness]:
        hub = f"boston-{next(numbers)}"
        await twin.call("twin.add_hub", hub=hub, layout=msgspec.to_builtins(HUB_LAYOUT))
        yield make(twin, hub, TwinSurroundings(twin, hub, wait_briefly))

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
            yield new_harness
        finally:
            await twin.close()
            process.terminate()
            await process.communicate()


async def wait_briefly(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.01))


@asynccontextmanager
async def memory_automation() -> AsyncIterator[NewHarness]:
    """A driver in memory: the rules of automation are seen to hold without any program."""

    @asynccontextmanager
    async def new_harness() -> AsyncIterator[MemoryAutomation]:
        yield MemoryAutomation()

    yield new_harness


def sim_providers(make: MakeHarness) -> Mapping[str, Provider]:
    return {
        "sim-in-process": lambda: in_process(make),
        "sim-over-socket": lambda: over_socket(make),
    }


PROVIDERS: Mapping[str, Mapping[str, Mapping[str, Provider]]] = {
    "inventory": {"sim": sim_providers(sim_inventory)},
    "l2": {"sim": sim_providers(sim_l2)},
    "l3": {"sim": sim_providers(sim_l3)},
    "dns": {"sim": sim_providers(sim_dns), "memory": {"memory": memory_dns}},
    "platform": {"sim": sim_providers(sim_platform)},
    "checks": {"sim": sim_providers(sim_checks)},
    "automation": {"memory": {"memory": memory_automation}},
    "orderbook": {
        "embedded": {"embedded": embedded_order_books},
        "kube": {"kube": kube_order_books},
    },
}

# Drivers that need programs or minutes which this suite does not have, and the file that proves them.
PROVED_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "platform": {
        "hosted": "tests/kube/test_hosted_contract.py",
        "local": "tests/local/test_contract.py",
    },
    "checks": {"hosted": "tests/unit/test_hosted_checks.py", "kube": "tests/kube/test_checks.py"},
    "automation": {
        "eda": "tests/hub/test_eda_contract.py",
        "local": "tests/automation/test_contract.py",
    },
}


def sim_driver(port: str) -> Callable[..., Any]:
    """The class of the port's sim driver, found as the product finds it: by its line in the table."""
    module, _, name = DRIVERS[port]["sim"].partition(":")
    driver: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return driver


def providers_of(port: str) -> list[Any]:
    """Every provider of every driver of the port, as parameters of a suite."""
    return [
        pytest.param((driver, provider), id=name)
        for driver, providers in PROVIDERS[port].items()
        for name, provider in providers.items()
    ]


def driver_names() -> list[str]:
    return sorted({driver for drivers in PROVIDERS.values() for driver in drivers})

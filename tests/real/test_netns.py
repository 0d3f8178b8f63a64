"""Network namespaces, bridges and cables: asked for again, half made, taken away."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from boatyard.model.errors import Unavailable
from boatyard.netns import links, namespaces
from boatyard.netns.commands import run_ip_show

ONE, TWO = "by-test0", "by-test0-n1"


@pytest.fixture(autouse=True)
def tidy(machine: None) -> Iterator[None]:
    yield
    for name in (TWO, ONE):
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


async def make() -> None:
    for name in (ONE, TWO):
        await namespaces.ensure_namespace(name)
    await links.ensure_bridge(ONE, "br0", "10.79.0.1/24")
    await links.ensure_veth_pair(ONE, "node1", "br0", TWO, "eth0")
    await links.ensure_address(TWO, "eth0", "10.79.0.2/24", "10.79.0.1")
    await links.ensure_route(ONE, "10.80.0.0/24", "10.79.0.2")


def answers(netns: str, address: str) -> bool:
    """Whether the neighbour takes a packet: its kernel refuses a connection, it does not swallow it."""
    words = f"import socket; s = socket.socket(); s.settimeout(2); print(s.connect_ex(('{address}', 9)))"
    return said_inside(netns, sys.executable, "-c", words) == "111\n"


def said_inside(netns: str, *words: str) -> str:
    command = ["nsenter", f"--net=/run/netns/{netns}", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


async def numbers() -> list[int]:
    return [
        link["ifindex"] for netns in (ONE, TWO) for link in await run_ip_show(netns, "link", "show")
    ]


async def test_asked_again_everything_stays_as_it_is() -> None:
    await make()
    assert answers(TWO, "10.79.0.1")
    before = await numbers()
    await make()
    assert await numbers() == before
    assert answers(ONE, "10.79.0.2")


async def test_another_address_takes_the_place_of_the_first() -> None:
    await make()
    await links.ensure_bridge(ONE, "br0", "10.79.0.3/24")
    await links.ensure_address(TWO, "eth0", "10.79.0.4/24", "10.79.0.3")
    assert await links.list_addresses(ONE, "br0") == ["10.79.0.3/24"]
    assert await links.list_addresses(TWO, "eth0") == ["10.79.0.4/24"]
    assert answers(TWO, "10.79.0.3")


async def test_a_name_without_a_namespace_is_made_good_and_can_be_taken_away() -> None:
    await namespaces.ensure_namespace(ONE)
    half = Path("/run/netns") / TWO
    half.touch(mode=0o000)
    assert not namespaces.is_namespace(TWO)
    await namespaces.ensure_namespace(TWO)
    assert namespaces.is_namespace(TWO)
    await namespaces.delete_namespace(TWO)
    half.touch(mode=0o000)
    await namespaces.delete_namespace(TWO)
    assert namespaces.list_namespaces(TWO) == []


async def test_a_cable_that_leads_nowhere_is_replaced() -> None:
    await make()
    await namespaces.delete_namespace(TWO)
    await make()
    assert answers(TWO, "10.79.0.1")


async def test_taken_away_twice_is_fine() -> None:
    await make()
    for _ in range(2):
        await links.delete_routes(ONE, "10.79.0.2")
        await links.delete_link(TWO, "eth0")
    assert await run_ip_show(ONE, "route", "show", "via", "10.79.0.2") == []
    assert "node1" not in [link["ifname"] for link in await run_ip_show(ONE, "link", "show")]
    for _ in range(2):
        await namespaces.delete_namespace(TWO)


async def test_who_asks_inside_is_inside_and_comes_out_again() -> None:
    await make()

    def see() -> list[str]:
        # Of this thread; /proc/net would be the process's.
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
        return sorted(line.split(":")[0].strip() for line in lines)

    outside = see()
    assert await namespaces.run_inside(TWO, see) == ["eth0", "lo"]
    assert see() == outside
    await links.allow_forwarding(TWO)
    assert said_inside(TWO, "cat", "/proc/sys/net/ipv4/ip_forward") == "1\n"


async def test_what_is_not_there_cannot_be_entered() -> None:
    with pytest.raises(Unavailable):
        await namespaces.run_inside("by-none", list)
    with pytest.raises(Unavailable):
        await run_ip_show("by-none", "link", "show")


def test_members_are_those_inside_and_nobody_else() -> None:
    asyncio.run(namespaces.ensure_namespace(ONE))
    assert list(namespaces.list_pids(ONE)) == []
    command = ["nsenter", f"--net=/run/netns/{ONE}", "cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as inside:
        assert inside.stdin is not None
        assert inside.stdout is not None
        inside.stdin.write(b"\n")
        inside.stdin.flush()
        inside.stdout.readline()  # it runs
        assert list(namespaces.list_pids(ONE)) == [inside.pid]
        inside.stdin.close()
    assert list(namespaces.list_pids("by-none")) == []

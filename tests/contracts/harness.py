"""What each contract suite works on: one driver of one port, and the surroundings that only that port's rules need.

A harness names no other port. Whoever provides one (`providers.py`) decides what stands behind it: the twin, a real
API server, a laboratory. So a driver can be tested before any other driver of its kind exists.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from boatyard.checks.port import Checks, Subject
from boatyard.infra.dns.port import Dns
from boatyard.infra.inventory.port import Inventory
from boatyard.infra.l2.port import L2
from boatyard.infra.l3.port import L3
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.port import DesiredCluster, Platform

MAX_LOOKS = 200  # before a suite gives up on something that is Waiting

NewHarness = Callable[[], AbstractAsyncContextManager[Any]]


@dataclass(kw_only=True)
class PortHarness:
    """What every port's harness has: time, and a service that can be made to fail."""

    wait: Callable[[float], Awaitable[None]]
    misbehave: Callable[
        [str], Awaitable[None]
    ]  # the service behind the driver: "dead" | "lies" | "none"
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def order(self) -> str:
        """An order id that nothing carries yet."""
        return f"order-{next(self._numbers)}"

    async def until_done(self, ask: Callable[[], Awaitable[Outcome]]) -> Done:
        for _ in range(MAX_LOOKS):
            outcome = await ask()
            if isinstance(outcome, Done):
                return outcome
            assert isinstance(outcome, Waiting)
            assert outcome.why, "Waiting says why"
            await self.wait(outcome.look_again)
        raise AssertionError(f"still waiting: {outcome}")

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Waits for something that comes by itself."""
        for _ in range(MAX_LOOKS):
            if await holds():
                return
            await self.wait(1.0)
        raise AssertionError("it did not come true")


@dataclass(kw_only=True)
class InventoryHarness(PortHarness):
    inventory: Inventory
    host_type: str  # a type of which there are at least four free hosts
    break_host: Callable[[str], Awaitable[None]]
    connect_host: Callable[[str], Awaitable[None]]  # puts a held host on some network

    async def free_hosts(self, count: int) -> list[str]:
        hosts = [host.name for host in await self.inventory.list_free(self.host_type, count)]
        assert len(hosts) == count, "the inventory has hosts to give"
        return hosts


@dataclass(kw_only=True)
class L2Harness(PortHarness):
    l2: L2
    hosts: Callable[[int], Awaitable[Sequence[str]]]  # that many hosts whose ports nobody uses yet


@dataclass(kw_only=True)
class L3Harness(PortHarness):
    l3: L3
    make_l2_network: Callable[[str], Awaitable[None]]  # under that key


@dataclass(kw_only=True)
class DnsHarness(PortHarness):
    dns: Dns


@dataclass(kw_only=True)
class PlatformHarness(PortHarness):
    platform: Platform
    break_host: Callable[[str], Awaitable[None]]
    # Given an order and a slot, a held host on the order's network, and the address of its agent.
    host_with_agent: Callable[[str, str], Awaitable[tuple[str, str]]]
    version: str = "4.17.1"
    newer_version: str = "4.17.2"


@dataclass(kw_only=True)
class ChecksHarness(PortHarness):
    checks: Checks
    make_cluster: Callable[[], Awaitable[Subject]]  # a finished cluster with one node
    everything: Callable[[], Awaitable[object]]  # all that there is around the cluster
    lose_node: Callable[[], Awaitable[None]]
    remove_name: Callable[[str], Awaitable[None]]  # of "api" or "ingress"
    misdirect_api_name: Callable[[], Awaitable[None]]
    remove_route: Callable[[str], Awaitable[None]]  # to the address for "api" or "ingress"


def cluster_wanted(version: str = "4.17.1") -> DesiredCluster:
    """A cluster as an order would ask for it."""
    return DesiredCluster(
        name="one",
        version=version,
        release_image=f"registry.invalid/release:{version}",
        api_name="api.one.boston.example",
        api_address="198.51.100.1",
        ingress_name="*.apps.one.boston.example",
        ingress_address="198.51.100.2",
        pod_cidr="10.128.0.0/14",
        service_cidr="172.30.0.0/16",
        machine_cidr="10.4.0.0/24",
        gateway="10.4.0.1",
        ssh_public_key="",
        pull_secret="{}",
    )

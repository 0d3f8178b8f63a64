"""Puts the house together: drivers by name, reconcilers, a worker. Called by the commands of this floor."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

from boatyard import checks, platforms
from boatyard.engine.queue import SqlQueue
from boatyard.engine.worker import Pace, Worker
from boatyard.infra import dns, inventory, l2, l3
from boatyard.ledger.ledger import Ledger
from boatyard.model.clock import Clock
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.orderbook.drivers.embedded import EmbeddedOrderBook
from boatyard.orderbook.port import OrderBook
from boatyard.resources.clusters.reconciler import ClusterReconciler
from boatyard.resources.hubs.reconciler import SWEEP_EVERY, HubReconciler
from boatyard.resources.leftovers.reconciler import LeftoverReconciler
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.reconciler import OrderReconciler
from boatyard.resources.reconciling import Reconciler, Turn
from boatyard.twin.calls import TwinCalls

PORTS: Mapping[str, Mapping[str, str]] = {
    "inventory": inventory.DRIVERS,
    "l2": l2.DRIVERS,
    "l3": l3.DRIVERS,
    "dns": dns.DRIVERS,
    "platform": platforms.DRIVERS,
    "checks": checks.DRIVERS,
}
DEFAULT_DRIVER = "sim"

TwinFor = Callable[[str], TwinCalls]  # a connection to the twin behind a socket path


class HubDirectory:
    """The drivers of each hub, made from its settings when first needed and again when those change."""

    def __init__(self, ledger: Ledger, *, twin_for: TwinFor, default_socket: str) -> None:
        self._ledger = ledger
        self._twin_for = twin_for
        self._default_socket = default_socket
        self._twins: dict[str, TwinCalls] = {}
        self._made: dict[str, tuple[object, HubDrivers]] = {}
        self._seen: dict[str, Hub] = {}
        self._fresh_until: dict[str, float] = {}
        self.fresh_seconds = 2.0  # for so long a hub's settings are taken as read

    async def drivers_for(self, hub_id: str) -> HubDrivers:
        hub = await self._hub(hub_id)
        made = self._made.get(hub_id)
        # A hub that was removed and registered anew begins with its first generation again.
        edition = hub.metadata.creation_timestamp, hub.metadata.generation
        if made is not None and made[0] == edition:
            return made[1]
        drivers = self._make(hub)
        self._made[hub_id] = (edition, drivers)
        return drivers

    async def _hub(self, hub_id: str) -> Hub:
        now = asyncio.get_running_loop().time()
        if now < self._fresh_until.get(hub_id, 0.0):
            return self._seen[hub_id]
        hub = await self._ledger.get(Hub, hub_id)
        if hub is None:
            raise Unavailable(f"hub {hub_id} is not registered", reason="NoHub")
        self._seen[hub_id] = hub
        self._fresh_until[hub_id] = now + self.fresh_seconds
        return hub

    def _make(self, hub: Hub) -> HubDrivers:
        made = {port: self._driver(hub, port) for port in PORTS}
        return HubDrivers(**made)

    def _driver(self, hub: Hub, port: str) -> Any:
        name = hub.spec.drivers.get(port, DEFAULT_DRIVER)
        place = PORTS[port].get(name)
        if place is None:
            raise Refused(
                f"hub {hub.id}: there is no {port} driver {name!r}; there is {', '.join(PORTS[port])}"
            )
        module, _, cls = place.partition(":")
        path = hub.spec.settings.get("twin.socket") or self._default_socket
        if path not in self._twins:
            self._twins[path] = self._twin_for(path)
        return getattr(import_module(module), cls)(
            self._twins[path], hub.spec.settings.get("twin.hub") or hub.id
        )

    async def close(self) -> None:
        for twin in self._twins.values():
            await twin.close()


def make_reconcilers(
    ledger: Ledger,
    hubs: HubDirectory,
    *,
    delete_within: timedelta,
    sweep_every: timedelta = SWEEP_EVERY,
) -> dict[str, Reconciler]:
    """One reconciler per kind that something must happen for."""

    def book_of_turn(turn: Turn) -> OrderBook:
        return EmbeddedOrderBook(ledger, turn.lease)

    async def book_of_hub(turn: Turn, hub_id: str) -> OrderBook:
        return EmbeddedOrderBook(ledger, turn.lease)

    return {
        "Cluster": ClusterReconciler(
            ledger=ledger, book_for=book_of_hub, delete_within=delete_within
        ),
        "Order": OrderReconciler(book_for=book_of_turn, drivers_for=hubs.drivers_for),
        "Hub": HubReconciler(ledger=ledger, drivers_for=hubs.drivers_for, sweep_every=sweep_every),
        "Leftover": LeftoverReconciler(
            ledger=ledger, book_for=book_of_turn, drivers_for=hubs.drivers_for
        ),
    }


def make_worker(
    ledger: Ledger,
    reconcilers: Mapping[str, Reconciler],
    *,
    clock: Clock,
    wait_for_hint: Callable[[float], Any],
    pace: Pace,
) -> Worker:
    queue = SqlQueue(
        ledger, kinds=tuple(reconcilers), worker=worker_name(), lease_seconds=pace.lease
    )
    return Worker(
        queue=queue,
        reconcilers=reconcilers,
        clock=clock,
        wait_for_hint=wait_for_hint,
        pace=pace,
    )


def worker_name() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"

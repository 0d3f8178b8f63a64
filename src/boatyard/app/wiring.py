"""Puts the house together: drivers by name, reconcilers, a worker. Called by the commands of this floor."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from boatyard.app.deployed import hub_access
from boatyard.app.hub_clients import HubClients
from boatyard.engine.queue import SqlQueue
from boatyard.engine.worker import Pace, Worker
from boatyard.ledger.ledger import Ledger
from boatyard.model.clock import Clock
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.orderbook.drivers.embedded import EmbeddedOrderBook
from boatyard.orderbook.port import OrderBook
from boatyard.platforms.drivers.local.driver import KeeperClient
from boatyard.resources.backups.reconciler import BackupReconciler
from boatyard.resources.clusters.reconciler import ClusterReconciler
from boatyard.resources.hubs.ports import PORTS
from boatyard.resources.hubs.reconciler import SWEEP_EVERY, HubReconciler
from boatyard.resources.leftovers.reconciler import LeftoverReconciler
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.reconciler import OrderReconciler
from boatyard.resources.orders.resting import FREEZE_FOR
from boatyard.resources.reconciling import Reconciler, Turn
from boatyard.twin.calls import TwinCalls

DEFAULT_DRIVER = "sim"

Connect = Callable[[str], TwinCalls]  # a connection to whoever listens on a socket path


@dataclass(frozen=True)
class Site:
    """What drivers speak to on this machine, and how one connects to it. A hub's settings may name others."""

    twin_socket: str
    connect_twin: Connect
    keeper_socket: str = ""
    connect_keeper: Connect = lambda path: KeeperClient(Path(path))


class HubDirectory:
    """The drivers of each hub, made from its settings when first needed and again when those change."""

    def __init__(self, ledger: Ledger, site: Site, clients: HubClients | None = None) -> None:
        self.clients = clients or HubClients()  # of hubs that are Kubernetes
        self._ledger = ledger
        self._site = site
        self._connections: dict[tuple[str, str], TwinCalls] = {}
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
            await self.clients.forget(hub_id)
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
        make: Callable[..., Any] = getattr(import_module(module), cls)
        settings = hub.spec.settings
        simulated = settings.get("twin.hub") or hub.id
        match name:
            case "sim":
                return make(self._twin(settings), simulated)
            case "local":
                return make(self._keeper(settings), simulated)
        return make()

    def _twin(self, settings: Mapping[str, str]) -> TwinCalls:
        path = settings.get("twin.socket") or self._site.twin_socket
        return self._connected("twin", path, self._site.connect_twin)

    def _keeper(self, settings: Mapping[str, str]) -> TwinCalls:
        path = settings.get("local.socket") or self._site.keeper_socket
        if not path:
            raise Unavailable("no keeper of local clusters runs here", reason="NoKeeper")
        return self._connected("keeper", path, self._site.connect_keeper)

    def _connected(self, what: str, path: str, connect: Connect) -> TwinCalls:
        if (what, path) not in self._connections:
            self._connections[what, path] = connect(path)
        return self._connections[what, path]

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        await self.clients.close()


def make_reconcilers(
    ledger: Ledger,
    hubs: HubDirectory,
    *,
    delete_within: timedelta,
    sweep_every: timedelta = SWEEP_EVERY,
    freeze_for: timedelta = FREEZE_FOR,
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
        "Order": OrderReconciler(
            book_for=book_of_turn, drivers_for=hubs.drivers_for, freeze_for=freeze_for
        ),
        "Backup": BackupReconciler(
            ledger=ledger, drivers_for=hubs.drivers_for, delete_within=delete_within
        ),
        "Hub": HubReconciler(
            ledger=ledger,
            drivers_for=hubs.drivers_for,
            access=hub_access(hubs.clients),
            sweep_every=sweep_every,
        ),
        "Leftover": LeftoverReconciler(book_for=book_of_turn, drivers_for=hubs.drivers_for),
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

"""Puts the house together: drivers by name, reconcilers, a worker. Called by the commands of this floor."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from boatyard.app.deployed import hub_access
from boatyard.app.drivers import DriverMaker, Site
from boatyard.app.hub_books import HubBooks
from boatyard.app.hub_clients import HubClients
from boatyard.engine.queue import SqlQueue
from boatyard.engine.worker import Pace, Worker
from boatyard.ledger.ledger import Ledger
from boatyard.model.clock import Clock
from boatyard.model.errors import Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.orderbook.drivers.embedded import EmbeddedOrderBook
from boatyard.orderbook.mirror import MirroredBook
from boatyard.orderbook.port import OrderBook
from boatyard.resources.backups.reconciler import BackupReconciler
from boatyard.resources.clusters.reconciler import ClusterReconciler
from boatyard.resources.hubs.reconciler import SWEEP_EVERY, HubReconciler
from boatyard.resources.hubs.settings import is_kubernetes
from boatyard.resources.leftovers.following import LeftoverFollower
from boatyard.resources.leftovers.reconciler import LeftoverReconciler
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.reconciler import OrderReconciler
from boatyard.resources.orders.resting import FREEZE_FOR
from boatyard.resources.reconciling import Reconciler, Turn


class HubDirectory:
    """The drivers of each hub, made from its settings when first needed and again when those change."""

    def __init__(self, ledger: Ledger, site: Site, clients: HubClients | None = None) -> None:
        self.clients = clients or HubClients()  # of hubs that are Kubernetes
        self.books = HubBooks(ledger, self.clients)
        self._ledger = ledger
        self._maker = DriverMaker(site)
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
        client = await self.clients.client(hub) if is_kubernetes(hub) else None
        drivers = self._maker.make(hub.id, hub.spec.drivers, hub.spec.settings, client=client)
        self._made[hub_id] = (edition, drivers)
        return drivers

    async def _hub(self, hub_id: str) -> Hub:
        now = asyncio.get_running_loop().time()
        if now < self._fresh_until.get(hub_id, 0.0):
            return self._seen[hub_id]
        hub = await self._ledger.documents.get(Hub, hub_id)
        if hub is None:
            await self.clients.forget(hub_id)
            raise Unavailable(f"hub {hub_id} is not registered", reason="NoHub")
        self._seen[hub_id] = hub
        self._fresh_until[hub_id] = now + self.fresh_seconds
        return hub

    async def close(self) -> None:
        await self._maker.close()
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

    async def remote_book(turn: Turn, hub_id: str) -> OrderBook | None:
        return await hubs.books.book(hub_id, check=turn.check_lease)

    async def book_of_hub(turn: Turn, hub_id: str) -> OrderBook:
        remote = await hubs.books.book(hub_id, check=turn.check_lease)
        if remote is None:
            return EmbeddedOrderBook(ledger, turn.lease)
        return MirroredBook(remote, ledger, lease=turn.lease, now=turn.now)

    return {
        "Cluster": ClusterReconciler(
            ledger=ledger, book_for=book_of_hub, delete_within=delete_within
        ),
        "Order": OrderReconciler(
            book_for=book_of_turn,
            drivers_for=hubs.drivers_for,
            freeze_for=freeze_for,
            stories=ledger.stories,
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
        "Leftover": LeftoverFollower(
            ledger=ledger,
            remote=remote_book,
            local=LeftoverReconciler(
                book_for=book_of_turn, drivers_for=hubs.drivers_for, stories=ledger.stories
            ),
            delete_within=delete_within,
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

"""Builds a worker with its reconcilers and the drivers of all hubs. Used by `up`, `work` and the proof."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from boatyard.engine.queue import SqlQueue
from boatyard.engine.worker import Pace, Worker
from boatyard.ledger.ledger import Ledger
from boatyard.model.clock import Clock
from boatyard.model.errors import Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.orderbook.embedded import EmbeddedOrderBook
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
from boatyard.wiring.driver_maker import DriverMaker, Site, connect_twin
from boatyard.wiring.hub_books import HubBooks
from boatyard.wiring.hub_clients import HubClients
from boatyard.wiring.hub_manifests import hub_access
from boatyard.wiring.order_watch import Feedback
from boatyard.wiring.role_runner import RoleRunner, RolesElsewhere, Runs
from boatyard.wiring.run_tokens import ApiWay, RunPasses
from boatyard.wiring.settings import Settings

logger = logging.getLogger(__name__)


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
        self.fresh_seconds = 2.0  # for so long a hub is not read again

    async def drivers_for(self, hub_id: str) -> HubDrivers:
        hub = await self._hub(hub_id)
        cached = self._made.get(hub_id)
        # The generation alone is not enough: a hub that was removed and registered again starts with 1.
        edition = hub.metadata.creation_timestamp, hub.metadata.generation
        if cached is not None and cached[0] == edition:
            return cached[1]
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
    """The reconcilers by kind of object."""

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


def runs_of_roles(ledger: Ledger, settings: Settings, api: ApiWay) -> Runs:
    """The runner of roles on this machine; with `runs_at_once` 0, one that runs none."""
    return role_runner(ledger, settings, api) if settings.runs_at_once else RolesElsewhere()


def role_runner(ledger: Ledger, settings: Settings, api: ApiWay) -> RoleRunner:
    """The runner of roles on this machine. Runs reach the API by `api`; warns when they cannot."""
    passes = RunPasses(settings, api, ledger.clock.now)
    if missing := passes.missing():
        logger.warning("roles that call the API cannot run on this worker", extra={"why": missing})
    return RoleRunner(ledger, settings, passes)


async def work(
    ledger: Ledger,
    settings: Settings,
    stop: asyncio.Event,
    *,
    twin_socket: str,
    keeper_socket: str,
    roles: Runs,
) -> None:
    """Works on what is due until `stop` is set. `roles` runs the roles of templates, and is closed at the end."""
    site = Site(
        twin_socket=twin_socket,
        connect_twin=connect_twin,
        keeper_socket=keeper_socket,
        automation=roles.for_hub,
    )
    hubs = HubDirectory(ledger, site)
    pace = Pace(
        at_once=settings.workers_at_once,
        lease=settings.lease_seconds,
        poll=settings.poll_seconds,
    )
    reconcilers = make_reconcilers(
        ledger,
        hubs,
        delete_within=timedelta(minutes=settings.delete_minutes),
        freeze_for=timedelta(minutes=settings.freeze_minutes),
    )
    try:
        async with ledger.wakes.subscribe() as wake:
            worker = make_worker(
                ledger,
                reconcilers,
                clock=ledger.clock,
                wait_for_hint=wake.wait,
                pace=pace,
            )
            feedback = Feedback(ledger, hubs.books, hubs.clients, clock=ledger.clock)
            async with asyncio.TaskGroup() as tasks:
                feedback_task = tasks.create_task(feedback.run(), name="feedback")
                await worker.run(stop)
                feedback_task.cancel()
    finally:
        await hubs.close()
        await roles.close()

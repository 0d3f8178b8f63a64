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
from boatyard.engine.worker import Worker, WorkerLimits
from boatyard.ledger.ledger import Ledger
from boatyard.model.clock import Clock
from boatyard.model.errors import Unavailable
from boatyard.orderbook.embedded import EmbeddedOrderBook
from boatyard.orderbook.mirror import MirroredOrderBook
from boatyard.orderbook.port import OrderBook
from boatyard.resources.backups.reconciler import BackupReconciler
from boatyard.resources.clusters.reconciler import ClusterReconciler
from boatyard.resources.hubs.reconciler import SWEEP_INTERVAL, HubReconciler
from boatyard.resources.hubs.settings import is_kubernetes
from boatyard.resources.leftovers.mirror import LeftoverMirror
from boatyard.resources.leftovers.reconciler import LeftoverReconciler
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.hibernation import LONGEST_FREEZE
from boatyard.resources.orders.reconciler import OrderReconciler
from boatyard.resources.reconciler import ReconcilePass, Reconciler
from boatyard.wiring.driver_factory import DriverFactory, LocalServers, connect_twin
from boatyard.wiring.hub_manifests import make_hub_access
from boatyard.wiring.hub_order_books import HubOrderBooks
from boatyard.wiring.order_watch import OrderWatch
from boatyard.wiring.role_runner import NoRoleRunner, RoleRunner, RoleRunnerProtocol
from boatyard.wiring.run_tokens import ApiEndpoint, RunTokenMaker
from boatyard.wiring.settings import Settings

logger = logging.getLogger(__name__)


class HubDirectory:
    """The drivers of each hub, made from its settings when first needed and again when those change."""

    def __init__(self, books: HubOrderBooks, site: LocalServers) -> None:
        self.order_books = books  # of hubs that are Kubernetes; its owner closes it
        self._driver_factory = DriverFactory(site)
        self._drivers_cache: dict[str, tuple[object, HubDrivers]] = {}

    async def drivers_for(self, hub_id: str) -> HubDrivers:
        hub = await self.order_books.hubs.registered(hub_id)
        if hub is None:
            await self.order_books.clients.forget(hub_id)
            raise Unavailable(f"hub {hub_id} is not registered", reason="NoHub")
        cached = self._drivers_cache.get(hub_id)
        # The generation alone is not enough: a hub that was removed and registered again starts with 1.
        edition = hub.metadata.creation_timestamp, hub.metadata.generation
        if cached is not None and cached[0] == edition:
            return cached[1]
        client = await self.order_books.clients.client(hub) if is_kubernetes(hub) else None
        drivers = self._driver_factory.make_drivers(
            hub.id, hub.spec.drivers, hub.spec.settings, client=client
        )
        self._drivers_cache[hub_id] = (edition, drivers)
        return drivers

    async def close(self) -> None:
        await self._driver_factory.close()


def make_reconcilers(
    ledger: Ledger,
    hubs: HubDirectory,
    *,
    delete_within: timedelta,
    sweep_every: timedelta = SWEEP_INTERVAL,
    freeze_for: timedelta = LONGEST_FREEZE,
) -> dict[str, Reconciler]:
    """The reconcilers by kind of object."""

    def book_of_turn(reconcile_pass: ReconcilePass) -> OrderBook:
        return EmbeddedOrderBook(ledger, reconcile_pass.lease)

    async def remote_book(reconcile_pass: ReconcilePass, hub_id: str) -> OrderBook | None:
        return await hubs.order_books.open_book(hub_id, check=reconcile_pass.check_lease)

    async def book_of_hub(reconcile_pass: ReconcilePass, hub_id: str) -> OrderBook:
        remote = await hubs.order_books.open_book(hub_id, check=reconcile_pass.check_lease)
        if remote is None:
            return EmbeddedOrderBook(ledger, reconcile_pass.lease)
        return MirroredOrderBook(remote, ledger, lease=reconcile_pass.lease, now=reconcile_pass.now)

    return {
        "Cluster": ClusterReconciler(
            ledger=ledger, book_for=book_of_hub, delete_within=delete_within
        ),
        "Order": OrderReconciler(
            book_for=book_of_turn,
            drivers_for=hubs.drivers_for,
            freeze_for=freeze_for,
            run_logs=ledger.run_logs,
        ),
        "Backup": BackupReconciler(
            ledger=ledger, drivers_for=hubs.drivers_for, delete_within=delete_within
        ),
        "Hub": HubReconciler(
            ledger=ledger,
            drivers_for=hubs.drivers_for,
            access=make_hub_access(hubs.order_books.clients),
            sweep_every=sweep_every,
        ),
        "Leftover": LeftoverMirror(
            ledger=ledger,
            remote=remote_book,
            local=LeftoverReconciler(
                book_for=book_of_turn, drivers_for=hubs.drivers_for, run_logs=ledger.run_logs
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
    limits: WorkerLimits,
) -> Worker:
    queue = SqlQueue(
        ledger, kinds=tuple(reconcilers), worker=worker_name(), lease_seconds=limits.lease
    )
    return Worker(
        queue=queue,
        reconcilers=reconcilers,
        clock=clock,
        wait_for_hint=wait_for_hint,
        limits=limits,
    )


def worker_name() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"


def make_role_runner(ledger: Ledger, settings: Settings, api: ApiEndpoint) -> RoleRunnerProtocol:
    """The runner of roles on this machine; with `runs_at_once` 0, one that runs none."""
    return (
        make_local_role_runner(ledger, settings, api) if settings.runs_at_once else NoRoleRunner()
    )


def make_local_role_runner(ledger: Ledger, settings: Settings, api: ApiEndpoint) -> RoleRunner:
    """The runner of roles on this machine. Runs reach the API by `api`; warns when they cannot."""
    passes = RunTokenMaker(settings, api, ledger.clock.now)
    if missing := passes.find_problem():
        logger.warning("roles that call the API cannot run on this worker", extra={"why": missing})
    return RoleRunner(ledger, settings, passes)


async def run_worker(
    ledger: Ledger,
    settings: Settings,
    stop: asyncio.Event,
    *,
    books: HubOrderBooks,
    twin_socket: str,
    keeper_socket: str,
    roles: RoleRunnerProtocol,
) -> None:
    """Works on what is due until `stop` is set. `roles` runs the roles of templates, and is closed at the end."""
    site = LocalServers(
        twin_socket=twin_socket,
        connect_twin=connect_twin,
        keeper_socket=keeper_socket,
        automation=roles.for_hub,
    )
    hubs = HubDirectory(books, site)
    pace = WorkerLimits(
        max_concurrent=settings.workers_at_once,
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
        async with ledger.change_notifier.subscribe() as wake:
            worker = make_worker(
                ledger,
                reconcilers,
                clock=ledger.clock,
                wait_for_hint=wake.wait,
                limits=pace,
            )
            feedback = OrderWatch(ledger, books.hubs, books.clients, clock=ledger.clock)
            async with asyncio.TaskGroup() as tasks:
                feedback_task = tasks.create_task(feedback.run(), name="feedback")
                await worker.run(stop)
                feedback_task.cancel()
    finally:
        await hubs.close()
        await roles.close()

"""The harnesses of the order-book suite, one per driver: the book, whoever writes its other half, and what is due."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec

from boatyard.engine.kube_queue import KubeQueue
from boatyard.kube.client import KubeClient
from boatyard.ledger.changes import Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import WorkLease
from boatyard.ledger.seal import Seal
from boatyard.model.errors import LeaseLost
from boatyard.model.generated.boatyard import Leftover, OrderNodeSet, OrderSpec, OrderStatus
from boatyard.orderbook.embedded import EmbeddedOrderBook
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.orderbook.kube.results import HubResults
from boatyard.orderbook.kube.view import HubView, Key
from boatyard.orderbook.port import OrderBook
from boatyard.resources.reconciler import ReconcileResult
from tests.contracts.harness import NewHarness
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import admin, hang_up, hub_plane, new_place, until
from tests.support.postgres import KEY, migrated, postgres_server

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=15)
SPEC = OrderSpec(
    cluster_name="web",
    hub="hub-1",
    version="4.17.9",
    pull_secret="hunter2",
    generation=1,
    node_sets={"compute": OrderNodeSet(host_type="bm-small", size=3)},
)


class OrderBookHarness(Protocol):
    book: OrderBook

    async def set_status(self, order_id: str, status: OrderStatus) -> None:
        """Writes the order's status as the order's reconciler would."""

    async def leave(self, leftover: Leftover) -> None:
        """Writes what is left as the order's reconciler would."""

    async def due_orders(self) -> set[str]:
        """The orders that are due now; asking takes them."""

    async def stale_book(self) -> OrderBook:
        """A book opened under a lease that has passed to another since."""


class EmbeddedBookHarness:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.book = EmbeddedOrderBook(ledger)

    async def set_status(self, order_id: str, status: OrderStatus) -> None:
        order = await self.book.get(order_id)
        assert order is not None
        changed = msgspec.structs.replace(order, status=status)
        await self._ledger.commit([Replace(changed)], now=NOW)

    async def leave(self, leftover: Leftover) -> None:
        await self._ledger.commit([Insert(leftover)], now=NOW)

    async def due_orders(self) -> set[str]:
        return {lease.id for lease in await self._take(NOW + timedelta(hours=1))}

    async def stale_book(self) -> OrderBook:
        await self.book.put("o-lease", tenant="acme", spec=SPEC, now=NOW)
        (lease,) = [one for one in await self._take(NOW) if one.id == "o-lease"]
        await self._take(NOW + timedelta(minutes=1))
        return EmbeddedOrderBook(self._ledger, lease)

    async def _take(self, now: datetime) -> list[WorkLease]:
        return await self._ledger.work.take(
            kinds=("Order",), limit=100, lease_seconds=30, worker="test", now=now
        )


class UnchallengedLeader:
    """A leader whom nobody challenges, until a test does."""

    def __init__(self, suspects: Mapping[Key, int] | None = None) -> None:
        self.suspects: Mapping[Key, int] = suspects or {}
        self.lost = False
        self.told: list[Mapping[Key, int]] = []

    def check_leadership(self) -> None:
        if self.lost:
            raise LeaseLost("another leads")

    async def announce_work(self, held: Mapping[Key, int]) -> None:
        self.told.append(held)


class KubeBookHarness:
    """A hub of its own on a shared API server, with the queue of its operator."""

    def __init__(self, client: KubeClient, order_settings: HubOrderSettings, system: str) -> None:
        self.client = client
        self.place = order_settings
        self.system = system
        self.leader = UnchallengedLeader()
        self.view = HubView(client, order_settings, system_namespace=system)
        self.hub = HubConnection(client, order_settings, system_namespace=system)
        self.results = HubResults(
            view=self.view,
            objects=self.hub.objects,
            claims=self.hub.claims,
            check=self.leader.check_leadership,
        )
        self.queue: KubeQueue
        self.book = KubeOrderBook(self.hub)

    @classmethod
    @asynccontextmanager
    async def open(cls, plane: ControlPlane, **how: object) -> AsyncIterator[KubeBookHarness]:
        client = admin(plane)
        try:
            place, system = await new_place(client, **how)
            harness = cls(client, place, system)
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(one.run()) for one in harness.view.informers]
                await harness.view.wait_until_synced()
                harness.queue = KubeQueue(
                    view=harness.view, results=harness.results, leader=harness.leader, now=NOW
                )
                yield harness
                for task in running:
                    task.cancel()
        finally:
            await hang_up(client)

    async def set_status(self, order_id: str, status: OrderStatus, now: datetime = NOW) -> None:
        lease = await self.take(order_id)
        self.queue.get_order_object(order_id)
        order = await KubeOrderBook(self.hub, view=self.view).get(order_id)
        assert order is not None
        result = ReconcileResult(changes=[Replace(msgspec.structs.replace(order, status=status))])
        await self.queue.finish(lease, result, attempts=0, now=now)

    async def leave(self, leftover: Leftover) -> None:
        await self.book.put("o-leaving", tenant="acme", spec=SPEC, now=NOW)
        lease = await self.take("o-leaving")
        await self.queue.finish(
            lease, ReconcileResult(changes=[Insert(leftover)]), attempts=0, now=NOW
        )

    async def take(self, order_id: str) -> WorkLease:
        """The lease on that order, once the watch has told of its last change."""
        await self.caught_up()
        self.view.on_change(("Order", order_id))
        for lease in await self.queue.take(100, now=NOW + timedelta(hours=1)):
            if lease.id == order_id:
                return lease
        raise AssertionError(f"{order_id} is not due")

    async def due_orders(self) -> set[str]:
        await self.caught_up()
        leases = await self.queue.take(100, now=NOW + timedelta(hours=1))
        return {lease.id for lease in leases if lease.kind == "Order"}

    async def stale_book(self) -> OrderBook:
        self.leader.lost = True
        return KubeOrderBook(self.hub, check=self.leader.check_leadership)

    async def caught_up(self) -> None:
        """Every order is seen in the view as the API server has it."""
        listed = await self.client.list(CLUSTER_ORDERS, self.place.shared_namespace)
        wanted = {
            one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in listed.items
        }

        def seen() -> bool:
            found = self.view.informers[0].items()
            return wanted == {
                item["metadata"]["name"]: item["metadata"]["resourceVersion"] for _, item in found
            }

        await until(seen, "the view has caught up")


@asynccontextmanager
async def embedded_order_books() -> AsyncIterator[NewHarness]:
    """A PostgreSQL of the suite's own, with a database for every harness."""
    async with postgres_server() as server:

        @asynccontextmanager
        async def new_harness() -> AsyncIterator[EmbeddedBookHarness]:
            async with migrated(server) as url:
                ledger = await Ledger.open(url, seal=Seal.from_bytes(KEY), application="test")
                yield EmbeddedBookHarness(ledger)
                await ledger.close()

        yield new_harness


@asynccontextmanager
async def kube_order_books() -> AsyncIterator[NewHarness]:
    """A real API server, with a hub on it for every harness."""
    server = hub_plane()
    # It starts programs and a loop of its own.
    plane = await asyncio.to_thread(server.__enter__)
    try:
        yield lambda: KubeBookHarness.open(plane)
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)

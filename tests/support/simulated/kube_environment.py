"""The simulated environment with Kubernetes hubs: orders live on a real API server and an operator works on them.

Time is stepped all the same. What the watches bring is waited for after every round in which somebody wrote to the API
server, so a journey in this form sees what one in the embedded form sees.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

import msgspec

from boatyard.engine.kube_queue import KubeQueue
from boatyard.engine.worker import Worker, WorkerLimits
from boatyard.kube.circuit_breaker import CircuitBreaker
from boatyard.kube.client import KubeClient, KubeObject
from boatyard.kube.config import KubeConfig, read_kubeconfig
from boatyard.kube.informer import Informer, object_key
from boatyard.kube.kinds import KubeKind
from boatyard.ledger.changes import Due, Replace
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import Leftover, Order
from boatyard.model.generated.osac import Hub
from boatyard.operator.config import HubConfig
from boatyard.operator.orphan_sweep import OrphanSweeper
from boatyard.operator.run import SWEEP_SECONDS, HubContext
from boatyard.orderbook.kube.book import SecretScope
from boatyard.orderbook.kube.claims import HubClaims
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.orderbook.kube.objects import HubObjects
from boatyard.orderbook.kube.results import HubResults
from boatyard.orderbook.kube.view import HubView
from boatyard.proof.evidence import ClaimRow
from boatyard.resources.hubs import reconciler as looking
from boatyard.resources.hubs.settings import get_system_namespace
from boatyard.resources.orders.remote_orders import request_retry
from boatyard.wiring.driver_factory import DriverFactory, LocalServers
from boatyard.wiring.operator_process import build_runtime
from boatyard.wiring.order_watch import OrderWatch
from tests.contracts.order_books import UnchallengedLeader
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import admin, hang_up, new_place, until
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.twin import no_write

_WRITES = ("POST", "PUT", "PATCH", "DELETE")


class WriteCounter:
    """What goes to the API server: how much of it was a write, and a place to die before and after each."""

    def __init__(self) -> None:
        self.touched: set[tuple[str, str]] = set()  # plural and namespace of what was written
        self.on_write = no_write
        self.cut: set[str] = set()  # who cannot reach it: "service", "operator"


class RecordingKubeClient(KubeClient):
    def __init__(self, config: KubeConfig, wire: WriteCounter, side: str, **how: Any) -> None:
        super().__init__(config, timeout=30, **how)
        self._wire = wire
        self._side = side

    async def _send_with_retries(self, question: Any) -> Any:
        if self._side in self._wire.cut:
            raise Unavailable(f"{question}: cannot be reached", reason="Unreachable")
        if question.method not in _WRITES:
            return await super()._send_with_retries(question)
        self._wire.on_write()
        place = re.search(r"/namespaces/([^/]+)/([^/]+)", question.path)
        if place is not None:
            self._wire.touched.add((place[2], place[1]))
        answer = await super()._send_with_retries(question)
        self._wire.on_write()
        return answer


class SteppedHub:
    """One hub's operator: a view, a queue and a worker; made anew when the one before has died."""

    def __init__(self, environment: SimulatedKubeEnvironment, hub: Hub, client: KubeClient) -> None:
        self._environment = environment
        self._client = client
        self.config = HubConfig(id=hub.id, drivers=hub.spec.drivers, settings=hub.spec.settings)
        self.system = get_system_namespace(hub)
        self.place = self.config.make_order_settings(self.system)
        self.leader = UnchallengedLeader()
        self._tasks: list[asyncio.Task[None]] = []
        self.view: HubView
        self.queue: KubeQueue
        self.worker: Worker

    async def begin(self, suspects: Mapping[tuple[str, str], int] | None = None) -> None:
        """A new leader; whoever led before does nothing any more."""
        self.leader.lost = True
        await self.end()
        self.leader = UnchallengedLeader(suspects)
        self.view = HubView(self._client, self.place, system_namespace=self.system)
        self._tasks = [asyncio.ensure_future(one.run()) for one in self.view.informers]
        await self.view.wait_until_synced()
        results = HubResults(
            view=self.view,
            objects=HubObjects(self._client, self.place),
            claims=HubClaims(self._client, self.system, cache=self.view),
            check=self.leader.check_leadership,
        )
        now = self._environment.clock.now()
        self.queue = KubeQueue(view=self.view, results=results, leader=self.leader, now=now)
        bench = HubContext(
            config=self.config,
            client=self._client,
            view=self.view,
            queue=self.queue,
            system_namespace=self.system,
        )
        site = LocalServers(
            twin_socket="", connect_twin=lambda _: self._environment.announcing_twin
        )

        async def no_hint(seconds: float) -> None:
            raise AssertionError("a journey never waits")

        furniture = build_runtime(
            bench, DriverFactory(site), freeze_for=self._environment.freeze_for
        )
        self._swept = now
        self._sweeper = OrphanSweeper(
            client=self._client,
            view=self.view,
            namespace=self.system,
            drivers=furniture.drivers,
            awaited=(),
            check=self.leader.check_leadership,
            now=self._environment.clock.now,
        )
        self.worker = Worker(
            queue=self.queue,
            reconcilers=furniture.reconcilers,
            clock=self._environment.clock,
            wait_for_hint=no_hint,
            limits=WorkerLimits(),
        )

    async def sweep(self) -> None:
        """As the operator does, whenever it is time."""
        now = self._environment.clock.now()
        if now < self._swept + timedelta(seconds=SWEEP_SECONDS):
            return
        self._swept = now
        with suppress(Unavailable):
            await self._sweeper.sweep()

    async def die(self) -> None:
        """The leader is killed; what it was at is suspect to the next one."""
        await self.begin(self.queue.list_work())

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []


class AllHubsWorker:
    """The service's worker and the operators of all hubs, as one."""

    def __init__(
        self, environment: SimulatedKubeEnvironment, service: Worker | None, *, hubs: bool
    ) -> None:
        self._environment = environment
        self._service = service
        self._hubs = hubs

    async def run_until_idle(self) -> int:
        total = 0
        while True:
            count = await self._service.run_until_idle() if self._service else 0
            await self._environment.catch_up()
            if self._hubs:
                for stepped_hub in self._environment.stepped_hubs.values():
                    count += await stepped_hub.worker.run_until_idle()
                    await stepped_hub.sweep()
                await self._environment.catch_up()
            if not count:
                return total
            total += count


class SimulatedKubeEnvironment(SimulatedEnvironment):
    form = "kube"

    async def open(self, plane: ControlPlane) -> None:
        """Gives every hub of the catalogue its Kubernetes, and every Kubernetes its operator."""
        # A look at a real hub is a dozen requests; every half minute of stepped time they would be most of a journey.
        self._look_seconds, looking.CHECK_INTERVAL_SECONDS = looking.CHECK_INTERVAL_SECONDS, 300.0
        self.wire = WriteCounter()
        self.wire.on_write = lambda: self.on_hub_write()
        self.stepped_hubs: dict[str, SteppedHub] = {}
        self._client = admin(plane)
        self._ears: list[tuple[Informer, asyncio.Task[None]]] = []
        self._operators = RecordingKubeClient(
            read_kubeconfig(plane.kubeconfig()), self.wire, "operator"
        )
        self.hubs.order_books.clients._connect = self._connect
        books = self.hubs.order_books
        self.feedback = OrderWatch(self.ledger, books.hubs, books.clients, clock=self.clock)
        hubs = (await self.ledger.documents.list(Hub)).items
        kubeconfig = msgspec.json.encode(plane.kubeconfig())
        for hub in hubs:
            await self._give(hub, kubeconfig)

    async def _give(self, hub: Hub, kubeconfig: bytes) -> None:
        place, system = await new_place(self._client, hub=hub.id)
        settings = {"kube.namespace": place.shared_namespace, "kube.operator-lease": "none"}
        await self.change_hub(hub.id, kubeconfig=kubeconfig, namespace=system, settings=settings)
        changed = await self.ledger.documents.get(Hub, hub.id)
        assert changed is not None
        self.stepped_hubs[hub.id] = stepped_hub = SteppedHub(self, changed, self._operators)
        await stepped_hub.begin()
        for ear in self.feedback.make_informers(self._operators, stepped_hub.place):
            self._ears.append((ear, asyncio.ensure_future(ear.run())))
            await ear.synced.wait()

    def _connect(self, config: KubeConfig, circuit_breaker: CircuitBreaker) -> KubeClient:
        return RecordingKubeClient(config, self.wire, "service", circuit_breaker=circuit_breaker)

    async def close(self) -> None:
        looking.CHECK_INTERVAL_SECONDS = self._look_seconds
        for stepped_hub in self.stepped_hubs.values():
            await stepped_hub.end()
        for _, task in self._ears:
            task.cancel()
        await asyncio.gather(*(task for _, task in self._ears), return_exceptions=True)
        await self.hubs.close()
        await self.hubs.order_books.clients.close()
        await hang_up(self._operators, self._client)

    # --- working ---------------------------------------------------------------------------------

    def make_worker(self, only: Sequence[str] = (), name: str = "journey") -> Any:
        """As in any environment; orders are worked on by the hubs' operators, whatever the service does."""
        here = tuple(kind for kind in only if kind != "Order")
        service = super().make_worker(only=here, name=name) if here or not only else None
        return AllHubsWorker(self, service, hubs=not only or "Order" in only or "Leftover" in only)

    async def replace_worker(self, name: str) -> None:
        for stepped_hub in self.stepped_hubs.values():
            await stepped_hub.die()
        self.worker = self.make_worker(name=name)

    async def catch_up(self) -> None:
        """Whatever was written to the API server has been told by every watch, and is due where it should be."""
        touched, self.wire.touched = self.wire.touched, set()
        for stepped_hub in self.stepped_hubs.values():
            for kind in (CLUSTER_ORDERS, LEFTOVERS):
                if (kind.plural, stepped_hub.place.shared_namespace) in touched:
                    await self._catch_up(kind, stepped_hub.place)
        await self.feedback.flush()

    async def _catch_up(self, kind: KubeKind, order_settings: HubOrderSettings) -> None:
        listed = await self._client.list(kind, order_settings.shared_namespace)
        wanted = {object_key(one): one["metadata"]["resourceVersion"] for one in listed.items}
        informers = [ear for ear, _ in self._ears]
        informers += [
            one for stepped_hub in self.stepped_hubs.values() for one in stepped_hub.view.informers
        ]

        def seen() -> bool:
            return all(
                _versions(one) == wanted
                for one in informers
                if one.kind == kind and one._namespace == order_settings.shared_namespace
            )

        await until(seen, f"the watches of {kind.plural} have caught up")

    async def next_due(self) -> datetime | None:
        found = [await self.ledger.work.next_due()]
        found += [stepped_hub.queue.next_due() for stepped_hub in self.stepped_hubs.values()]
        return min((one for one in found if one is not None), default=None)

    # --- looking ---------------------------------------------------------------------------------

    async def order_of(self, cluster_id: str) -> Order:
        order = await super().order_of(cluster_id)
        credentials = await self.hubs.order_books.read_credentials(order)
        assert credentials is not None
        status = msgspec.structs.replace(order.status, credentials=credentials)
        return msgspec.structs.replace(order, status=status)

    async def leftover_of(self, cluster_id: str) -> Leftover | None:
        for stepped_hub in self.stepped_hubs.values():
            book = await self.hubs.order_books.open_book(
                stepped_hub.config.id, secrets=SecretScope.NONE
            )
            assert book is not None
            found = await book.get_leftover(cluster_id)
            if found is not None:
                return found
        return await super().leftover_of(cluster_id)

    async def claimed(self) -> list[ClaimRow]:
        found: list[KubeObject] = []
        for stepped_hub in self.stepped_hubs.values():
            found += (await self._client.list(CLAIMS, stepped_hub.system)).items
        return [ClaimRow(**{n: one["spec"][n] for n in ("pool", "item", "owner")}) for one in found]

    async def retry(self, cluster_id: str) -> None:
        order = await super().order_of(cluster_id)
        now = self.clock.now()
        await self.ledger.commit(
            [Replace(request_retry(order)), Due("Cluster", cluster_id, now)], now=now
        )


def _versions(informer: Informer) -> dict[str, str]:
    return {key: item["metadata"]["resourceVersion"] for key, item in informer.items()}


@asynccontextmanager
async def open_kube_environment(
    plane: ControlPlane, environment: SimulatedKubeEnvironment
) -> AsyncIterator[SimulatedKubeEnvironment]:
    try:
        await environment.open(plane)
        yield environment
    finally:
        await environment.close()

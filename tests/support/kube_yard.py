"""A yard whose hubs are Kubernetes: orders live on a real API server and an operator's queue carries them out.

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
from boatyard.engine.worker import Pace, Worker
from boatyard.kube.client import KubeClient, Object
from boatyard.kube.config import KubeConfig, read_kubeconfig
from boatyard.kube.gate import Gate
from boatyard.kube.informer import Informer, key_of
from boatyard.kube.kinds import Kind
from boatyard.ledger.changes import Due, Replace
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import Leftover, Order
from boatyard.model.generated.osac import Hub
from boatyard.operator.config import HubConfig
from boatyard.operator.run import SWEEP_SECONDS, Bench
from boatyard.operator.strays import Sweeper
from boatyard.orderbook.kube.book import Secrets
from boatyard.orderbook.kube.claims import HubClaims
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping.from_kube import Place
from boatyard.orderbook.kube.objects import HubObjects
from boatyard.orderbook.kube.results import HubResults
from boatyard.orderbook.kube.view import HubView
from boatyard.proof.evidence import Claimed
from boatyard.resources.hubs import reconciler as looking
from boatyard.resources.hubs.settings import system_namespace
from boatyard.resources.orders.elsewhere import ask_for_retry
from boatyard.wiring.driver_maker import DriverMaker, Site
from boatyard.wiring.operator_process import furnish
from boatyard.wiring.order_watch import Feedback
from tests.support.control_plane import ControlPlane
from tests.support.desks import Alone
from tests.support.hub_plane import admin, hang_up, new_place, until
from tests.support.stage import no_write
from tests.support.yard import Yard

_WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Wire:
    """What goes to the API server: how much of it was a write, and a place to die before and after each."""

    def __init__(self) -> None:
        self.touched: set[tuple[str, str]] = set()  # plural and namespace of what was written
        self.on_write = no_write
        self.cut: set[str] = set()  # who cannot reach it: "service", "operator"


class NotedClient(KubeClient):
    def __init__(self, config: KubeConfig, wire: Wire, side: str, **how: Any) -> None:
        super().__init__(config, timeout=30, **how)
        self._wire = wire
        self._side = side

    async def _ask(self, question: Any) -> Any:
        if self._side in self._wire.cut:
            raise Unavailable(f"{question}: cannot be reached", reason="Unreachable")
        if question.method not in _WRITES:
            return await super()._ask(question)
        self._wire.on_write()
        place = re.search(r"/namespaces/([^/]+)/([^/]+)", question.path)
        if place is not None:
            self._wire.touched.add((place[2], place[1]))
        answer = await super()._ask(question)
        self._wire.on_write()
        return answer


class HubStage:
    """One hub's operator: a view, a queue and a worker; made anew when the one before has died."""

    def __init__(self, yard: KubeYard, hub: Hub, client: KubeClient) -> None:
        self._yard = yard
        self._client = client
        self.config = HubConfig(id=hub.id, drivers=hub.spec.drivers, settings=hub.spec.settings)
        self.system = system_namespace(hub)
        self.place = self.config.place(self.system)
        self.leader = Alone()
        self._tasks: list[asyncio.Task[None]] = []
        self.view: HubView
        self.queue: KubeQueue
        self.worker: Worker

    async def begin(self, suspects: Mapping[tuple[str, str], int] | None = None) -> None:
        """A new leader; whoever led before does nothing any more."""
        self.leader.lost = True
        await self.end()
        self.leader = Alone(suspects)
        self.view = HubView(self._client, self.place, system_namespace=self.system)
        self._tasks = [asyncio.ensure_future(one.run()) for one in self.view.informers]
        await self.view.synced()
        results = HubResults(
            view=self.view,
            objects=HubObjects(self._client, self.place),
            claims=HubClaims(self._client, self.system, cache=self.view),
            check=self.leader.check,
        )
        now = self._yard.clock.now()
        self.queue = KubeQueue(view=self.view, results=results, leader=self.leader, now=now)
        bench = Bench(
            config=self.config,
            client=self._client,
            view=self.view,
            queue=self.queue,
            system_namespace=self.system,
        )
        site = Site(twin_socket="", connect_twin=lambda _: self._yard.told_twin)

        async def no_hint(seconds: float) -> None:
            raise AssertionError("a journey never waits")

        furniture = furnish(bench, DriverMaker(site), freeze_for=self._yard.freeze_for)
        self._swept = now
        self._sweeper = Sweeper(
            client=self._client,
            view=self.view,
            namespace=self.system,
            drivers=furniture.drivers,
            awaited=(),
            check=self.leader.check,
            now=self._yard.clock.now,
        )
        self.worker = Worker(
            queue=self.queue,
            reconcilers=furniture.reconcilers,
            clock=self._yard.clock,
            wait_for_hint=no_hint,
            pace=Pace(),
        )

    async def sweep(self) -> None:
        """As the operator does, whenever it is time."""
        now = self._yard.clock.now()
        if now < self._swept + timedelta(seconds=SWEEP_SECONDS):
            return
        self._swept = now
        with suppress(Unavailable):
            await self._sweeper.sweep()

    async def die(self) -> None:
        """The leader is killed; what it was at is suspect to the next one."""
        await self.begin(self.queue.at())

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []


class HubsWorker:
    """The service's worker and the operators of all hubs, as one."""

    def __init__(self, yard: KubeYard, service: Worker | None, *, hubs: bool) -> None:
        self._yard = yard
        self._service = service
        self._hubs = hubs

    async def run_until_idle(self) -> int:
        total = 0
        while True:
            count = await self._service.run_until_idle() if self._service else 0
            await self._yard.catch_up()
            if self._hubs:
                for stage in self._yard.stages.values():
                    count += await stage.worker.run_until_idle()
                    await stage.sweep()
                await self._yard.catch_up()
            if not count:
                return total
            total += count


class KubeYard(Yard):
    form = "kube"

    async def open(self, plane: ControlPlane) -> None:
        """Gives every hub of the catalogue its Kubernetes, and every Kubernetes its operator."""
        # A look at a real hub is a dozen requests; every half minute of stepped time they would be most of a journey.
        self._look_seconds, looking.LOOK_SECONDS = looking.LOOK_SECONDS, 300.0
        self.wire = Wire()
        self.wire.on_write = lambda: self.on_hub_write()
        self.stages: dict[str, HubStage] = {}
        self._client = admin(plane)
        self._ears: list[tuple[Informer, asyncio.Task[None]]] = []
        self._operators = NotedClient(read_kubeconfig(plane.kubeconfig()), self.wire, "operator")
        self.hubs.clients._connect = self._connect
        self.hubs.books.fresh_seconds = 0.0
        self.feedback = Feedback(self.ledger, self.hubs.books, self.hubs.clients, clock=self.clock)
        hubs = (await self.ledger.documents.list(Hub)).items
        kubeconfig = msgspec.json.encode(plane.kubeconfig())
        for hub in hubs:
            await self._give(hub, kubeconfig)

    async def _give(self, hub: Hub, kubeconfig: bytes) -> None:
        place, system = await new_place(self._client, hub=hub.id)
        settings = {"kube.namespace": place.one_namespace, "kube.operator-lease": "none"}
        await self.change_hub(hub.id, kubeconfig=kubeconfig, namespace=system, settings=settings)
        changed = await self.ledger.documents.get(Hub, hub.id)
        assert changed is not None
        self.stages[hub.id] = stage = HubStage(self, changed, self._operators)
        await stage.begin()
        for ear in self.feedback.informers(self._operators, stage.place):
            self._ears.append((ear, asyncio.ensure_future(ear.run())))
            await ear.synced.wait()

    def _connect(self, config: KubeConfig, gate: Gate) -> KubeClient:
        return NotedClient(config, self.wire, "service", gate=gate)

    async def close(self) -> None:
        looking.LOOK_SECONDS = self._look_seconds
        for stage in self.stages.values():
            await stage.end()
        for _, task in self._ears:
            task.cancel()
        await asyncio.gather(*(task for _, task in self._ears), return_exceptions=True)
        await self.hubs.close()
        await hang_up(self._operators, self._client)

    # --- working ---------------------------------------------------------------------------------

    def make_worker(self, only: Sequence[str] = (), name: str = "journey") -> Any:
        """As in any yard; orders are worked on by the hubs' operators, whatever the service does."""
        here = tuple(kind for kind in only if kind != "Order")
        service = super().make_worker(only=here, name=name) if here or not only else None
        return HubsWorker(self, service, hubs=not only or "Order" in only or "Leftover" in only)

    async def replace_worker(self, name: str) -> None:
        for stage in self.stages.values():
            await stage.die()
        self.worker = self.make_worker(name=name)

    async def catch_up(self) -> None:
        """Whatever was written to the API server has been told by every watch, and is due where it should be."""
        touched, self.wire.touched = self.wire.touched, set()
        for stage in self.stages.values():
            for kind in (CLUSTER_ORDERS, LEFTOVERS):
                if (kind.plural, stage.place.one_namespace) in touched:
                    await self._catch_up(kind, stage.place)
        await self.feedback.flush()

    async def _catch_up(self, kind: Kind, place: Place) -> None:
        listed = await self._client.list(kind, place.one_namespace)
        wanted = {key_of(one): one["metadata"]["resourceVersion"] for one in listed.items}
        informers = [ear for ear, _ in self._ears]
        informers += [one for stage in self.stages.values() for one in stage.view.informers]

        def seen() -> bool:
            return all(
                _versions(one) == wanted
                for one in informers
                if one.kind == kind and one._namespace == place.one_namespace
            )

        await until(seen, f"the watches of {kind.plural} have caught up")

    async def next_due(self) -> datetime | None:
        found = [await self.ledger.work.next_due()]
        found += [stage.queue.next_due() for stage in self.stages.values()]
        return min((one for one in found if one is not None), default=None)

    # --- looking ---------------------------------------------------------------------------------

    async def order_of(self, cluster_id: str) -> Order:
        order = await super().order_of(cluster_id)
        credentials = await self.hubs.books.credentials(order)
        assert credentials is not None
        status = msgspec.structs.replace(order.status, credentials=credentials)
        return msgspec.structs.replace(order, status=status)

    async def leftover_of(self, cluster_id: str) -> Leftover | None:
        for stage in self.stages.values():
            book = await self.hubs.books.book(stage.config.id, secrets=Secrets.NONE)
            assert book is not None
            found = await book.leftover(cluster_id)
            if found is not None:
                return found
        return await super().leftover_of(cluster_id)

    async def claimed(self) -> list[Claimed]:
        found: list[Object] = []
        for stage in self.stages.values():
            found += (await self._client.list(CLAIMS, stage.system)).items
        return [Claimed(**{n: one["spec"][n] for n in ("pool", "item", "owner")}) for one in found]

    async def retry(self, cluster_id: str) -> None:
        order = await super().order_of(cluster_id)
        now = self.clock.now()
        await self.ledger.commit(
            [Replace(ask_for_retry(order)), Due("Cluster", cluster_id, now)], now=now
        )


def _versions(informer: Informer) -> dict[str, str]:
    return {key: item["metadata"]["resourceVersion"] for key, item in informer.items()}


@asynccontextmanager
async def kube_yard(plane: ControlPlane, yard: KubeYard) -> AsyncIterator[KubeYard]:
    try:
        await yard.open(plane)
        yield yard
    finally:
        await yard.close()

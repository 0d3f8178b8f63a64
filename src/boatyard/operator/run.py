"""An operator process from start to stop: campaigns, and while it leads works on the hub's orders. Called by app."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

from boatyard.automation.runs import RunBook
from boatyard.engine.kube_queue import KubeQueue
from boatyard.engine.worker import Pace, Worker
from boatyard.kube.client import KubeClient
from boatyard.model.clock import Clock
from boatyard.model.errors import BoatyardError, LeaseLost
from boatyard.operator.callbacks import RunDoor, open_door
from boatyard.operator.config import ConfigWatch, HubConfig
from boatyard.operator.events import Recorder
from boatyard.operator.leadership import Leadership
from boatyard.operator.lost import Rescue
from boatyard.operator.metrics import Counted, Metrics, Sample, operator_metrics
from boatyard.operator.probes import open_probes
from boatyard.operator.strays import Sweeper
from boatyard.orderbook.kube.claims import HubClaims
from boatyard.orderbook.kube.objects import HubObjects
from boatyard.orderbook.kube.results import HubResults
from boatyard.orderbook.kube.view import HubView
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.reconciling import Reconciler

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 600.0
_NO_VIEW = "the hub's orders have not been seen yet"


@dataclass(frozen=True)
class Bench:
    """What reconcilers are built from: the hub's settings, a client, the view of its objects, and the queue."""

    config: HubConfig
    client: KubeClient
    view: HubView
    queue: KubeQueue
    system_namespace: str


@dataclass(frozen=True)
class Furniture:
    """The reconcilers by kind, and a function that returns the hub's drivers."""

    reconcilers: Mapping[str, Reconciler]
    drivers: Callable[[], Awaitable[HubDrivers]]


Furnish = Callable[[Bench], Furniture]  # drivers and books are chosen in app


@dataclass
class Operator:
    """One operator process. `client` is for the work; `leadership` has a client of its own."""

    client: KubeClient
    leadership: Leadership
    system_namespace: str
    furnish: Furnish
    clock: Clock
    probes: str = "127.0.0.1:0"
    pace: Pace = field(default_factory=Pace)
    metrics: Metrics = field(default_factory=operator_metrics)
    on_probes: Callable[[int], None] = lambda port: None
    callbacks: str = ""  # HOST:PORT for results of automation; empty: no such server
    on_callbacks: Callable[[int], None] = lambda port: None
    _view: HubView | None = None
    _queue: KubeQueue | None = None
    _strays: int = 0

    def __post_init__(self) -> None:
        self._config = ConfigWatch(self.client, self.system_namespace)
        self._recorder = Recorder(self.client, now=self.clock.now)
        gauge = self.metrics.gauge
        gauge("leader", "Whether this process leads.", lambda: _one(self.leadership.leads))
        gauge("orders", "Orders on the hub, by phase.", self._orders)
        gauge("held", "Objects worked on now.", lambda: _one(self._count("held")))
        gauge("strays", "Orders known only from objects outside.", lambda: _one(self._strays))
        gauge("waiting", "Objects with a next due time.", lambda: _one(self._count("waiting")))

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop` is set; then finishes the work under way and gives the lead back."""
        async with asyncio.TaskGroup() as tasks:
            background_tasks = [
                tasks.create_task(self._config.informer.run(), name="settings"),
                tasks.create_task(self._recorder.run(), name="events"),
            ]
            async with AsyncExitStack() as servers:
                probes = open_probes(
                    self.probes, healthy=self._unhealthy, ready=self._unready, metrics=self.metrics
                )
                self.on_probes(await servers.enter_async_context(probes))
                if self.callbacks:  # in every replica: a run that reports does not know who leads
                    runs = RunBook(self.client, self.system_namespace)
                    results_server = open_door(self.callbacks, RunDoor(runs, self.clock.now))
                    self.on_callbacks(await servers.enter_async_context(results_server))
                while not stop.is_set():
                    await self._term(stop)
            for task in background_tasks:
                task.cancel()

    async def _term(self, stop: asyncio.Event) -> None:
        """Campaigns, then leads until the lead is lost or `stop` is set."""
        if not await _unless(stop, self.leadership.campaign()):
            return
        self.metrics.add("terms_total")
        try:
            async with asyncio.TaskGroup() as tasks:
                renewal = tasks.create_task(self.leadership.keep(), name="lead")
                while not stop.is_set():
                    await self._shift(stop)
                renewal.cancel()
        except* LeaseLost:
            logger.warning("leadership lost", extra={"identity": self.leadership.identity})
        finally:
            self._view = self._queue = None
        await self.leadership.release()

    async def _shift(self, stop: asyncio.Event) -> None:
        """Works until the hub's settings change or `stop` is set.

        Work begins only after the view is synced, so that what the previous leader did is known.
        """
        if not await _unless(stop, self._config.get()):
            return
        config = self._config.current
        if config is None:
            return
        view = HubView(
            self.client, config.place(self.system_namespace), system_namespace=self.system_namespace
        )
        async with asyncio.TaskGroup() as tasks:
            background_tasks = [tasks.create_task(informer.run()) for informer in view.informers]
            must_stop = asyncio.Event()
            background_tasks.append(tasks.create_task(self._until_changed(config, stop, must_stop)))
            if await _unless(must_stop, view.synced()):
                self.leadership.check()
                rescue = self._rescue(config, view)
                worker, runtime = self._worker(config, view)
                sweeper = Sweeper(
                    client=self.client,
                    view=view,
                    namespace=self.system_namespace,
                    drivers=runtime.drivers,
                    awaited=rescue.awaited,
                    check=self.leadership.check,
                    now=self.clock.now,
                )
                background_tasks.append(tasks.create_task(self._sweep(sweeper)))
                background_tasks.append(tasks.create_task(rescue.run()))
                await worker.run(must_stop)
            for task in background_tasks:
                task.cancel()

    def _worker(self, config: HubConfig, view: HubView) -> tuple[Worker, Furniture]:
        claims = HubClaims(self.client, self.system_namespace, cache=view)
        results = HubResults(
            view=view,
            objects=HubObjects(self.client, config.place(self.system_namespace)),
            claims=claims,
            check=self.leadership.check,
            tell=self._recorder.tell,
        )
        queue = KubeQueue(view=view, results=results, leader=self.leadership, now=self.clock.now())
        self.leadership.watch_over(queue.lasting)
        context = Bench(
            config=config,
            client=self.client,
            view=view,
            queue=queue,
            system_namespace=self.system_namespace,
        )
        self._view, self._queue = view, queue
        runtime = self.furnish(context)
        reconcilers = {
            kind: Counted(reconciler, kind, self.metrics, time.monotonic)
            for kind, reconciler in runtime.reconcilers.items()
        }
        worker = Worker(
            queue=queue,
            reconcilers=reconcilers,
            clock=self.clock,
            wait_for_hint=queue.wait,
            pace=self.pace,
        )
        return worker, runtime

    def _rescue(self, config: HubConfig, view: HubView) -> Rescue:
        objects = HubObjects(self.client, config.place(self.system_namespace))
        return Rescue(view, objects, check=self.leadership.check, now=self.clock.now)

    async def _until_changed(
        self, config: HubConfig, stop: asyncio.Event, must_stop: asyncio.Event
    ) -> None:
        await _unless(stop, self._config.other_than(config))
        must_stop.set()

    async def _sweep(self, sweeper: Sweeper) -> None:
        """Sweeps again and again: finds what a process did just before it died, and recorded nowhere."""
        while True:
            try:
                swept = await sweeper.sweep()
                self.metrics.add("swept_claims_total", swept.claims)
                self.metrics.add("swept_orders_total", swept.orders)
                self._strays = swept.strays
            except LeaseLost:
                raise
            except BoatyardError as error:
                logger.warning("sweep failed", extra={"why": str(error)})
            except Exception:  # as in the engine: a driver's bug must not end the lead
                logger.exception("sweep failed with an internal error")
            await asyncio.sleep(SWEEP_SECONDS)

    # --- health and metrics ----------------------------------------------------------------------

    def _unhealthy(self) -> str:
        """Always healthy once it answers: work that hangs ends when the lead is lost, and begins again."""
        return ""

    def _unready(self) -> str:
        if not self._config.informer.synced.is_set():
            return self._config.informer.problem or "the hub's settings have not been read yet"
        if self._config.current is None:
            return "this hub is not registered"
        if not self.leadership.leads:
            return ""
        return self._view.problem if self._view is not None else _NO_VIEW

    def _orders(self) -> Iterator[Sample]:
        counts = self._view.phases() if self._view is not None else {}
        for phase, count in sorted(counts.items()):
            yield {"phase": phase}, count

    def _count(self, attribute: str) -> float:
        return float(getattr(self._queue, attribute)) if self._queue is not None else 0.0


def _one(value: float) -> list[Sample]:
    return [({}, float(value))]


async def _unless(stop: asyncio.Event, action: Awaitable[object]) -> bool:
    """Runs `action` until it ends or `stop` is set. True if it ended; raises what it raised. Cancels it otherwise."""
    action_task = asyncio.ensure_future(action)
    stop_task = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((action_task, stop_task), return_when=asyncio.FIRST_COMPLETED)
        if action_task.done():
            await action_task
            return True
        return False
    finally:
        for task in (action_task, stop_task):
            task.cancel()
            with suppress(asyncio.CancelledError, BoatyardError):
                await task

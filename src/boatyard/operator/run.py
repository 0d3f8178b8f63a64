"""An operator process from start to stop: campaigns, and while it leads works on the hub's orders. Called by app."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

from boatyard.automation.external_runs import ExternalRunStore
from boatyard.engine.kube_queue import KubeQueue
from boatyard.engine.worker import Worker, WorkerLimits
from boatyard.kube.client import KubeClient
from boatyard.model.clock import Clock
from boatyard.model.errors import BoatyardError, LeaseLost
from boatyard.operator.callbacks import RunResultHandler, serve_run_results
from boatyard.operator.config import ConfigWatch, HubConfig
from boatyard.operator.events import EventRecorder
from boatyard.operator.leadership import Leadership
from boatyard.operator.lost_orders import LostOrderRecovery
from boatyard.operator.metrics import CountingReconciler, Metrics, Sample, make_operator_metrics
from boatyard.operator.orphan_sweep import OrphanSweeper
from boatyard.operator.probes import serve_probes
from boatyard.orderbook.kube.claims import HubClaims
from boatyard.orderbook.kube.objects import HubObjects
from boatyard.orderbook.kube.results import HubResults
from boatyard.orderbook.kube.view import HubView
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.reconciler import Reconciler

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 600.0
_NO_VIEW_PROBLEM = "the hub's orders have not been seen yet"


@dataclass(frozen=True)
class HubContext:
    """What reconcilers are built from: the hub's settings, a client, the view of its objects, and the queue."""

    config: HubConfig
    client: KubeClient
    view: HubView
    queue: KubeQueue
    system_namespace: str


@dataclass(frozen=True)
class HubRuntime:
    """The reconcilers by kind, and a function that returns the hub's drivers."""

    reconcilers: Mapping[str, Reconciler]
    drivers: Callable[[], Awaitable[HubDrivers]]


BuildRuntime = Callable[[HubContext], HubRuntime]  # drivers and books are chosen in app


@dataclass
class Operator:
    """One operator process. `client` is for the work; `leadership` has a client of its own."""

    client: KubeClient
    leadership: Leadership
    system_namespace: str
    build_runtime: BuildRuntime
    clock: Clock
    probes: str = "127.0.0.1:0"
    worker_limits: WorkerLimits = field(default_factory=WorkerLimits)
    metrics: Metrics = field(default_factory=make_operator_metrics)
    on_probes: Callable[[int], None] = lambda port: None
    callbacks: str = ""  # HOST:PORT for results of automation; empty: no such server
    on_callbacks: Callable[[int], None] = lambda port: None
    _view: HubView | None = None
    _queue: KubeQueue | None = None
    _orphaned_orders: int = 0

    def __post_init__(self) -> None:
        self._config = ConfigWatch(self.client, self.system_namespace)
        self._recorder = EventRecorder(self.client, now=self.clock.now)
        gauge = self.metrics.add_gauge
        gauge(
            "leader",
            "Whether this process leads.",
            lambda: _make_single_sample(self.leadership.is_leader),
        )
        gauge("orders", "Orders on the hub, by phase.", self._sample_order_phases)
        gauge(
            "held", "Objects worked on now.", lambda: _make_single_sample(self._count_queue("held"))
        )
        gauge(
            "strays",
            "Orders known only from objects outside.",
            lambda: _make_single_sample(self._orphaned_orders),
        )
        gauge(
            "waiting",
            "Objects with a next due time.",
            lambda: _make_single_sample(self._count_queue("waiting")),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop` is set; then finishes the work under way and gives the lead back."""
        async with asyncio.TaskGroup() as tasks:
            background_tasks = [
                tasks.create_task(self._config.informer.run(), name="settings"),
                tasks.create_task(self._recorder.run(), name="events"),
            ]
            async with AsyncExitStack() as servers:
                probes = serve_probes(
                    self.probes,
                    healthy=self._find_health_problem,
                    ready=self._find_readiness_problem,
                    metrics=self.metrics,
                )
                self.on_probes(await servers.enter_async_context(probes))
                if self.callbacks:  # in every replica: a run that reports does not know who leads
                    runs = ExternalRunStore(self.client, self.system_namespace)
                    results_server = serve_run_results(
                        self.callbacks, RunResultHandler(runs, self.clock.now)
                    )
                    self.on_callbacks(await servers.enter_async_context(results_server))
                while not stop.is_set():
                    await self._lead_once(stop)
            for task in background_tasks:
                task.cancel()

    async def _lead_once(self, stop: asyncio.Event) -> None:
        """Campaigns, then leads until the lead is lost or `stop` is set."""
        if not await _run_unless_stopped(stop, self.leadership.campaign()):
            return
        self.metrics.increment("terms_total")
        try:
            async with asyncio.TaskGroup() as tasks:
                renewal = tasks.create_task(self.leadership.renew_until_lost(), name="lead")
                while not stop.is_set():
                    await self._work_with_config(stop)
                renewal.cancel()
        except* LeaseLost:
            logger.warning("leadership lost", extra={"identity": self.leadership.identity})
        finally:
            self._view = self._queue = None
        await self.leadership.release()

    async def _work_with_config(self, stop: asyncio.Event) -> None:
        """Works until the hub's settings change or `stop` is set.

        Work begins only after the view is synced, so that what the previous leader did is known.
        """
        if not await _run_unless_stopped(stop, self._config.get()):
            return
        config = self._config.current
        if config is None:
            return
        view = HubView(
            self.client,
            config.make_order_settings(self.system_namespace),
            system_namespace=self.system_namespace,
        )
        async with asyncio.TaskGroup() as tasks:
            background_tasks = [tasks.create_task(informer.run()) for informer in view.informers]
            must_stop = asyncio.Event()
            background_tasks.append(
                tasks.create_task(self._stop_when_changed(config, stop, must_stop))
            )
            if await _run_unless_stopped(must_stop, view.wait_until_synced()):
                self.leadership.check_leadership()
                rescue = self._make_lost_order_recovery(config, view)
                worker, runtime = self._worker(config, view)
                sweeper = OrphanSweeper(
                    client=self.client,
                    view=view,
                    namespace=self.system_namespace,
                    drivers=runtime.drivers,
                    awaited=rescue.returning_orders,
                    check=self.leadership.check_leadership,
                    now=self.clock.now,
                )
                background_tasks.append(tasks.create_task(self._sweep_forever(sweeper)))
                background_tasks.append(tasks.create_task(rescue.run()))
                await worker.run(must_stop)
            for task in background_tasks:
                task.cancel()

    def _worker(self, config: HubConfig, view: HubView) -> tuple[Worker, HubRuntime]:
        claims = HubClaims(self.client, self.system_namespace, cache=view)
        results = HubResults(
            view=view,
            objects=HubObjects(self.client, config.make_order_settings(self.system_namespace)),
            claims=claims,
            check=self.leadership.check_leadership,
            publish_note=self._recorder.record_event,
        )
        queue = KubeQueue(view=view, results=results, leader=self.leadership, now=self.clock.now())
        self.leadership.set_long_running_work(queue.list_long_running_work)
        context = HubContext(
            config=config,
            client=self.client,
            view=view,
            queue=queue,
            system_namespace=self.system_namespace,
        )
        self._view, self._queue = view, queue
        runtime = self.build_runtime(context)
        reconcilers = {
            kind: CountingReconciler(reconciler, kind, self.metrics, time.monotonic)
            for kind, reconciler in runtime.reconcilers.items()
        }
        worker = Worker(
            queue=queue,
            reconcilers=reconcilers,
            clock=self.clock,
            wait_for_hint=queue.wait,
            limits=self.worker_limits,
        )
        return worker, runtime

    def _make_lost_order_recovery(self, config: HubConfig, view: HubView) -> LostOrderRecovery:
        objects = HubObjects(self.client, config.make_order_settings(self.system_namespace))
        return LostOrderRecovery(
            view, objects, check=self.leadership.check_leadership, now=self.clock.now
        )

    async def _stop_when_changed(
        self, config: HubConfig, stop: asyncio.Event, must_stop: asyncio.Event
    ) -> None:
        await _run_unless_stopped(stop, self._config.wait_until_not(config))
        must_stop.set()

    async def _sweep_forever(self, sweeper: OrphanSweeper) -> None:
        """Sweeps again and again: finds what a process did just before it died, and recorded nowhere."""
        while True:
            try:
                swept = await sweeper.sweep()
                self.metrics.increment("swept_claims_total", swept.claims)
                self.metrics.increment("swept_orders_total", swept.orders)
                self._orphaned_orders = swept.orphaned_orders
            except LeaseLost:
                raise
            except BoatyardError as error:
                logger.warning("sweep failed", extra={"why": str(error)})
            except Exception:  # as in the engine: a driver's bug must not end the lead
                logger.exception("sweep failed with an internal error")
            await asyncio.sleep(SWEEP_SECONDS)

    # --- health and metrics ----------------------------------------------------------------------

    def _find_health_problem(self) -> str:
        """Always healthy once it answers: work that hangs ends when the lead is lost, and begins again."""
        return ""

    def _find_readiness_problem(self) -> str:
        if not self._config.informer.synced.is_set():
            return self._config.informer.problem or "the hub's settings have not been read yet"
        if self._config.current is None:
            return "this hub is not registered"
        if not self.leadership.is_leader:
            return ""
        return self._view.problem if self._view is not None else _NO_VIEW_PROBLEM

    def _sample_order_phases(self) -> Iterator[Sample]:
        counts = self._view.count_phases() if self._view is not None else {}
        for phase, count in sorted(counts.items()):
            yield {"phase": phase}, count

    def _count_queue(self, attribute: str) -> float:
        return float(getattr(self._queue, attribute)) if self._queue is not None else 0.0


def _make_single_sample(value: float) -> list[Sample]:
    return [({}, float(value))]


async def _run_unless_stopped(stop: asyncio.Event, action: Awaitable[object]) -> bool:
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

"""Builds the operator of a Kubernetes hub: clients, leadership, drivers and reconcilers."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from boatyard.engine.worker import WorkerLimits
from boatyard.kube.circuit_breaker import CircuitBreaker
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.operator.leadership import ElectionTiming, Leadership
from boatyard.operator.run import HubContext, HubRuntime, Operator
from boatyard.orderbook.kube.book import KubeOrderBook, SecretScope
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.resources.hubs.settings import OPERATOR_NAME
from boatyard.resources.leftovers.reconciler import LeftoverReconciler
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.reconciler import OrderReconciler
from boatyard.resources.reconciler import ReconcilePass
from boatyard.wiring import service_process
from boatyard.wiring.driver_factory import DriverFactory, LocalServers
from boatyard.wiring.settings import Settings

_CONCURRENT_REQUESTS = 64  # requests of the order book; the worker limits its passes itself
_REQUEST_SECONDS, _RETRY_SECONDS = 10.0, 15.0
# Between requests to an API server that fails. Renewals of the lead come on top: two operators stay below two a second.
_SPACING_SECONDS = 2.0
_LEAD_SECONDS = 8.0


class OperatorProcess:
    """An operator with its clients and drivers, which are closed when the context is left."""

    def __init__(
        self,
        config: KubeConfig,
        site: LocalServers,
        settings: Settings,
        *,
        timing: ElectionTiming | None = None,
        connect: Callable[..., KubeClient] = KubeClient,
    ) -> None:
        self._driver_factory = DriverFactory(site)
        self._freeze_for = timedelta(minutes=settings.freeze_minutes)
        clock = WallClock()
        self._client = connect(
            config,
            manager=OPERATOR_NAME,
            timeout=_REQUEST_SECONDS,
            patience=_RETRY_SECONDS,
            circuit_breaker=CircuitBreaker(spacing=_SPACING_SECONDS),
        )
        # Its own connections and no retries: a renewal that comes late is useless.
        self._lead_client = KubeClient(
            config, manager=OPERATOR_NAME, timeout=_LEAD_SECONDS, patience=0
        )
        self.operator = Operator(
            client=self._client,
            leadership=Leadership(
                self._lead_client,
                namespace=settings.system_namespace,
                name=OPERATOR_NAME,
                identity=f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}",
                now=clock.now,
                timing=timing,
            ),
            system_namespace=settings.system_namespace,
            build_runtime=self._build_runtime,
            clock=clock,
            probes=settings.probes,
            worker_limits=WorkerLimits(
                max_concurrent=settings.workers_at_once,
                lease=settings.lease_seconds,
                poll=settings.poll_seconds,
            ),
            on_probes=lambda port: service_process.print_line(f"boatyard: probes on port {port}"),
            callbacks=settings.callbacks,
            on_callbacks=lambda port: service_process.print_line(
                f"boatyard: results of automation on port {port}"
            ),
        )

    async def __aenter__(self) -> OperatorProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        await self._lead_client.close()
        await self._driver_factory.close()

    def _build_runtime(self, context: HubContext) -> HubRuntime:
        return build_runtime(context, self._driver_factory, freeze_for=self._freeze_for)


def build_runtime(
    context: HubContext, maker: DriverFactory, *, freeze_for: timedelta
) -> HubRuntime:
    """Builds the reconcilers of a hub on its order book and its drivers."""
    config = context.config
    hub = HubConnection(
        context.client,
        context.view.order_settings,
        system_namespace=context.system_namespace,
        known_claims=context.view,
        at_once=_CONCURRENT_REQUESTS,
    )
    drivers_cache: list[HubDrivers] = []

    async def drivers_for(_hub_id: str) -> HubDrivers:
        # Made on first use, so that a wrong driver name fails an order and does not end the operator.
        if not drivers_cache:
            drivers_cache.append(
                maker.make_drivers(
                    config.id,
                    config.drivers,
                    config.settings,
                    client=context.client,
                    system_namespace=context.system_namespace,
                )
            )
        return drivers_cache[0]

    def book_for(reconcile_pass: ReconcilePass) -> KubeOrderBook:
        return KubeOrderBook(
            hub, check=reconcile_pass.check_lease, secrets=SecretScope.NEEDED, view=context.queue
        )

    return HubRuntime(
        reconcilers={
            "Order": OrderReconciler(
                book_for=book_for, drivers_for=drivers_for, freeze_for=freeze_for
            ),
            "Leftover": LeftoverReconciler(book_for=book_for, drivers_for=drivers_for),
        },
        drivers=lambda: drivers_for(config.id),
    )


class WallClock:
    """The machine's clock, but never going back: when that is set back, this one stands still until it catches up."""

    def __init__(self) -> None:
        self._last = datetime.now(UTC)

    def now(self) -> datetime:
        self._last = max(self._last, datetime.now(UTC))
        return self._last

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

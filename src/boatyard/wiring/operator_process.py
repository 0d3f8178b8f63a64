"""Builds the operator of a Kubernetes hub: clients, leadership, drivers and reconcilers."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from boatyard.engine.worker import Pace
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.kube.gate import Gate
from boatyard.operator.leadership import Leadership, Rhythm
from boatyard.operator.run import Bench, Furniture, Operator
from boatyard.orderbook.kube.book import KubeOrderBook, Secrets
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.resources.hubs.settings import OPERATOR
from boatyard.resources.leftovers.reconciler import LeftoverReconciler
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.reconciler import OrderReconciler
from boatyard.resources.reconciling import Turn
from boatyard.wiring import service_process
from boatyard.wiring.driver_maker import DriverMaker, Site
from boatyard.wiring.settings import Settings

_AT_ONCE = 64  # requests of the order book; the worker limits its passes itself
_REQUEST_SECONDS, _PATIENCE_SECONDS = 10.0, 15.0
# Between requests to an API server that fails. Renewals of the lead come on top: two operators stay below two a second.
_SPACING_SECONDS = 2.0
_LEAD_SECONDS = 8.0


class Office:
    """An operator with its clients and drivers, which are closed when the context is left."""

    def __init__(
        self,
        config: KubeConfig,
        site: Site,
        settings: Settings,
        *,
        rhythm: Rhythm | None = None,
        connect: Callable[..., KubeClient] = KubeClient,
    ) -> None:
        self._maker = DriverMaker(site)
        self._freeze_for = timedelta(minutes=settings.freeze_minutes)
        clock = WallClock()
        self._client = connect(
            config,
            manager=OPERATOR,
            timeout=_REQUEST_SECONDS,
            patience=_PATIENCE_SECONDS,
            gate=Gate(spacing=_SPACING_SECONDS),
        )
        # Its own connections and no retries: a renewal that comes late is useless.
        self._lead_client = KubeClient(config, manager=OPERATOR, timeout=_LEAD_SECONDS, patience=0)
        self.operator = Operator(
            client=self._client,
            leadership=Leadership(
                self._lead_client,
                namespace=settings.system_namespace,
                name=OPERATOR,
                identity=f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}",
                now=clock.now,
                rhythm=rhythm,
            ),
            system_namespace=settings.system_namespace,
            furnish=self._furnish,
            clock=clock,
            probes=settings.probes,
            pace=Pace(
                at_once=settings.workers_at_once,
                lease=settings.lease_seconds,
                poll=settings.poll_seconds,
            ),
            on_probes=lambda port: service_process.say(f"boatyard: probes on port {port}"),
            callbacks=settings.callbacks,
            on_callbacks=lambda port: service_process.say(
                f"boatyard: results of automation on port {port}"
            ),
        )

    async def __aenter__(self) -> Office:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        await self._lead_client.close()
        await self._maker.close()

    def _furnish(self, context: Bench) -> Furniture:
        return furnish(context, self._maker, freeze_for=self._freeze_for)


def furnish(context: Bench, maker: DriverMaker, *, freeze_for: timedelta) -> Furniture:
    """Builds the reconcilers of a hub on its order book and its drivers."""
    config = context.config
    hub = HubConnection(
        context.client,
        context.view.place,
        system_namespace=context.system_namespace,
        known_claims=context.view,
        at_once=_AT_ONCE,
    )
    drivers_cache: list[HubDrivers] = []

    async def drivers_for(_hub_id: str) -> HubDrivers:
        # Made on first use, so that a wrong driver name fails an order and does not end the operator.
        if not drivers_cache:
            drivers_cache.append(
                maker.make(
                    config.id,
                    config.drivers,
                    config.settings,
                    client=context.client,
                    system_namespace=context.system_namespace,
                )
            )
        return drivers_cache[0]

    def book_for(turn: Turn) -> KubeOrderBook:
        return KubeOrderBook(
            hub, check=turn.check_lease, secrets=Secrets.NEEDED, view=context.queue
        )

    return Furniture(
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

"""A worker inside a running process. Called by `up` and `work`."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from boatyard.engine.worker import Pace
from boatyard.ledger.ledger import Ledger
from boatyard.wiring.drivers import Site, connect_twin
from boatyard.wiring.order_watch import Feedback
from boatyard.wiring.role_runner import RoleRunner, RolesElsewhere, Runs
from boatyard.wiring.run_tokens import ApiWay, RunPasses
from boatyard.wiring.settings import Settings
from boatyard.wiring.worker import HubDirectory, make_reconcilers, make_worker

logger = logging.getLogger(__name__)


def runs_of_roles(ledger: Ledger, settings: Settings, api: ApiWay) -> Runs:
    """On this machine, unless it shall run none."""
    return role_runner(ledger, settings, api) if settings.runs_at_once else RolesElsewhere()


def role_runner(ledger: Ledger, settings: Settings, api: ApiWay) -> RoleRunner:
    """Runs roles on this machine; they reach the API by `api`."""
    passes = RunPasses(settings, api, ledger.clock.now)
    if missing := passes.missing():
        logger.warning("roles that decide what is done cannot run here", extra={"why": missing})
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
    """Works on what is due until asked to stop. `roles` are run by whoever is given, which is closed at the end."""
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
                hearing = tasks.create_task(feedback.run(), name="feedback")
                await worker.run(stop)
                hearing.cancel()
    finally:
        await hubs.close()
        await roles.close()

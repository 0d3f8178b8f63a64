"""A worker process of the proof: the product's own worker, which learns over a channel at which point to die.

It is forked from a server that has imported this module, so that a new one starts in milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.port import Automation
from boatyard.checks.drivers import kube as kube_checks
from boatyard.engine.worker import WorkerLimits
from boatyard.kube.circuit_breaker import CircuitBreaker
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig, read_kubeconfig
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from boatyard.platforms.drivers.local.driver import KeeperClient
from boatyard.proof.kill_points import (
    InstrumentedCalls,
    InstrumentedKubeClient,
    KillPoint,
    KillPoints,
)
from boatyard.proof.kube_hub import InstrumentedHubClient, ProofHubAccess
from boatyard.proof.role_runs import InstrumentedAutomation, open_runner
from boatyard.twin.client import TwinClient
from boatyard.wiring.driver_factory import LocalServers
from boatyard.wiring.hub_cache import HubCache
from boatyard.wiring.hub_clients import REQUEST_SECONDS, RETRY_SECONDS, HubClients
from boatyard.wiring.hub_order_books import HubOrderBooks
from boatyard.wiring.operator_process import OperatorProcess
from boatyard.wiring.order_watch import OrderWatch
from boatyard.wiring.run_tokens import ApiEndpoint, RunTokenMaker
from boatyard.wiring.settings import Settings
from boatyard.wiring.worker import HubDirectory, make_reconcilers, make_worker


@dataclass(frozen=True)
class WorkerSpec:
    """Everything that a worker process needs to know. It reads no settings."""

    url: str
    key: bytes
    twin_socket: str
    keeper_socket: str
    log: str
    lease: float
    poll: float
    ignores_notifications: bool = False  # receives no notifications, only polls
    target: KillPoint | None = None  # where it dies; later targets come over the channel
    hub: ProofHubAccess | None = (
        None  # keeps the orders; an operator beside the worker carries them out
    )
    runs_directory: str = ""  # directory of an environment that runs roles
    api: ApiEndpoint | None = None  # how these runs reach the environment's API
    planted_bug: str = ""  # "module:function", called first: a bug that the proof must find


def main(spec: WorkerSpec, channel: Connection) -> None:
    """Runs the process until the parent sends "stop" or closes its end of the channel."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(filename=spec.log, level=logging.WARNING, force=True)
    if spec.planted_bug:
        module, _, name = spec.planted_bug.partition(":")
        getattr(import_module(module), name)()
    asyncio.run(_run_worker(spec, channel))


async def _run_worker(spec: WorkerSpec, channel: Connection) -> None:
    points = KillPoints(lambda text: channel.send(("at", text)))
    points.set_target(spec.target)
    ledger = await Ledger.open(
        spec.url,
        seal=Seal.from_bytes(spec.key),
        application="prove",
        on_write=points.pass_point,
        pool_size=4,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(channel.fileno(), _read_command, channel, points, stop)

    InstrumentedKubeClient.points = points
    kube_checks.KubeClient = InstrumentedKubeClient  # type: ignore[attr-defined]

    site = LocalServers(
        twin_socket=spec.twin_socket,
        connect_twin=lambda path: InstrumentedCalls(TwinClient(Path(path)), points),
        keeper_socket=spec.keeper_socket,
        connect_keeper=lambda path: InstrumentedCalls(KeeperClient(Path(path)), points),
        automation=_make_automation(spec, points, ledger),
    )
    InstrumentedHubClient.points = points
    books = HubOrderBooks(HubCache(ledger), HubClients(_connect_hub))
    hubs = HubDirectory(books, site)
    reconcilers = make_reconcilers(
        ledger, hubs, delete_within=timedelta(minutes=15), sweep_every=timedelta(0)
    )
    background_tasks = [] if spec.ignores_notifications else [asyncio.create_task(ledger.run())]
    if spec.hub is not None:
        feedback = OrderWatch(ledger, books.hubs, books.clients, clock=ledger.clock)
        background_tasks += [
            asyncio.create_task(feedback.run()),
            asyncio.create_task(_run_operator(spec, spec.hub, site)),
        ]
    async with ledger.change_notifier.subscribe() as wake:
        worker = make_worker(
            ledger,
            reconcilers,
            clock=ledger.clock,
            wait_for_hint=asyncio.sleep if spec.ignores_notifications else wake.wait,
            limits=WorkerLimits(lease=spec.lease, poll=spec.poll, restart=0.1),
        )
        channel.send(("ready", os.getpid()))
        await worker.run(stop)
    for task in background_tasks:
        task.cancel()
    await asyncio.gather(*background_tasks, return_exceptions=True)
    await hubs.close()
    await books.clients.close()
    await ledger.close()


def _make_automation(
    spec: WorkerSpec, points: KillPoints, ledger: Ledger
) -> Callable[[str], Automation] | None:
    if spec.api is None:
        return None
    run_tokens = RunTokenMaker(Settings(data=spec.runs_directory), spec.api, ledger.clock.now)
    runner = open_runner(Path(spec.runs_directory), run_tokens)
    return lambda hub: InstrumentedAutomation(LocalAutomation(runner, hub), points)


def _connect_hub(config: KubeConfig, circuit_breaker: CircuitBreaker) -> KubeClient:
    return InstrumentedHubClient(
        config, timeout=REQUEST_SECONDS, patience=RETRY_SECONDS, circuit_breaker=circuit_breaker
    )


async def _run_operator(spec: WorkerSpec, hub: ProofHubAccess, site: LocalServers) -> None:
    settings = Settings(
        system_namespace=hub.system,
        probes="127.0.0.1:0",
        lease_seconds=spec.lease,
        poll_seconds=spec.poll,
    )
    async with OperatorProcess(
        read_kubeconfig(hub.kubeconfig), site, settings, connect=InstrumentedHubClient
    ) as operator_process:
        await operator_process.operator.run(asyncio.Event())


def _read_command(channel: Connection, points: KillPoints, stop: asyncio.Event) -> None:
    try:
        command, *arguments = channel.recv()
    except (EOFError, OSError):
        os._exit(0)  # the parent has ended
    if command == "begin":
        label, occurrence, signal_number = arguments
        points.set_target(KillPoint(label, occurrence) if label else None, signal_number)
        channel.send(("begun",))
    elif command == "passed":
        channel.send(("passed", [(point.label, point.occurrence) for point in points.passed]))
    else:
        stop.set()

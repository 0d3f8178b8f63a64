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
from boatyard.engine.worker import Pace
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig, read_kubeconfig
from boatyard.kube.gate import Gate
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from boatyard.platforms.drivers.local.driver import KeeperClient
from boatyard.proof.kill_points import Point, Points, WatchedCalls, WatchedKube
from boatyard.proof.kube_hub import HubPlace, WatchedHub
from boatyard.proof.role_runs import WatchedAutomation, open_workshop
from boatyard.twin.client import TwinClient
from boatyard.wiring.driver_maker import Site
from boatyard.wiring.hub_clients import PATIENCE_SECONDS, REQUEST_SECONDS, HubClients
from boatyard.wiring.operator_process import Office
from boatyard.wiring.order_watch import Feedback
from boatyard.wiring.run_tokens import ApiWay, RunPasses
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
    deaf: bool = False  # receives no notifications, only polls
    target: Point | None = None  # where it dies; later targets come over the channel
    hub: HubPlace | None = None  # keeps the orders; an operator beside the worker carries them out
    runs: str = ""  # directory of an environment that runs roles
    api: ApiWay | None = None  # how these runs reach the environment's API
    plant: str = ""  # "module:function", called first: a bug that the proof must find


def main(spec: WorkerSpec, channel: Connection) -> None:
    """Runs the process until the parent sends "stop" or closes its end of the channel."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(filename=spec.log, level=logging.WARNING, force=True)
    if spec.plant:
        module, _, name = spec.plant.partition(":")
        getattr(import_module(module), name)()
    asyncio.run(_work(spec, channel))


async def _work(spec: WorkerSpec, channel: Connection) -> None:
    points = Points(lambda text: channel.send(("at", text)))
    points.begin(spec.target)
    ledger = await Ledger.open(
        spec.url,
        seal=Seal.from_bytes(spec.key),
        application="prove",
        on_write=points.reach,
        pool_size=4,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(channel.fileno(), _hear, channel, points, stop)

    WatchedKube.points = points
    kube_checks.KubeClient = WatchedKube  # type: ignore[attr-defined]

    site = Site(
        twin_socket=spec.twin_socket,
        connect_twin=lambda path: WatchedCalls(TwinClient(Path(path)), points),
        keeper_socket=spec.keeper_socket,
        connect_keeper=lambda path: WatchedCalls(KeeperClient(Path(path)), points),
        automation=_automation(spec, points, ledger),
    )
    WatchedHub.points = points
    hubs = HubDirectory(ledger, site, HubClients(_connect_hub))
    reconcilers = make_reconcilers(
        ledger, hubs, delete_within=timedelta(minutes=15), sweep_every=timedelta(0)
    )
    background_tasks = [] if spec.deaf else [asyncio.create_task(ledger.run())]
    if spec.hub is not None:
        feedback = Feedback(ledger, hubs.books, hubs.clients, clock=ledger.clock)
        background_tasks += [
            asyncio.create_task(feedback.run()),
            asyncio.create_task(_operate(spec, spec.hub, site)),
        ]
    async with ledger.wakes.subscribe() as wake:
        worker = make_worker(
            ledger,
            reconcilers,
            clock=ledger.clock,
            wait_for_hint=asyncio.sleep if spec.deaf else wake.wait,
            pace=Pace(lease=spec.lease, poll=spec.poll, restart=0.1),
        )
        channel.send(("ready", os.getpid()))
        await worker.run(stop)
    for task in background_tasks:
        task.cancel()
    await asyncio.gather(*background_tasks, return_exceptions=True)
    await hubs.close()
    await ledger.close()


def _automation(
    spec: WorkerSpec, points: Points, ledger: Ledger
) -> Callable[[str], Automation] | None:
    if spec.api is None:
        return None
    run_tokens = RunPasses(Settings(data=spec.runs), spec.api, ledger.clock.now)
    runner = open_workshop(Path(spec.runs), run_tokens)
    return lambda hub: WatchedAutomation(LocalAutomation(runner, hub), points)


def _connect_hub(config: KubeConfig, gate: Gate) -> KubeClient:
    return WatchedHub(config, timeout=REQUEST_SECONDS, patience=PATIENCE_SECONDS, gate=gate)


async def _operate(spec: WorkerSpec, hub: HubPlace, site: Site) -> None:
    settings = Settings(
        system_namespace=hub.system,
        probes="127.0.0.1:0",
        lease_seconds=spec.lease,
        poll_seconds=spec.poll,
    )
    async with Office(
        read_kubeconfig(hub.kubeconfig), site, settings, connect=WatchedHub
    ) as operator_process:
        await operator_process.operator.run(asyncio.Event())


def _hear(channel: Connection, points: Points, stop: asyncio.Event) -> None:
    try:
        command, *arguments = channel.recv()
    except (EOFError, OSError):
        os._exit(0)  # the parent has ended
    if command == "begin":
        label, occurrence, signal_number = arguments
        points.begin(Point(label, occurrence) if label else None, signal_number)
        channel.send(("begun",))
    elif command == "passed":
        channel.send(("passed", [(point.label, point.time) for point in points.passed]))
    else:
        stop.set()

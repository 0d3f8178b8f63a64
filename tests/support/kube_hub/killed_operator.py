"""An operator process that is told where to die: before or after any write to the hub, any effect outside.

The places are those of `boatyard prove`, with the hub's API in the place of the ledger. Forked from a server that has
imported everything, so a new one costs milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import re
import signal
from dataclasses import dataclass
from functools import partialmethod
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.operator.leadership import ElectionTiming
from boatyard.proof.kill_points import InstrumentedCalls, KillPoints
from boatyard.proof.worker import _read_command as hear
from boatyard.proof.worker_process import ProofWorker
from boatyard.twin.client import TwinClient
from boatyard.wiring.driver_factory import LocalServers
from boatyard.wiring.operator_process import OperatorProcess
from boatyard.wiring.settings import Settings

# A dead one is followed after three seconds instead of twelve: there are many deaths to sit out.
RHYTHM = ElectionTiming(duration=3.0, renew=0.3, retry=0.1, margin=0.5)
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_NO_WORK = ("leases", "events")  # who leads, and words for people
_PLACE = re.compile(r"/namespaces/[^/]+/([^/]+)(?:/[^/]+)?(/[^/]+)?$")


@dataclass(frozen=True)
class OperatorSpec:
    kubeconfig: str
    system_namespace: str
    twin_socket: str
    log: str
    plant: str = ""  # "module:function", called first


class WatchedHub(KubeClient):
    """The hub, with every write to it announced by verb and kind."""

    points: KillPoints  # of the process; set once

    async def _send_with_retries(self, question: Any) -> Any:
        place = _PLACE.search(question.path)
        if question.method not in _WRITES or place is None or place[1] in _NO_WORK:
            return await super()._send_with_retries(question)
        label = f"write:{question.method} {place[1]}{place[2] or ''}"
        self.points.pass_point(f"before:{label}")
        answer = await super()._send_with_retries(question)
        self.points.pass_point(f"after:{label}")
        return answer


def main(spec: OperatorSpec, channel: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(filename=spec.log, level=logging.WARNING, force=True)
    if spec.plant:
        module, _, name = spec.plant.partition(":")
        getattr(import_module(module), name)()
    asyncio.run(_operate(spec, channel))


def brief_lease() -> None:
    """For `tests.support.planted_bugs.command`: the command as it is, but with this rhythm."""
    OperatorProcess.__init__ = partialmethod(OperatorProcess.__init__, timing=RHYTHM)  # type: ignore[method-assign,assignment]


async def _operate(spec: OperatorSpec, channel: Connection) -> None:
    points = KillPoints(lambda text: channel.send(("at", text)))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(channel.fileno(), hear, channel, points, stop)
    WatchedHub.points = points
    site = LocalServers(
        twin_socket=spec.twin_socket,
        connect_twin=lambda path: InstrumentedCalls(TwinClient(Path(path)), points),
    )
    settings = Settings(
        system_namespace=spec.system_namespace, probes="127.0.0.1:0", poll_seconds=0.2
    )
    config = read_kubeconfig(spec.kubeconfig)
    async with OperatorProcess(config, site, settings, timing=RHYTHM, connect=WatchedHub) as office:
        office.operator.on_probes = lambda port: None
        channel.send(("ready", os.getpid()))
        await office.operator.run(stop)


_context: ForkServerContext | None = None


async def start_operator(
    kubeconfig: dict[str, Any], system: str, socket: Path, folder: Path, plant: str = ""
) -> ProofWorker:
    """One more, ready to campaign."""
    global _context
    if _context is None:
        _context = multiprocessing.get_context("forkserver")
        _context.set_forkserver_preload([__name__])
    spec = OperatorSpec(
        json.dumps(kubeconfig), system, str(socket), str(folder / "operator.log"), plant
    )
    ours, theirs = _context.Pipe()
    process = _context.Process(target=main, args=(spec, theirs), daemon=True)
    process.start()
    theirs.close()
    member = ProofWorker(process, ours)
    asyncio.get_running_loop().add_reader(ours.fileno(), member._on_message)
    await member._receive("ready")
    return member

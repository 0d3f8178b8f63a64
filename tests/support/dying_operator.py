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
from boatyard.operator.leadership import Rhythm
from boatyard.proof.kill_points import Points, WatchedCalls
from boatyard.proof.worker import _hear as hear
from boatyard.proof.worker_process import CrewMember
from boatyard.twin.client import TwinClient
from boatyard.wiring.driver_maker import Site
from boatyard.wiring.operator_process import Office
from boatyard.wiring.settings import Settings

# A dead one is followed after three seconds instead of twelve: there are many deaths to sit out.
RHYTHM = Rhythm(duration=3.0, renew=0.3, retry=0.1, margin=0.5)
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

    points: Points  # of the process; set once

    async def _ask(self, question: Any) -> Any:
        place = _PLACE.search(question.path)
        if question.method not in _WRITES or place is None or place[1] in _NO_WORK:
            return await super()._ask(question)
        label = f"write:{question.method} {place[1]}{place[2] or ''}"
        self.points.reach(f"before:{label}")
        answer = await super()._ask(question)
        self.points.reach(f"after:{label}")
        return answer


def main(spec: OperatorSpec, channel: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(filename=spec.log, level=logging.WARNING, force=True)
    if spec.plant:
        module, _, name = spec.plant.partition(":")
        getattr(import_module(module), name)()
    asyncio.run(_operate(spec, channel))


def brief_lease() -> None:
    """For `tests.support.planted`: the command as it is, but with this rhythm."""
    Office.__init__ = partialmethod(Office.__init__, rhythm=RHYTHM)  # type: ignore[method-assign,assignment]


async def _operate(spec: OperatorSpec, channel: Connection) -> None:
    points = Points(lambda text: channel.send(("at", text)))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(channel.fileno(), hear, channel, points, stop)
    WatchedHub.points = points
    site = Site(
        twin_socket=spec.twin_socket,
        connect_twin=lambda path: WatchedCalls(TwinClient(Path(path)), points),
    )
    settings = Settings(
        system_namespace=spec.system_namespace, probes="127.0.0.1:0", poll_seconds=0.2
    )
    config = read_kubeconfig(spec.kubeconfig)
    async with Office(config, site, settings, rhythm=RHYTHM, connect=WatchedHub) as office:
        office.operator.on_probes = lambda port: None
        channel.send(("ready", os.getpid()))
        await office.operator.run(stop)


_context: ForkServerContext | None = None


async def start_operator(
    kubeconfig: dict[str, Any], system: str, socket: Path, folder: Path, plant: str = ""
) -> CrewMember:
    """One more, ready to campaign."""
    global _context
    if _context is None:
        _context = multiprocessing.get_context("forkserver")
        _context.set_forkserver_preload([__name__])
    spec = OperatorSpec(
        json.dumps(kubeconfig), system, str(socket), str(folder / "dying.log"), plant
    )
    ours, theirs = _context.Pipe()
    process = _context.Process(target=main, args=(spec, theirs), daemon=True)
    process.start()
    theirs.close()
    member = CrewMember(process, ours)
    asyncio.get_running_loop().add_reader(ours.fileno(), member._hear)
    await member._answer("ready")
    return member

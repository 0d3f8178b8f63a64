"""The keeper's process: locks its directory and serves the keeper's verbs on a unix socket.

Clusters outlive it: a new keeper on the same directory finds their processes by their marks.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import inspect
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from boatyard.assets import Assets
from boatyard.model.errors import BoatyardError, Refused
from boatyard.platforms.drivers.local import real
from boatyard.platforms.drivers.local.keeper import Keeper
from boatyard.platforms.drivers.local.nodes.machines import MachineSource, TwinMachineSource
from boatyard.processes.logs import JsonLines, RotatingStreamHandler
from boatyard.processes.serving import ServedConnection, SocketServer
from boatyard.processes.socket_protocol import decode_call, encode_response
from boatyard.twin.client import TwinClient

logger = logging.getLogger(__name__)

REAL_NODES_OFF = "real nodes are switched off here"
REAL_NODES_REMEDY = "an operator switches them on: boatyard up --real-nodes"
_LOCK_ATTEMPTS = 10

VERBS = frozenset(
    {
        "ping",
        "ensure_cluster",
        "release_cluster",
        "ensure_node",
        "release_node",
        "choose_leaving",
        "observe",
        "access",
        "ensure_backup",
        "release_backup",
        "list_owned",
        "processes",
    }
)


class TwinNodeBackend:
    """Simulated nodes follow the machines of the twin; real nodes are refused unless an operator has enabled them."""

    def __init__(self, twin_socket: str, *, real_nodes: bool) -> None:
        self._real_nodes_allowed = real_nodes
        self._twin = TwinClient(Path(twin_socket))
        self._machines: dict[str, MachineSource] = {}

    def get_machines(self, hub: str) -> MachineSource:
        if hub not in self._machines:
            self._machines[hub] = TwinMachineSource(self._twin, hub)
        return self._machines[hub]

    def describe_real_nodes(self) -> dict[str, Any]:
        """Returns whether real nodes may be ordered here, and what this machine lacks for them."""
        return {"allowed": self._real_nodes_allowed, "missing": list(real.list_missing())}

    def check_real_nodes(self) -> None:
        if not self._real_nodes_allowed:
            raise Refused(f"{REAL_NODES_OFF}; {REAL_NODES_REMEDY}", reason="RealNodesOff")
        real.check_requirements()

    async def close(self) -> None:
        await self._twin.close()


class KeeperServer:
    def __init__(self, keeper: Keeper, node_backend: TwinNodeBackend) -> None:
        self._keeper = keeper
        self._node_backend = node_backend
        self._tasks: set[asyncio.Task[None]] = set()
        self.stop = asyncio.Event()
        self.stop_clusters = False

    async def handle_call(self, number: int, verb: str, args: dict[str, Any]) -> bytes:
        verb = verb.removeprefix("keeper.")
        try:
            if verb == "shutdown":
                self.stop_clusters = bool(args.get("stop_clusters"))
                self.stop.set()
                return encode_response(number, os.getpid(), None)
            if verb == "real_nodes":
                return encode_response(
                    number, await asyncio.to_thread(self._node_backend.describe_real_nodes), None
                )
            if verb not in VERBS:
                raise Refused(f"the keeper has no verb {verb!r}")
            method = getattr(self._keeper, verb)
            try:
                inspect.signature(method).bind(**args)
            except TypeError as error:
                raise Refused(f"{verb}: {error}") from error
            return encode_response(number, await method(**args), None)
        except BoatyardError as error:
            return encode_response(number, None, error)

    def accept_call(self, connection: ServedConnection, payload: bytes) -> None:
        number, verb, args = decode_call(payload)

        async def carry_out() -> None:
            connection.send(await self.handle_call(number, verb, args))

        task = asyncio.create_task(carry_out())
        self._tasks.add(task)
        task.add_done_callback(self._handle_task_end)

    def _handle_task_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            # The caller gets no answer and tries again; the traceback is in the log.
            logger.error("keeper verb crashed", exc_info=task.exception())

    async def wait_for_calls(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def serve(
    directory: Path, socket_path: Path, *, assets: Path | None, twin: str, real_nodes: bool
) -> None:
    """Serves until a signal or the verb `shutdown`. Refused when another keeper has the directory."""
    socket_server = SocketServer(socket_path)
    with _hold_lock(directory):
        follow = TwinNodeBackend(twin, real_nodes=real_nodes)
        keeper = Keeper(directory, programs=Assets(assets), node_backend=follow)
        server = KeeperServer(keeper, follow)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop.set)
        await keeper.start()
        await socket_server.listen(server.accept_call)
        with contextlib.suppress(BrokenPipeError):  # our parent may have ended
            sys.stdout.write("ready\n")
            sys.stdout.flush()
        try:
            await server.stop.wait()
        finally:
            socket_server.stop_listening()
            await keeper.close(stop=server.stop_clusters)
            await server.wait_for_calls()
            socket_server.close()
            await follow.close()


@contextlib.contextmanager
def _hold_lock(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "keeper.lock").open("a") as lock:
        for patience in range(_LOCK_ATTEMPTS, -1, -1):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if not patience:
                    raise Refused(f"another keeper holds {directory}") from error
                time.sleep(0.05)  # somebody may only be testing the lock
        yield


def _set_resource_limits() -> None:
    """Sets limits that the clusters' processes inherit: no core dumps with secrets, enough open files for etcd."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(65_536, most), min(65_536, most)))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="boatyard keeper")
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--twin", required=True)
    parser.add_argument("--assets", type=Path)
    parser.add_argument("--real-nodes", action="store_true")
    args = parser.parse_args(argv)
    handler = RotatingStreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    _set_resource_limits()
    try:
        asyncio.run(
            serve(
                args.directory,
                args.socket,
                assets=args.assets,
                twin=args.twin,
                real_nodes=args.real_nodes,
            )
        )
    except BoatyardError as error:
        sys.stderr.write(f"keeper: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

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
from boatyard.platforms.drivers.local.nodes.machines import Machines, TwinMachines
from boatyard.processes.logs import BoundedHandler
from boatyard.processes.wire import (
    BadFrame,
    Frames,
    check_socket_path,
    decode_call,
    encode_answer,
)
from boatyard.twin.client import TwinClient

logger = logging.getLogger(__name__)

REAL_NODES_OFF = "real nodes are switched off here"
SWITCH_ON = "an operator switches them on: boatyard up --real-nodes"
_LOCK_LOOKS = 10

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


class Following:
    """Simulated nodes follow the machines of the twin; real nodes are refused unless an operator has enabled them."""

    def __init__(self, twin_socket: str, *, real_nodes: bool) -> None:
        self._real_nodes = real_nodes
        self._twin = TwinClient(Path(twin_socket))
        self._machines: dict[str, Machines] = {}

    def machines(self, hub: str) -> Machines:
        if hub not in self._machines:
            self._machines[hub] = TwinMachines(self._twin, hub)
        return self._machines[hub]

    def real_nodes(self) -> dict[str, Any]:
        """Returns whether real nodes may be ordered here, and what this machine lacks for them."""
        return {"allowed": self._real_nodes, "missing": list(real.missing())}

    def check_real(self) -> None:
        if not self._real_nodes:
            raise Refused(f"{REAL_NODES_OFF}; {SWITCH_ON}", reason="RealNodesOff")
        real.check_all()

    async def close(self) -> None:
        await self._twin.close()


class Server:
    def __init__(self, keeper: Keeper, follow: Following) -> None:
        self._keeper = keeper
        self._follow = follow
        self._tasks: set[asyncio.Task[None]] = set()
        self.stop = asyncio.Event()
        self.stop_clusters = False

    async def answer(self, number: int, verb: str, args: dict[str, Any]) -> bytes:
        verb = verb.removeprefix("keeper.")
        try:
            if verb == "shutdown":
                self.stop_clusters = bool(args.get("stop_clusters"))
                self.stop.set()
                return encode_answer(number, os.getpid(), None)
            if verb == "real_nodes":
                return encode_answer(number, await asyncio.to_thread(self._follow.real_nodes), None)
            if verb not in VERBS:
                raise Refused(f"the keeper has no verb {verb!r}")
            method = getattr(self._keeper, verb)
            try:
                inspect.signature(method).bind(**args)
            except TypeError as error:
                raise Refused(f"{verb}: {error}") from error
            return encode_answer(number, await method(**args), None)
        except BoatyardError as error:
            return encode_answer(number, None, error)

    def accept(self, connection: _Connection, payload: bytes) -> None:
        number, verb, args = decode_call(payload)

        async def carry_out() -> None:
            connection.send(await self.answer(number, verb, args))

        task = asyncio.create_task(carry_out())
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            # The caller gets no answer and tries again; the traceback is in the log.
            logger.error("keeper verb crashed", exc_info=task.exception())

    async def finish(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Connection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self._server = server
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._frames.feed(data):
                self._server.accept(self, payload)
        except BadFrame as error:
            logger.warning("client does not speak our protocol", extra={"what": str(error)})
            if self._transport is not None:
                self._transport.abort()

    def send(self, answer: bytes) -> None:
        if self._transport is not None:
            self._transport.write(answer)


async def serve(
    directory: Path, socket_path: Path, *, assets: Path | None, twin: str, real_nodes: bool
) -> None:
    """Serves until a signal or the verb `shutdown`. Refused when another keeper has the directory."""
    check_socket_path(socket_path)
    with _locked(directory):
        follow = Following(twin, real_nodes=real_nodes)
        keeper = Keeper(directory, programs=Assets(assets), follow=follow)
        server = Server(keeper, follow)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop.set)
        await keeper.start()
        _remove(socket_path)  # we have the lock, so a socket here is left from a killed keeper
        listener = await loop.create_unix_server(lambda: _Connection(server), path=str(socket_path))
        os.chmod(socket_path, 0o600)
        with contextlib.suppress(BrokenPipeError):  # our parent may have ended
            sys.stdout.write("ready\n")
            sys.stdout.flush()
        try:
            await server.stop.wait()
        finally:
            listener.close()
            _remove(socket_path)
            await keeper.close(stop=server.stop_clusters)
            await server.finish()
            await follow.close()


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "keeper.lock").open("a") as lock:
        for patience in range(_LOCK_LOOKS, -1, -1):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if not patience:
                    raise Refused(f"another keeper holds {directory}") from error
                time.sleep(0.05)  # somebody may only be testing the lock
        yield


class _Lines(logging.Formatter):
    """Formats a log record as one line with its extra fields."""

    _USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

    def formatMessage(self, record: logging.LogRecord) -> str:
        fields = [
            f"{name}={value}" for name, value in vars(record).items() if name not in self._USUAL
        ]
        return " ".join((super().formatMessage(record), *fields))


def _bound_resources() -> None:
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
    handler = BoundedHandler(sys.stderr)
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    _bound_resources()
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

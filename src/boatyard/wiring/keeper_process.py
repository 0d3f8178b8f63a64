"""Starts the keeper of local clusters for `up`, finds one that already runs, and restarts one that dies.

The keeper does not end with this process: when `up` is killed it goes on, and the next `up` finds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from boatyard.assets import Assets
from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.drivers.local.driver import KeeperClient
from boatyard.wiring.settings import Settings
from boatyard.wiring.socket_paths import choose_socket_path

logger = logging.getLogger(__name__)

_START_SECONDS = 30.0
_STOP_SECONDS = 60.0
_CHECK_SECONDS = 2.0
_POLL_SECONDS = 0.05
_CLUSTERS_FOLDER = "clusters"


def keeper_socket(settings: Settings) -> str:
    return settings.keeper_socket or choose_socket_path(settings.data_dir, "keeper.sock")


def local_directory(settings: Settings) -> Path:
    return settings.data_dir / "local"


def find_assets(settings: Settings) -> Assets:
    return Assets(Path(settings.assets).expanduser() if settings.assets else None)


def is_keeper_needed(settings: Settings) -> bool:
    """Whether there are local clusters, or programs to create some."""
    clusters = local_directory(settings) / _CLUSTERS_FOLDER
    return bool(find_assets(settings).versions()) or (clusters.is_dir() and any(clusters.iterdir()))


def keeper_command(
    directory: Path, *, socket: str, twin_socket: str, assets: str, real_nodes: bool = False
) -> list[str]:
    """The command line of a keeper for the clusters of a directory. The keeper prints "ready" once it listens."""
    command = [sys.executable, "-m", "boatyard.platforms.drivers.local.server"]
    command += ["--directory", str(directory), "--socket", socket, "--twin", twin_socket]
    command += ["--assets", assets] if assets else []
    return [*command, "--real-nodes"] if real_nodes else command


@asynccontextmanager
async def start_keeper(settings: Settings, *, twin_socket: str) -> AsyncIterator[str]:
    """Runs a keeper until the context is left; yields its socket, or "" when no keeper is needed.

    Leaving the context stops the clusters; they start again with the next `up`.
    """
    if not is_keeper_needed(settings):
        yield ""
        return
    socket = keeper_socket(settings)
    keeper = _KeeperProcess(settings, socket, twin_socket)
    await keeper.ensure_with_settings()
    async with asyncio.TaskGroup() as tasks:
        watch_task = tasks.create_task(keeper.watch(), name="watching the keeper")
        try:
            yield socket
        finally:
            watch_task.cancel()
            await keeper.stop()


class _KeeperProcess:
    def __init__(self, settings: Settings, socket: str, twin_socket: str) -> None:
        self._directory = local_directory(settings)
        self._lock = self._directory / "keeper.lock"
        self._socket = socket
        assets = str(Path(settings.assets).expanduser().absolute()) if settings.assets else ""
        self._command = keeper_command(
            self._directory,
            socket=socket,
            twin_socket=twin_socket,
            assets=assets,
            real_nodes=settings.real_nodes,
        )
        self._real_nodes = settings.real_nodes

    async def ensure_with_settings(self) -> None:
        """Ensures a keeper with our settings. Replaces one that has others; its clusters run on meanwhile."""
        await self.ensure_running()
        if await self._allows_real_nodes() != self._real_nodes:
            logger.info("keeper replaced", extra={"real_nodes": self._real_nodes})
            await self._end_keeper(stop_clusters=False)
            await self.ensure_running()

    async def ensure_running(self) -> None:
        """Starts a keeper unless one answers. Waits for one that is just starting or ending."""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                while not await self._is_answering():
                    if not is_locked(self._lock):
                        return await self._start()
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError as error:
            raise Unavailable(
                f"the keeper of local clusters in {self._directory} lives, but does not answer"
            ) from error

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            if not await self._is_answering():
                logger.warning("keeper of local clusters does not answer; starting one")
                with contextlib.suppress(Unavailable):
                    await self.ensure_running()

    async def stop(self) -> None:
        """Stops the clusters and ends the keeper."""
        await self._end_keeper(stop_clusters=True)

    async def _end_keeper(self, *, stop_clusters: bool) -> None:
        """Ends the keeper; returns when it has released the directory, or after a minute."""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                while is_locked(self._lock):
                    # Asked again each time: it may have been starting before.
                    await self._ask_to_end(stop_clusters=stop_clusters)
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            logger.error("keeper of local clusters did not end")

    async def _ask_to_end(self, *, stop_clusters: bool) -> None:
        client = KeeperClient(Path(self._socket), timeout=5.0)
        with contextlib.suppress(Unavailable):
            await client.call("keeper.shutdown", stop_clusters=stop_clusters)
        await client.close()

    async def _allows_real_nodes(self) -> bool | None:
        """Whether the running keeper allows real nodes; None when it does not tell."""
        client = KeeperClient(Path(self._socket), timeout=5.0)
        try:
            return bool((await client.call("keeper.real_nodes"))["allowed"])
        except (Unavailable, Refused):  # one of an older version has no such verb
            return None
        finally:
            await client.close()

    async def _is_answering(self) -> bool:
        client = KeeperClient(Path(self._socket), timeout=5.0)
        try:
            await client.call("keeper.ping")
        except Unavailable:
            return False
        finally:
            await client.close()
        return True

    async def _start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / "keeper.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_START_SECONDS):
                line = await process.stdout.readline()
        except TimeoutError as error:
            raise Unavailable(f"the keeper was not ready within {_START_SECONDS:g} s") from error
        if line.strip() != b"ready":
            raise Unavailable(
                f"the keeper of local clusters could not start; {self._directory / 'keeper.log'} says why"
            )


def is_locked(path: Path) -> bool:
    """Whether a living keeper has the lock. The lock of a dead one is released by the kernel."""
    if not path.exists():
        return False
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

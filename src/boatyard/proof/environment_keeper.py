"""The keeper of an environment: a process that outlives every worker, may be killed, and ends with the environment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from boatyard.assets import Assets
from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.local.driver import KeeperClient
from boatyard.processes import marked_processes
from boatyard.proof.keeper_state import KeeperState, find_duplicates, keeper_mark, read_keeper_state
from boatyard.wiring.keeper_process import keeper_command
from boatyard.wiring.socket_paths import choose_socket_path

_START_SECONDS = 30.0
_PLANTED_BUG_PROGRAM = (
    "import sys; from importlib import import_module;"
    "getattr(import_module(sys.argv[1]), sys.argv[2])(); del sys.argv[1:3];"
    "from boatyard.platforms.drivers.local.server import main; sys.exit(main())"
)


class EnvironmentKeeper:
    """At most one process lives at a time. Clusters of a killed keeper run on, and the next keeper finds them."""

    def __init__(self, directory: Path, *, twin_socket: str, assets: Assets, plant: str) -> None:
        self.directory = directory / "local"
        self.socket = choose_socket_path(directory, "keeper.sock")
        self._command = keeper_command(
            self.directory,
            socket=self.socket,
            twin_socket=twin_socket,
            assets=str(assets.directory),
        )
        if plant:
            module, _, name = plant.partition(":")
            self._command = [
                sys.executable,
                "-c",
                _PLANTED_BUG_PROGRAM,
                module,
                name,
                *self._command[3:],
            ]
        self._process: asyncio.subprocess.Process | None = None
        self._known_ports: set[int] = set()  # of all clusters so far, also deleted ones

    async def start(self) -> None:
        """Starts the process; returns when it answers. Unavailable when it does not in time."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "keeper.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(_START_SECONDS):
                line = await self._process.stdout.readline()
        except TimeoutError as error:
            raise Unavailable(f"no keeper was ready within {_START_SECONDS:g} s") from error
        if line.strip() != b"ready":
            raise Unavailable(f"no keeper could start; {self.directory / 'keeper.log'} says why")

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def close(self) -> None:
        """Kills the keeper and all processes of its clusters, whatever state they are in."""
        await self.kill()
        await asyncio.to_thread(_kill_marked, f"{keeper_mark(self.directory)}/")

    async def read_state(self) -> KeeperState:
        """What the keeper holds now, read from outside."""
        state = await read_keeper_state(self.directory, self._known_ports)
        self._known_ports |= state.ports
        return state

    async def check_duplicates(self) -> None:
        """Unavailable when a component runs twice; an environment has one cluster at a time."""
        duplicates = await asyncio.to_thread(find_duplicates, self.directory)
        if duplicates:
            raise Unavailable("; ".join(duplicates))

    async def wait_until_found(self, cluster_key: str, patience: float) -> None:
        """Waits until a new keeper reports the cluster as available and all its nodes as ready."""
        client = KeeperClient(Path(self.socket))
        try:
            async with asyncio.timeout(patience):
                while True:
                    observation = await client.call("keeper.observe", cluster_key=cluster_key)
                    if observation["available"] and all(
                        ready for _, _, ready, _ in observation["nodes"]
                    ):
                        return
                    await asyncio.sleep(0.05)
        except TimeoutError as error:
            raise Unavailable(f"the new keeper did not find {cluster_key} again") from error
        finally:
            await client.close()


def _kill_marked(prefix: str) -> None:
    while processes := [
        process for group in marked_processes.find_processes(prefix).values() for process in group
    ]:
        for process in processes:
            process.signal(signal.SIGKILL)
        for process in processes:
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PIDFD, process.fd, os.WEXITED | os.WNOWAIT)
            process.close()

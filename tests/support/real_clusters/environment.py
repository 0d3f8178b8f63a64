"""A keeper of local clusters as a real process, beside a twin: started, killed, started again, and cleaned away."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from boatyard.assets import Assets
from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.local.driver import KeeperClient, LocalPlatform
from boatyard.twin.client import TwinClient
from tests.contracts.harness import PlatformHarness
from tests.contracts.twin_surroundings import TwinSurroundings

KEEPER = (sys.executable, "-m", "boatyard.platforms.drivers.local.server")
KILLED = (sys.executable, "-m", "tests.support.real_clusters.killed_keeper")
ROOT = Path(__file__).parents[3]
HUB = "boston-1"
PATIENCE = 90.0


async def until(
    holds: Callable[[], bool] | Callable[[], Awaitable[bool]],
    what: str,
    *,
    seconds: float = PATIENCE,
) -> None:
    """Looks until it holds."""
    end = time.monotonic() + seconds
    while True:
        answer = holds()
        if answer if isinstance(answer, bool) else await answer:
            return
        assert time.monotonic() < end, f"within {seconds:g} s it did not come true that {what}"
        await asyncio.sleep(0.05)


class KeeperProcess:
    """At most one lives at a time, on one directory."""

    def __init__(
        self,
        directory: Path,
        twin: Path,
        assets: Path,
        command: Sequence[str] = KEEPER,
        words: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.socket = directory / "k.sock"
        self.assets = assets
        self._twin = twin
        self._command = command
        self._words = words
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        process = await self.spawn()
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        assert line == b"ready\n", self.log()
        self.process = process

    async def spawn(self) -> asyncio.subprocess.Process:
        self.directory.mkdir(exist_ok=True)
        with (self.directory / "keeper.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self._command,
                *("--directory", str(self.directory), "--socket", str(self.socket)),
                *("--twin", str(self._twin), "--assets", str(self.assets)),
                *self._words,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None and self.lives:
            self.process.send_signal(number)
            await self.process.wait()

    @property
    def lives(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def kill_and_start(self) -> None:
        await self.end(signal.SIGKILL)
        await self.start()

    def log(self) -> str:
        return (self.directory / "keeper.log").read_text()


@asynccontextmanager
async def a_twin(directory: Path, *, delays: str = "instant") -> AsyncIterator[TwinClient]:
    socket = directory / "t.sock"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "boatyard.twin", "--with-parent", "--delays", delays),
        *("--state", str(directory / "twin"), "--socket", str(socket)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    twin = TwinClient(socket, timeout=30)
    try:
        yield twin
    finally:
        await twin.close()
        process.terminate()
        await process.communicate()


class LocalEnvironment:
    """A directory with a twin and a keeper. Whatever a test did to it, nothing of it stays."""

    def __init__(self, directory: Path, twin: TwinClient, keeper: KeeperProcess) -> None:
        self.directory = directory
        self.twin = twin
        self.keeper = keeper
        self._clients: list[KeeperClient] = []

    def client(self) -> KeeperClient:
        client = KeeperClient(self.keeper.socket)
        self._clients.append(client)
        return client

    def platform(self, hub: str = HUB) -> LocalPlatform:
        return LocalPlatform(self.client(), hub)

    def surroundings(self, hub: str = HUB) -> TwinSurroundings:
        """The hosts and networks of the hub; they are the twin's."""
        return TwinSurroundings(self.twin, hub, lambda seconds: asyncio.sleep(min(seconds, 0.2)))

    def harness(self, hub: str, *, version: str, newer_version: str) -> PlatformHarness:
        """What the platform suite works on."""
        around = self.surroundings(hub)

        async def misbehave(profile: str) -> None:
            match profile:
                case "dead":
                    await self.keeper.end(signal.SIGKILL)
                case "none":
                    await self.keeper.start()

        async def break_host(host: str) -> None:
            await self.twin.call("twin.fail_host", hub=hub, host=host)
            await asyncio.sleep(2.5)  # the nodes' agent looks at the machines every second

        return PlatformHarness(
            platform=self.platform(hub),
            host_with_agent=around.host_with_agent,
            wait=around.wait,
            misbehave=misbehave,
            break_host=break_host,
            version=version,
            newer_version=newer_version,
        )

    async def answers(self) -> bool:
        try:
            await self.client().call("keeper.ping")
        except Unavailable:
            return False
        return True

    async def kubectl(self, kubeconfig: str, *words: str, check: bool = True) -> str:
        """What the real kubectl says."""
        path = self.directory / "kubeconfig"
        path.write_text(kubeconfig)
        assets = Assets(self.keeper.assets)
        program = assets.program(assets.versions()[-1], "kubectl")
        done = await asyncio.to_thread(
            subprocess.run,
            [str(program), "--kubeconfig", str(path), *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout + (done.stderr if not check else "")

    def inside(self) -> list[str]:
        return processes_inside(self.directory)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        await self.keeper.end(signal.SIGKILL)
        await asyncio.to_thread(end_inside, self.directory)


def processes_inside(directory: Path) -> list[str]:
    """Every process that works in the directory, by what it is: "1234 etcd"."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            place = os.readlink(entry / "cwd")
            words = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
        except OSError:
            continue
        if f"{place}/".startswith(f"{directory}/"):
            found.append(f"{entry.name} {words}")
    return found


def end_inside(directory: Path) -> None:
    """Kills every process that works in the directory, and those it starts meanwhile."""
    for _ in range(100):
        pids = [int(line.split()[0]) for line in processes_inside(directory)]
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
    raise AssertionError(f"they do not end: {processes_inside(directory)}")


@asynccontextmanager
async def local_environment(
    assets: Assets | Path,
    *,
    delays: str = "instant",
    command: Sequence[str] = KEEPER,
    words: Sequence[str] = (),
) -> AsyncIterator[LocalEnvironment]:
    """`words` are more of the keeper's arguments."""
    # Short, for the kernel's sake: the path of a socket has 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="by-"))
    place = assets if isinstance(assets, Path) else assets.directory
    try:
        async with a_twin(directory, delays=delays) as twin:
            keeper = KeeperProcess(directory / "local", directory / "t.sock", place, command, words)
            environment = LocalEnvironment(directory, twin, keeper)
            try:
                await keeper.start()
                yield environment
            finally:
                await environment.close()
    finally:
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

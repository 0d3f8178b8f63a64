"""`boatyard up` with real clusters, words typed at it, and the real kubectl. Whatever happens, nothing of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from boatyard.assets import Assets
from boatyard.client.client import Client
from boatyard.client.config import Target
from tests.support.distributed import ANY_PORT, INSTANT, address
from tests.support.processes import Program, run
from tests.support.real_clusters.local_cluster import KINDS, directory_mark, marks

PATIENCE = 120.0
# Whoever starts after a kill waits until the leases of the dead have run out.
LEASE = {"BOATYARD_LEASE_SECONDS": "6"}

Answer = TypeVar("Answer")


def until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"within {seconds:g} s it did not come true that {what}"
        time.sleep(0.05)


class ProcessLines:
    """What a process says, bit by bit."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._out = process.stdout

    def next(self) -> str:
        found, _, _ = select.select([self._out], [], [], PATIENCE)
        assert found, "it says nothing"
        return self._out.readline().decode()

    def rest(self) -> list[str]:
        """All that it has said, now that it need say no more."""
        self._process.terminate()
        return self._out.read().decode().split()


class UpEnvironment:
    def __init__(self, home: Path, assets: Assets, *, real_nodes: bool = False) -> None:
        self.home = home
        self.data = home / "data"
        self._assets = assets
        self._environ = INSTANT | LEASE | {"BOATYARD_ASSETS": str(assets.directory)}
        self.real_nodes = real_nodes  # as an operator has switched it, at the next start
        self.up: Program | None = None
        self._address = ""

    # --- Boatyard -------------------------------------------------------------------------------

    def start(self) -> None:
        words = ["up", "--data", str(self.data), *ANY_PORT]
        words += ["--real-nodes"] if self.real_nodes else []
        self.up = Program(*words, home=self.home, environ=self._environ)
        line = self.up.ready()
        assert line.startswith("boatyard: ready")
        self._address = address(line)

    def kill(self) -> None:
        """Boatyard alone, as `kill -9` does; its clusters and their keeper run on."""
        assert self.up is not None
        self.up.end(signal.SIGKILL)

    def stop(self) -> None:
        """In good order."""
        assert self.up is not None
        assert self.up.end(signal.SIGTERM) == 0, self.up.log.read_text()[-3000:]

    def close(self) -> None:
        if self.up is not None:
            self.up.end(signal.SIGKILL)
        for _ in range(200):
            left = list(self.processes())
            if not left:
                return
            for pid, _ in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)
        raise AssertionError(f"they do not end: {left}")

    def processes(self) -> Iterator[tuple[int, str]]:
        """Everybody who works in the directory or was told of it."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                place = os.readlink(entry / "cwd")
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if f"{place}/".startswith(f"{self.home}/") or f"{self.home}/" in words:
                yield int(entry.name), words

    def typed(self, *words: str, code: int | None = 0, token: str = "") -> str:
        """What `boatyard …` prints; to the operator, unless another's token is shown."""
        environ = self._environ | ({"BOATYARD_TOKEN": token} if token else {})
        done = run(*words, home=self.home, environ=environ, seconds=PATIENCE * 2)
        right = code is None or done.returncode == code
        assert right, f"{words}: {done.stdout}{done.stderr}\n{self.logs()}"
        return done.stdout + (done.stderr if code else "")

    def ask(self, question: Callable[[Client], Awaitable[Answer]], token: str = "") -> Answer:
        """The answer to one question over the API, for looks that are repeated: a command costs a third of a second
        of CPU, this a fiftieth.
        """
        target = Target(
            address=self._address, token=token or (self.data / "operator.token").read_text()
        )

        async def answer() -> Answer:
            async with Client(target) as client:
                return await question(client)

        return asyncio.run(answer())

    def logs(self) -> str:
        keeper = self.data / "local" / "keeper.log"
        found = [self.up.log if self.up else self.home / "none", keeper]
        return "\n".join(path.read_text()[-2000:] for path in found if path.exists())

    # --- one cluster ----------------------------------------------------------------------------

    def create(self, name: str, *words: str, template: str = "kubernetes_small") -> str:
        return self.typed(
            *("create", "cluster", name, "--tenant", "acme", "--template", template), *words
        )

    def fetch(self, name: str, token: str = "") -> Path:
        """The tenant's kubeconfig in a file."""
        path = self.home / f"{name}.kubeconfig"
        self.typed("kubeconfig", name, "-o", str(path), token=token)
        return path

    def kubectl(self, name: str, *words: str, given: str = "", code: int | None = 0) -> str:
        """What the real kubectl prints; its complaints, too, when another end is expected."""
        done = self.kubectl_done(name, *words, given=given)
        if code is None:
            return done.stdout + done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")

    def kubectl_done(
        self, name: str, *words: str, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        config = self.home / f"{name}.kubeconfig"
        return subprocess.run(
            [str(self.program("kubectl")), "--kubeconfig", str(config), *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": os.environ["PATH"]},
        )

    @contextmanager
    def watching(self, name: str, *words: str) -> Iterator[ProcessLines]:
        """`kubectl get --watch …`, to read line by line."""
        config = self.home / f"{name}.kubeconfig"
        with subprocess.Popen(
            [str(self.program("kubectl")), "--kubeconfig", str(config), "get", "--watch", *words],
            stdout=subprocess.PIPE,
            bufsize=0,  # what is in a buffer is not seen by select
        ) as process:
            try:
                yield ProcessLines(process)
            finally:
                process.kill()

    def program(self, name: str) -> Path:
        return self._assets.program(self._assets.versions()[-1], name)

    def keeper(self) -> int:
        """Its pid; 0 while there is none."""
        found = [pid for pid, words in self.processes() if "drivers.local.server" in words]
        assert len(found) <= 1
        return found[0] if found else 0

    def record(self, name: str) -> dict[str, Any]:
        """What the keeper remembers of it; empty when there is nothing."""
        for path in (self.data / "local" / "clusters").glob("*/cluster.json"):
            try:
                found: dict[str, Any] = json.loads(path.read_bytes())
            except FileNotFoundError:
                continue
            if found["wanted"]["name"].startswith(name):
                return found
        return {}

    def directory(self, name: str) -> Path:
        return self.data / "local" / "clusters" / self.record(name)["slug"]

    def running(self, name: str) -> dict[str, int]:
        """The pid of each component; fails when one is there twice."""
        found: dict[str, int] = {}
        start = f"{directory_mark(self.data / 'local')}/{self.record(name).get('slug', '-')}/"
        for pid, mark in marks():
            if mark.startswith(start):
                component = mark.split("/")[2]
                assert component not in found, f"{component} is there twice"
                found[component] = pid
        return found

    def is_whole(self, name: str) -> bool:
        members = self.record(name)["members"]
        names = {f"{kind}-{number}" for kind in KINDS for number in range(members)}
        return self.running(name).keys() == names | ({"balancer"} if members > 1 else set())

    def until_whole(self, name: str) -> None:
        until(lambda: self.is_whole(name), "one process of each component runs")

    def nodes(self, name: str) -> dict[str, bool]:
        """Which nodes there are, and which are Ready."""
        found = {}
        for line in self.kubectl(name, "get", "nodes", "--no-headers").splitlines():
            node, status = line.split()[:2]
            found[node] = status == "Ready"
        return found

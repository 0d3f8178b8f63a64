"""Real processes of ours for end-to-end tests: started, watched for their ready line, ended by pid."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.assets import NO_ASSETS

BOATYARD = (sys.executable, "-m", "boatyard.app.main")
READY_SECONDS = 60.0


def planted(plant: str) -> tuple[str, ...]:
    """The same with something changed in it first: "module:function" is called."""
    return (sys.executable, "-m", "tests.support.planted_bugs.command", plant)


def environment(home: Path) -> dict[str, str]:
    """The caller's, without settings and directories of the user's own, and with simulated clusters only."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "BOATYARD_CACHE" or not name.startswith(("BOATYARD", "XDG_"))
    }
    return kept | {
        "XDG_RUNTIME_DIR": str(home),
        "XDG_CONFIG_HOME": str(home),
        "XDG_DATA_HOME": str(home),
        "BOATYARD_ASSETS": NO_ASSETS,
    }


class Program:
    """One of our commands as a process. Its log is kept in a file and shown when it does not start."""

    def __init__(
        self,
        *args: str,
        home: Path,
        environ: Mapping[str, str] | None = None,
        command: Sequence[str] = BOATYARD,
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.log = home / f"{args[0]}.log"
        self.environ = environment(home) | {"BOATYARD_LOG_LEVEL": "warning", **(environ or {})}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *args],
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def ready(self) -> str:
        """Its first line; fails with its log when it ends or says nothing for a minute."""
        assert self.process.stdout is not None
        found, _, _ = select.select([self.process.stdout], [], [], READY_SECONDS)
        line = self.process.stdout.readline().decode() if found else ""
        assert line, f"not ready; its log:\n{self.log.read_text()}"
        return line.strip()

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends the signal and waits; the exit code. Content when it has ended already."""
        if self.process.poll() is None:
            self.send(number)
        code = self.process.wait(timeout=60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        elif self.process.stdout is not None:
            self.process.stdout.close()


def run(
    *args: str, home: Path, environ: Mapping[str, str] | None = None, seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """One of our commands, to its end."""
    return subprocess.run(
        [*BOATYARD, *args],
        env=environment(home) | dict(environ or {}),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A child that nobody has waited for yet is dead all the same.
    status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return status != "Z"


def wait_until_dead(pid: int, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while is_alive(pid):
        assert time.monotonic() < end, f"process {pid} still runs"
        time.sleep(0.02)

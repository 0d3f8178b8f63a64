"""The player of HyperShift as a real process, and the real kubectl to look at what it does.

On purpose without anything of the product but its command line: what is looked at must not look at itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.control_plane import ControlPlane, control_plane
from tests.support.hypershift_crds import install_crds, read_crds

Object = dict[str, Any]

START_SECONDS = 60
ENOUGH_SECONDS = 60


@contextlib.contextmanager
def hypershift_hub(*, without: str = "") -> Iterator[ControlPlane]:
    """A control plane with HyperShift's CRDs, and the controllers that make namespaces and owned things go."""
    crds = [crd for crd in read_crds() if crd["metadata"]["name"] != without]
    with control_plane() as plane:
        install_crds(plane.kubeconfig(), crds)
        plane.start_controller_manager(
            "--controllers=namespace-controller,garbage-collector-controller,"
            "serviceaccount-controller",
            "--concurrent-namespace-syncs=10",
        )
        yield plane


class PlayerProcess:
    """`boatyard player hypershift` on one control plane. Ends with this process, however that ends."""

    def __init__(self, kubeconfig: Path, *words: str) -> None:
        self._words = ["player", "hypershift", "--kubeconfig", str(kubeconfig), *words]
        self._process: subprocess.Popen[str] | None = None
        self.log = kubeconfig.with_name("player.log")

    def start(self) -> None:
        """Returns when it plays."""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "boatyard.app.main", *self._words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={"BOATYARD_LOG_LEVEL": "info", **os.environ},
                preexec_fn=_end_with_parent,
            )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if not line.startswith("boatyard: plays HyperShift"):
            self.end(signal.SIGKILL)
            raise AssertionError(f"it does not play: {line!r} {self.said()}")

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code; done twice it is done once."""
        if self._process is None:
            return 0
        with self._process as process:
            process.send_signal(how)
            process.send_signal(signal.SIGCONT)
            code = process.wait(timeout=30)
        self._process = None
        return code

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def said(self) -> str:
        return self.log.read_text()[-4000:]

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None


@contextlib.contextmanager
def playing(kubeconfig: Path, *words: str) -> Iterator[PlayerProcess]:
    player = PlayerProcess(kubeconfig, *words)
    player.start()
    try:
        yield player
        assert player.runs, f"the player ended by itself: {player.said()}"
    finally:
        player.end()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Kubectl:
    """The real one, as the administrator of a control plane unless told otherwise."""

    def __init__(self, plane: ControlPlane, kubeconfig: Path | None = None) -> None:
        self.plane = plane
        self.program = plane.programs / "kubectl"
        self.kubeconfig = kubeconfig or plane.folder / "admin.kubeconfig"
        if not self.kubeconfig.exists():
            self.kubeconfig.write_text(json.dumps(plane.kubeconfig()))

    def elsewhere(self, kubeconfig: Path) -> Kubectl:
        """The same program with another kubeconfig."""
        return Kubectl(self.plane, kubeconfig)

    def run(
        self, *words: str, given: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self.program), f"--kubeconfig={self.kubeconfig}", *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not check or done.returncode == 0, f"{words}: {done.stderr}"
        return done

    def apply(self, *things: Mapping[str, Any]) -> None:
        given = "\n---\n".join(json.dumps(thing) for thing in things)
        self.run("apply", "--server-side", "--validate=strict", "-f", "-", given=given)

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        done = self.run("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        found: Object | None = json.loads(done.stdout) if done.stdout else None
        return found

    def list(self, kind: str, namespace: str = "", *words: str) -> list[Object]:
        where = ["-n", namespace] if namespace else ["-A"]
        items: list[Object] = json.loads(
            self.run("get", kind, *where, "-o", "json", *words).stdout
        )["items"]
        return items

    def patch(self, kind: str, name: str, namespace: str, change: Mapping[str, Any]) -> None:
        self.run("patch", kind, name, "-n", namespace, "--type=merge", "-p", json.dumps(change))

    def annotate(self, kind: str, name: str, namespace: str, *words: str) -> None:
        self.run("annotate", "--overwrite", kind, name, "-n", namespace, *words)

    def delete(self, kind: str, name: str, namespace: str, *, wait: bool = False) -> None:
        self.run(
            "delete", kind, name, "-n", namespace, f"--wait={str(wait).lower()}", "--timeout=60s"
        )


def eventually(
    look: Callable[[], Any], *, seconds: float = ENOUGH_SECONDS, why: Callable[[], object] = str
) -> Any:
    """Looks until the answer is something, and gives it."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds} s: {why()}"
        time.sleep(0.3)  # a look by kubectl costs a sixth of a second of CPU


def conditions(thing: Object | None) -> dict[str, str]:
    """Condition → status."""
    found = ((thing or {}).get("status") or {}).get("conditions") or []
    return {one["type"]: one["status"] for one in found}


def condition(thing: Object | None, kind: str) -> Object:
    found: Sequence[Object] = ((thing or {}).get("status") or {}).get("conditions") or []
    return next((one for one in found if one["type"] == kind), {})

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
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.support.control_plane import ControlPlane, control_plane
from tests.support.kube_hub.hypershift_crds import JsonApi, install_crds, read_crds

Object = dict[str, Any]

START_SECONDS = 60
ENOUGH_SECONDS = 60
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@contextlib.contextmanager
def hypershift_hub() -> Iterator[ControlPlane]:
    """A control plane with HyperShift's CRDs, and the controllers that make namespaces and owned things go."""
    with control_plane() as plane:
        install_crds(plane.kubeconfig(), read_crds())
        plane.start_controller_manager(
            "--controllers=namespace-controller,garbage-collector-controller,"
            "serviceaccount-controller",
            "--concurrent-namespace-syncs=10",
        )
        yield plane


class FakeHyperShiftProcess:
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
def playing(kubeconfig: Path, *words: str) -> Iterator[FakeHyperShiftProcess]:
    player = FakeHyperShiftProcess(kubeconfig, *words)
    player.start()
    try:
        yield player
        assert player.runs, f"the player ended by itself: {player.said()}"
    finally:
        player.end()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Kubectl:
    """The real one, as the administrator of a control plane unless told otherwise.

    `get` and `list` read over HTTP with the same kubeconfig: tests read often, and each start of kubectl costs a sixth
    of a second of CPU.
    """

    def __init__(self, plane: ControlPlane, kubeconfig: Path | None = None) -> None:
        self.plane = plane
        self.program = plane.programs / "kubectl"
        self.kubeconfig = kubeconfig or plane.folder / "admin.kubeconfig"
        if not self.kubeconfig.exists():
            self.kubeconfig.write_text(json.dumps(plane.kubeconfig()))

    @cached_property
    def _reader(self) -> ObjectReader:
        return ObjectReader(JsonApi(json.loads(self.kubeconfig.read_text())))

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
        return self._reader.get(kind, name, namespace)

    def list(self, kinds: str, namespace: str = "") -> list[Object]:
        """Objects of one kind, or of several with commas between; of all namespaces unless one is named."""
        return [thing for kind in kinds.split(",") for thing in self._reader.list(kind, namespace)]

    def patch(self, kind: str, name: str, namespace: str, change: Mapping[str, Any]) -> None:
        self.run("patch", kind, name, "-n", namespace, "--type=merge", "-p", json.dumps(change))

    def annotate(self, kind: str, name: str, namespace: str, *words: str) -> None:
        self.run("annotate", "--overwrite", kind, name, "-n", namespace, *words)

    def delete(self, kind: str, name: str, namespace: str, *, wait: bool = False) -> None:
        self.run(
            "delete", kind, name, "-n", namespace, f"--wait={str(wait).lower()}", "--timeout=60s"
        )


class ObjectReader:
    """Reads objects by the names of their kinds that kubectl knows: `machine`, `machines.cluster.x-k8s.io`."""

    def __init__(self, server: JsonApi) -> None:
        self._server = server
        self._places: dict[str, tuple[str, bool]] = {}  # name → path, and whether it has namespaces

    def get(self, kind: str, name: str, namespace: str) -> Object | None:
        code, answer = self._ask(f"{self._path(kind, namespace)}/{name}")
        assert code in (200, 404), f"{kind} {name}: {code} {answer}"
        return answer if code == 200 else None

    def list(self, kind: str, namespace: str) -> list[Object]:
        code, answer = self._ask(self._path(kind, namespace))
        assert code == 200, f"{kind}: {code} {answer}"
        # An API server names the kind once, for the list; kubectl says it of each object.
        about = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
        return [{**about, **item} for item in answer["items"]]

    def _path(self, kind: str, namespace: str) -> str:
        if kind not in self._places:
            self._places = self._discovered()
        path, namespaced = self._places[kind]
        if not (namespaced and namespace):
            return path
        start, _, plural = path.rpartition("/")
        return f"{start}/namespaces/{namespace}/{plural}"

    def _discovered(self) -> dict[str, tuple[str, bool]]:
        places: dict[str, tuple[str, bool]] = {}
        for root in ("/api", "/apis"):
            code, answer = self._ask(root, accept=_DISCOVERY)
            assert code == 200, answer
            for group in answer["items"]:
                name = group["metadata"].get("name", "")
                version = group["versions"][0]  # the one that is preferred
                start = (
                    f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
                )
                for one in version["resources"]:
                    place = f"{start}/{one['resource']}", one["scope"] == "Namespaced"
                    for word in (one["resource"], one["singularResource"]):
                        places.setdefault(word, place)
                        places[f"{word}.{name}"] = place
        return places

    def _ask(self, path: str, accept: str = "application/json") -> tuple[int, Object]:
        return self._server.ask("GET", path, accept=accept)


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
        time.sleep(0.1)


def conditions(thing: Object | None) -> dict[str, str]:
    """Condition → status."""
    found = ((thing or {}).get("status") or {}).get("conditions") or []
    return {one["type"]: one["status"] for one in found}


def condition(thing: Object | None, kind: str) -> Object:
    found: Sequence[Object] = ((thing or {}).get("status") or {}).get("conditions") or []
    return next((one for one in found if one["type"] == kind), {})

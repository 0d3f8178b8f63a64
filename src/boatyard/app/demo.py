"""`boatyard demo`: one cluster from order to receipt, with the commands a user would type, leaving nothing behind.

Every act is a process of its own, so that the demo shows exactly what a user gets.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from boatyard.assets import Assets
from boatyard.client.config import local_server_path, read_local_server
from boatyard.wiring import seed_local_catalogue

READY_SECONDS = 90.0
STOP_SECONDS = 40.0
CLUSTER_NAME = "web-1"


@dataclass(frozen=True)
class DemoStep:
    """One thing a user would do: why, and the words typed after the program's name."""

    comment: str
    arguments: tuple[str, ...]
    program: str = "boatyard"


_FIRST_STEPS = (
    DemoStep("A data centre, and what can be ordered:", ("get", "hubs")),
    DemoStep("", ("get", "clustertemplates")),
)
# Variables that say where programs are; of all others of Boatyard the demo has its own.
_PASSED_VARIABLES = ("BOATYARD_ASSETS", "BOATYARD_CACHE", "BOATYARD_ANSIBLE")
_KUBECTL_FLAGS = ("--kubeconfig", "web-2.kubeconfig")


def make_steps(template: str) -> tuple[DemoStep, ...]:
    """The acts of one cluster, from order to receipt."""
    return (
        *_FIRST_STEPS,
        DemoStep(
            "Order a cluster and watch it being built:",
            ("create", "cluster", CLUSTER_NAME, "--tenant", "acme", "--template", template),
        ),
        DemoStep("Where is it, and why there?", ("explain", "cluster", CLUSTER_NAME)),
        DemoStep(
            "A kubeconfig, into a file that only you can read:",
            ("kubeconfig", CLUSTER_NAME, "-o", f"{CLUSTER_NAME}.kubeconfig"),
        ),
        DemoStep("More nodes:", ("scale", "cluster", CLUSTER_NAME, "compute=5")),
        DemoStep(
            "And fewer; the platform says which leave:",
            ("scale", "cluster", CLUSTER_NAME, "compute=2"),
        ),
        DemoStep("", ("get", "clusters", "-o", "wide")),
        DemoStep("What has happened so far:", ("events", "cluster", CLUSTER_NAME)),
        DemoStep("Take everything back, with a receipt:", ("delete", "cluster", CLUSTER_NAME)),
        DemoStep("Nothing is left:", ("get", "leftovers")),
    )


SIMULATED_STEPS = make_steps("small")
REAL_STEPS = (
    *make_steps(seed_local_catalogue.SMALL_TEMPLATE),
    DemoStep(
        "And another one, to use:",
        (
            "create",
            "cluster",
            "web-2",
            "--tenant",
            "acme",
            "--template",
            seed_local_catalogue.SMALL_TEMPLATE,
        ),
    ),
    DemoStep("", ("kubeconfig", "web-2", "-o", "web-2.kubeconfig")),
    DemoStep("A real API server answers:", (*_KUBECTL_FLAGS, "get", "nodes"), "kubectl"),
    DemoStep(
        "A Deployment rolls out:",
        (*_KUBECTL_FLAGS, "create", "deployment", "hello", "--image=hello", "--replicas=3"),
        "kubectl",
    ),
    DemoStep(
        "",
        (*_KUBECTL_FLAGS, "rollout", "status", "deployment", "hello", "--timeout=60s"),
        "kubectl",
    ),
    DemoStep("", (*_KUBECTL_FLAGS, "get", "deployments,pods", "-o", "wide"), "kubectl"),
)

_CLOSING_TEXT = """\
That was all of it, and it is gone again: no process, no file. What to try next:

{lines}
  docs/guide/first-cluster.md    the same walk, slowly
"""


def format_closing_text(boatyard: str, kubectl: str = "") -> str:
    """The commands to try next. Without `kubectl` the clusters of the demo were simulated."""
    template = seed_local_catalogue.SMALL_TEMPLATE if kubectl else "small"
    lines = [
        f"{boatyard} demo --keep    the same, and what it has made stays until Ctrl-C",
        f"{boatyard} up             a yard of your own, to stay; then in another terminal:",
        f"{boatyard} create cluster {CLUSTER_NAME} --tenant acme --template {template}",
        f"{boatyard} kubeconfig {CLUSTER_NAME} -o {CLUSTER_NAME}.kubeconfig",
    ]
    if kubectl:
        lines.append(f"{kubectl} --kubeconfig {CLUSTER_NAME}.kubeconfig get nodes")
    lines.append(f"{boatyard} explain cluster {CLUSTER_NAME}")
    return _CLOSING_TEXT.format(lines="\n".join(f"  {line}" for line in lines))


def format_kept_text(home: Path, boatyard: str, kubectl: str = "") -> str:
    """How to use what still runs, from another terminal."""
    quoted_home = shlex.quote(str(home))
    template = seed_local_catalogue.SMALL_TEMPLATE if kubectl else "small"
    lines = [
        "Still running. In another terminal, to speak to this yard:",
        "",
        f"  export XDG_RUNTIME_DIR={quoted_home}/run XDG_CONFIG_HOME={quoted_home}/config",
        f"  {boatyard} get clusters",
        f"  {boatyard} create cluster web-3 --tenant acme --template {template}",
    ]
    if kubectl:
        lines.append(f"  {kubectl} --kubeconfig {quoted_home}/web-2.kubeconfig get pods -A")
    return "\n".join([*lines, "", "Ctrl-C ends it and removes everything."])


class DemoFailed(Exception):
    """An act did not end as it should; the demo cleans up and says so."""


def run(args: Namespace) -> int:
    """Runs every act; 0 only when all of them and the cleaning up went well."""
    home = Path(tempfile.mkdtemp(prefix="boatyard-demo-"))
    # SIGTERM and a terminal that is closed clean up like Ctrl-C does.
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.default_int_handler)
    try:
        code = _run_demo(
            home,
            keep=bool(getattr(args, "keep", False)),
            simulated=bool(getattr(args, "simulated", False)),
        )
    except DemoFailed as error:
        print(f"boatyard demo: {error}", file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        print("\nInterrupted; everything is stopped and removed.", file=sys.stderr)
        code = 130
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return code


def _run_demo(home: Path, *, keep: bool, simulated: bool) -> int:
    assets = Assets()
    versions = () if simulated else assets.versions()
    kubectl = assets.program(versions[-1], "kubectl") if versions else None
    environ = _make_environment(home, kubectl)
    program_names = [_program_name("boatyard", Path(sys.executable).with_name("boatyard"))]
    program_names += [_program_name("kubectl", kubectl)] if kubectl else []
    start = time.monotonic()
    with _UpProcess(home, environ) as yard:
        if versions:
            print(
                f"The clusters are real: Kubernetes {versions[-1]}, as processes on this machine."
            )
        else:
            print("The clusters are simulated. For real ones, once: make assets")
        yard.wait_ready()
        for act in REAL_STEPS if versions else SIMULATED_STEPS:
            _run_step(act, home, environ)
        if keep:
            print(f"\n{format_kept_text(home, *program_names)}", flush=True)
            with suppress(KeyboardInterrupt):
                signal.pause()
    if yard.stragglers:
        raise DemoFailed(f"{len(yard.stragglers)} processes did not stop by themselves; killed")
    print(f"Done in {time.monotonic() - start:.0f} seconds.\n")
    print(format_closing_text(*program_names), end="")
    return 0


def _make_environment(home: Path, kubectl: Path | None) -> Mapping[str, str]:
    """The user's environment variables, but with runtime, configuration and data directories of the demo."""
    for name in ("run", "config"):
        (home / name).mkdir(mode=0o700)
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("BOATYARD_") or name in _PASSED_VARIABLES
    }
    if kubectl is None:
        environ["BOATYARD_ASSETS"] = str(home / "no-assets")
    else:
        environ["PATH"] = f"{kubectl.parent}{os.pathsep}{environ.get('PATH', '')}"
    return environ | {
        "XDG_RUNTIME_DIR": str(home / "run"),
        "XDG_CONFIG_HOME": str(home / "config"),
    }


def _run_step(act: DemoStep, home: Path, environ: Mapping[str, str]) -> None:
    command_line = f"{act.program} {shlex.join(act.arguments)}"
    print(
        f"\n# {act.comment}\n$ {command_line}" if act.comment else f"\n$ {command_line}", flush=True
    )
    program = _boatyard_command() if act.program == "boatyard" else (act.program,)
    # Our output was flushed above: the program's must not overtake it in a pipe.
    process = subprocess.run([*program, *act.arguments], env=dict(environ), cwd=home, check=False)
    if process.returncode == 130:
        raise KeyboardInterrupt
    if process.returncode:
        raise DemoFailed(f"`{command_line}` ended with {process.returncode}")


def _program_name(name: str, program: Path) -> str:
    """How a user can call the program: by name, or by path when it is not on PATH."""
    if shutil.which(name) or not program.exists():
        return name
    with suppress(ValueError):
        program = program.relative_to(Path.cwd())
    return shlex.quote(str(program))


def _boatyard_command() -> Sequence[str]:
    return (sys.executable, "-m", "boatyard.app.main")


class _UpProcess:
    """Runs `boatyard up` as a child process in its own session, so that Ctrl-C does not reach it."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._log = home / "up.log"
        self._data = home / "data"
        self.stragglers: list[int] = []

    def __enter__(self) -> _UpProcess:
        print("Starting Boatyard with a simulated data centre …", flush=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(*_boatyard_command(), "up", "--data", str(self._data)),
                    *("--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0"),
                ],
                env=dict(self._environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    def wait_ready(self) -> None:
        """Waits for the file in which `up` writes its addresses, which it does once it answers."""
        deadline = time.monotonic() + READY_SECONDS
        while (
            not local_server_path(self._environ).exists()
            or read_local_server(self._environ) is None
        ):
            if self._process.poll() is not None:
                raise DemoFailed(
                    f"`boatyard up` ended with {self._process.returncode}:\n{self._log_tail()}"
                )
            if time.monotonic() > deadline:
                raise DemoFailed(f"`boatyard up` was not ready in time:\n{self._log_tail()}")
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        """Ends `up` by SIGTERM, and kills what is left of its session."""
        # A second Ctrl-C changes nothing.
        previous_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._stop()
        finally:
            signal.signal(signal.SIGINT, previous_handler)

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        deadline = time.monotonic() + 3.0
        while self.list_stragglers() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.stragglers = self.list_stragglers()
        for pid in self.stragglers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def list_stragglers(self) -> list[int]:
        """Processes that still work in the demo's directory or belong to its session."""
        pids = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and self._is_ours(entry):
                pids.append(int(entry.name))
        return pids

    def _is_ours(self, entry: Path) -> bool:
        try:
            status = (entry / "stat").read_text().rpartition(")")[2].split()
            command_line = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            return False  # ended meanwhile
        state, session = status[0], int(status[3])
        is_related = (
            session == self._process.pid
            or str(self._data) in command_line
            or self._is_inside(entry)
        )
        return is_related and state != "Z" and int(entry.name) != os.getpid()

    def _is_inside(self, entry: Path) -> bool:
        try:
            return os.readlink(entry / "cwd").startswith(f"{self._data}/")
        except OSError:
            return False

    def _log_tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])

"""Builds all programs of a release from their Go modules: one binary, several names. Called by installation.py."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from boatyard.assets.progress import ProgressReporter, ProgressUnit
from boatyard.assets.releases import KubernetesRelease
from boatyard.model.errors import Refused, Unavailable

RECIPES_DIRECTORY = Path(__file__).with_name("recipe")
BINARY_NAME = "kube"
WORK_DIRECTORY_PREFIX = ".build-"

_STAMPED_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
# Clients expect 40 digits here. Modules do not contain their commit, and an invented one would mislead.
_COMMIT = "0" * 40
_LAST_LINES = 12
_STOP_SECONDS = 5.0
# Becomes the compiler after asking the kernel (PR_SET_PDEATHSIG) to kill it when this process ends, however that
# happens. Not a preexec_fn: with one, Python runs its fork hooks in this process, and drops the KeyboardInterrupt of
# a signal that arrives meanwhile.
COMPILER_WRAPPER = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):  # else we have ended before the kernel was asked
    os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Recipe:
    """The sources of a release: our main file, and the modules it needs by version and hash."""

    release: KubernetesRelease
    folder: Path = RECIPES_DIRECTORY

    def files(self) -> tuple[Path, ...]:
        modules = self.folder / self.release.minor
        paths = (self.folder / "main.go", modules / "go.mod", modules / "go.sum")
        return tuple(path for path in paths if path.exists())

    def digest(self) -> str:
        """A digest of files and flags: it changes when the build would change, but not with the compiler."""
        digest = hashlib.sha256(" ".join(self.flags()).encode())
        for path in self.files():
            digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
        return digest.hexdigest()

    def flags(self) -> tuple[str, ...]:
        """The build flags. They are the same each time: with others the compiler's cache would be useless."""
        major, _, minor = self.release.minor.partition(".")
        stamps = {
            "gitVersion": f"v{self.release.kubernetes}",
            "gitMajor": major,
            "gitMinor": minor,
            "gitCommit": _COMMIT,
            "gitTreeState": "clean",
            "buildDate": self.release.published,
        }
        linker_flags = ["-s", "-w"]
        for package in _STAMPED_PACKAGES:
            for name, value in stamps.items():
                linker_flags += ["-X", f"{package}.{name}={value}"]
        return (
            "-mod=readonly",
            "-buildvcs=false",
            "-trimpath",
            f"-ldflags={' '.join(linker_flags)}",
        )

    def required_go_version(self) -> tuple[int, int]:
        """The language version that go.mod asks for."""
        text = (self.folder / self.release.minor / "go.mod").read_text()
        match = re.search(r"^go (\d+)\.(\d+)", text, re.MULTILINE)
        if match is None:
            raise Refused(f"the recipe of Kubernetes {self.release.kubernetes} names no Go version")
        return int(match[1]), int(match[2])


@dataclass(frozen=True)
class Compiler:
    """A Go compiler that is new enough."""

    program: str
    version: str


def find_compiler(recipe: Recipe, path: str) -> Compiler:
    """The Go on PATH. Unavailable, saying what is there instead, when it cannot build the recipe."""
    needed = recipe.required_go_version()
    needed_text = ".".join(map(str, needed))
    program = shutil.which("go", path=path)
    if program is None:
        raise Unavailable(f"Go {needed_text} or later is not on PATH")
    try:
        process = subprocess.run(
            [program, "env", "GOVERSION"],
            env=_environment(path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise Unavailable(f"{program} does not run: {error.strerror}") from error
    version = process.stdout.strip()
    match = re.search(r"\bgo(\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) < needed:
        raise Unavailable(f"{program} is {version or 'not a Go'}, and Go {needed_text} is needed")
    return Compiler(program=program, version=version)


@contextmanager
def build_binary(
    recipe: Recipe, compiler: Compiler, folder: Path, progress: ProgressReporter, path: str
) -> Iterator[Path]:
    """Builds the binary; yields its path in a directory inside `folder`, which is removed afterwards.

    Unavailable, with the last output of the compiler, when it fails: mostly modules that cannot be fetched.
    """
    with make_work_directory(folder) as work:
        for file in recipe.files():
            shutil.copy(file, work / file.name)
        go = _GoCommand(compiler, work, path)
        total = _count_packages(go, progress)
        _compile(go, recipe, total, progress)
        (work / BINARY_NAME).chmod(0o755)
        with (work / BINARY_NAME).open("rb") as binary:
            os.fsync(binary.fileno())
        yield work / BINARY_NAME


@contextmanager
def make_work_directory(folder: Path) -> Iterator[Path]:
    """Yields a new directory inside `folder`, which is removed afterwards, as are those that killed processes left."""
    for directory in folder.glob(f"{WORK_DIRECTORY_PREFIX}*"):
        shutil.rmtree(directory, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=WORK_DIRECTORY_PREFIX, dir=folder))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _count_packages(go: _GoCommand, progress: ProgressReporter) -> int:
    """How many packages there are to compile. Fetches missing modules, which takes minutes the first time."""
    fetched = packages = 0
    with (
        progress.start_task("fetching Go modules", unit=ProgressUnit.MODULES, total=None) as task,
        go.run("list", "-mod=readonly", "-deps", ".") as lines,
    ):
        for line in lines:
            if line.startswith("go: downloading"):
                fetched += 1
                task.update(fetched)
            else:
                packages += 1
    return packages


def _compile(go: _GoCommand, recipe: Recipe, total: int, progress: ProgressReporter) -> None:
    compiled = 0
    with (
        progress.start_task(
            f"building Kubernetes {recipe.release.kubernetes}",
            unit=ProgressUnit.PACKAGES,
            total=total,
        ) as task,
        go.run("build", "-v", *recipe.flags(), "-o", BINARY_NAME, ".") as lines,
    ):
        for line in lines:
            if _is_package(line):
                compiled += 1
                task.update(min(compiled, total))


def _is_package(line: str) -> bool:
    return bool(re.fullmatch(r"[\w./~+-]+", line))


@dataclass(frozen=True)
class _GoCommand:
    compiler: Compiler
    directory: Path
    path: str

    @contextmanager
    def run(self, *arguments: str) -> Iterator[Iterator[str]]:
        """Runs the compiler and yields its output, line by line. The compiler ends with the context.

        Unavailable, with its last lines, when it fails.
        """
        last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        wrapper = (sys.executable, "-I", "-S", "-c", COMPILER_WRAPPER, str(os.getpid()))
        process = subprocess.Popen(
            [*wrapper, self.compiler.program, *arguments],
            cwd=self.directory,
            env=_environment(self.path) | {"GOTMPDIR": str(self.directory)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            yield _collect_messages(process.stdout, last_lines.append)
            code = process.wait()
        finally:
            _stop_process(process)
            process.stdout.close()
        if code:
            output = "".join(f"\n  {line}" for line in last_lines)
            raise Unavailable(
                f"`go {arguments[0]}` ended with {code}:{output or ' it says nothing'}"
            )


def _collect_messages(stream: Iterator[str], on_message: Callable[[str], None]) -> Iterator[str]:
    for line in map(str.rstrip, stream):
        if not _is_package(line):
            on_message(line)
        yield line


def _stop_process(process: subprocess.Popen[str]) -> None:
    """Ends the compiler and the processes it has started. Does nothing when it has ended."""
    if process.poll() is not None:
        return
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_STOP_SECONDS)
            return


def _environment(path: str) -> dict[str, str]:
    """The user's environment variables (proxy, caches) without those that would change what is built."""
    dropped_names = ("GOOS", "GOARCH", "GO111MODULE", "GOEXPERIMENT")
    environ = {name: value for name, value in os.environ.items() if name not in dropped_names}
    return environ | {
        "PATH": path,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }

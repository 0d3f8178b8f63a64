"""Kubernetes programs for tests: the real ones, else a skip that says how to have them; and stand-ins."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from boatyard.assets import DEFAULT_VERSION, PROGRAMS, Assets
from boatyard.assets.installed_programs import format_install_command
from boatyard.assets.progress import ProgressTask, ProgressUnit
from boatyard.assets.releases import ETCD_PROGRAMS, KubernetesRelease, release_of

# What each program answers, by the words it is asked with.
_SAYS = {
    "etcd": "etcd Version: {version}\nGit SHA: none",
    "etcdutl": "etcdutl version: {version}\nAPI version: 3.6",
    "kubectl": "Client Version: v{version}\nKustomize Version: v5.8.1",
}
_SAYS_OTHERS = "Kubernetes v{version}"
# A directory of programs that there is not: clusters are simulated.
NO_ASSETS = "/nonexistent/boatyard-assets"


def needs_assets(*versions: str) -> Assets:
    """The installed programs of these versions (default: the default one); skips when they are not here."""
    assets = Assets()
    for version in versions or (DEFAULT_VERSION,):
        if assets.missing(version):
            pytest.skip(
                f"Kubernetes {version} is not installed; run: {format_install_command(release_of(version))}"
            )
    return assets


def program(name: str, version: str, *, size: int = 0) -> bytes:
    """A stand-in that says this version and does nothing else, padded to `size` bytes."""
    said = _SAYS.get(name, _SAYS_OTHERS).format(version=version)
    text = f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit 0\n".encode()
    return text + b"#" * max(0, size - len(text))


def put_programs(folder: Path, release: KubernetesRelease, names: Sequence[str] = PROGRAMS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        put(folder / name, program(name, release.version_of(name)))


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def etcd_archive(release: KubernetesRelease, *, arch: str, size: int = 0) -> bytes:
    """The release's tarball: the programs among other files."""
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for name in (*ETCD_PROGRAMS, "README.md"):
            content = program(name, release.etcd, size=size)
            member = tarfile.TarInfo(f"etcd-v{release.etcd}-linux-{arch}/{name}")
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, BytesIO(content))
    return out.getvalue()


class ProgressListener:
    """A teller that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.tasks: list[RecordedTask] = []

    def show_line(self, words: str) -> None:
        self.said.append(words)

    @contextmanager
    def start_task(
        self, doing: str, *, unit: ProgressUnit, total: int | None, done: int = 0
    ) -> Iterator[ProgressTask]:
        self.tasks.append(RecordedTask(doing, unit, total, done))
        yield self.tasks[-1]

    def text(self) -> str:
        return "\n".join(self.said)


class RecordedTask:
    """A task as it was told."""

    def __init__(self, doing: str, unit: ProgressUnit, total: int | None, done: int) -> None:
        self.doing = doing
        self.unit = unit
        self.total = total
        self.steps = [done]

    def update(self, done: int) -> None:
        self.steps.append(done)


def without_boatyard() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("BOATYARD")}

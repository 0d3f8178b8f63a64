"""Kubernetes programs for tests: the real ones, else a skip that says how to have them; and stand-ins."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from boatyard.assets import DEFAULT, PROGRAMS, Assets
from boatyard.assets.found import remedy
from boatyard.assets.releases import ETCD, Release, release_of
from boatyard.assets.telling import Task, Unit

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
    for version in versions or (DEFAULT,):
        if assets.missing(version):
            pytest.skip(
                f"Kubernetes {version} is not installed; run: {remedy(release_of(version))}"
            )
    return assets


def program(name: str, version: str, *, size: int = 0) -> bytes:
    """A stand-in that says this version and does nothing else, padded to `size` bytes."""
    said = _SAYS.get(name, _SAYS_OTHERS).format(version=version)
    text = f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit 0\n".encode()
    return text + b"#" * max(0, size - len(text))


def put_programs(folder: Path, release: Release, names: Sequence[str] = PROGRAMS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        put(folder / name, program(name, release.version_of(name)))


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def etcd_archive(release: Release, *, arch: str, size: int = 0) -> bytes:
    """The release's tarball: the programs among other files."""
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for name in (*ETCD, "README.md"):
            content = program(name, release.etcd, size=size)
            member = tarfile.TarInfo(f"etcd-v{release.etcd}-linux-{arch}/{name}")
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, BytesIO(content))
    return out.getvalue()


class Listener:
    """A teller that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.tasks: list[Heard] = []

    def say(self, words: str) -> None:
        self.said.append(words)

    @contextmanager
    def task(self, doing: str, *, unit: Unit, total: int | None, done: int = 0) -> Iterator[Task]:
        self.tasks.append(Heard(doing, unit, total, done))
        yield self.tasks[-1]

    def text(self) -> str:
        return "\n".join(self.said)


class Heard:
    """A task as it was told."""

    def __init__(self, doing: str, unit: Unit, total: int | None, done: int) -> None:
        self.doing = doing
        self.unit = unit
        self.total = total
        self.steps = [done]

    def at(self, done: int) -> None:
        self.steps.append(done)


def without_boatyard() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("BOATYARD")}

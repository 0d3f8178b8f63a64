"""What is left of a cluster with real nodes on this machine: found by looking everywhere, not by asking the product."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


def find_leftovers(slug: str, *folders: Path) -> list[str]:
    """One line for each thing; empty: nothing is left."""
    return [
        *_namespaces(slug),
        *(line for line in _links() if line not in KNOWN),
        *_mounts(slug, folders),
        *_groups(slug),
        *_files(folders),
        *_processes(slug, folders),
    ]


def _namespaces(slug: str) -> Iterator[str]:
    for line in _said("ip", "netns", "list").splitlines():
        if f"by-{slug}" in line:
            yield f"network namespace {line}"


def _links() -> Iterator[str]:
    for kind in ("veth", "bridge"):
        for line in _said("ip", "-brief", "link", "show", "type", kind).splitlines():
            yield f"{kind} {line.split()[0]}"


def _mounts(slug: str, folders: tuple[Path, ...]) -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if f"by-{slug}" in line or "/cni-" in line or any(str(f) in line for f in folders):
            yield f"mount {line.split()[4]}"


def _groups(slug: str) -> Iterator[str]:
    for place, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            if f"by-{slug}" in name:
                yield f"control group {place}/{name}"


def _files(folders: tuple[Path, ...]) -> Iterator[str]:
    for folder in folders:
        if folder.exists():
            yield f"directory {folder}"


def _processes(slug: str, folders: tuple[Path, ...]) -> Iterator[str]:
    wanted = [f"by-{slug}", f"test-real/{slug}/", *map(str, folders)]
    for place in Path("/proc").glob("[0-9]*"):
        if int(place.name) == os.getpid():
            continue
        try:
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            group = (place / "cgroup").read_text()
            environ = (place / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if any(text in f"{words} {group} {environ}" for text in wanted):
            yield f"process {place.name} {words[:120]}"


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout


# Links of the machine's own before we began: others may have some.
KNOWN = frozenset(_links())

"""The control groups of a node: found by name, made, frozen, emptied and taken away.

A node's group stands at the top of every hierarchy. Below it the kubelet keeps its pods' groups; the node's
own programs are in `system`, in one hierarchy only (the freezer's, or the one and only of version 2).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.local import limits
from boatyard.platforms.drivers.local.limits import Limits

ROOT = Path("/sys/fs/cgroup")
SYSTEM = "system"
KILL_SECONDS = 20.0
_STEP = 0.02


def is_unified() -> bool:
    """Version 2: one hierarchy for everything."""
    return (ROOT / "cgroup.controllers").exists()


def hierarchies() -> list[Path]:
    if is_unified():
        return [ROOT]
    with contextlib.suppress(OSError):
        return sorted(path for path in ROOT.iterdir() if path.is_dir() and not path.is_symlink())
    return []


def tracker() -> Path:
    """The hierarchy in which all processes of a node are."""
    return ROOT if is_unified() else ROOT / "freezer"


def list_groups(prefix: str) -> set[str]:
    return {
        group.name
        for hierarchy in hierarchies()
        for group in hierarchy.glob(f"{prefix}*")
        if group.is_dir()
    }


def make(name: str, bounds: Limits) -> None:
    """The node's group in every hierarchy, able to take processes and to be divided.

    Its pods together take no more than the bounds; with version 2 the node's own programs count, too.
    """
    for hierarchy in hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # Version 1: a new cpuset has no processors at all.
            if not is_unified() and (group / setting).exists():
                (group / setting).write_text((hierarchy / setting).read_text())
    if is_unified():
        for group in (ROOT, ROOT / name):
            _divide(group)
    (tracker() / name / SYSTEM).mkdir(exist_ok=True)
    limits.bound(name, bounds)


def _divide(group: Path) -> None:
    """Version 2: groups below get the controllers that this one has."""
    for controller in (group / "cgroup.controllers").read_text().split():
        with contextlib.suppress(OSError):  # some cannot be; the kubelet names what it misses
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


def processes(name: str) -> set[int]:
    """Everybody in the node's group or below, in any hierarchy."""
    pids: set[int] = set()
    for hierarchy in hierarchies():
        for group in _walk(hierarchy / name):
            with contextlib.suppress(OSError):
                pids.update(map(int, (group / "cgroup.procs").read_text().split()))
    return pids


def freeze(name: str, *, frozen: bool) -> None:
    """Stops or resumes every process of the node at once. Content when there is no such group."""
    file, state = (
        ("cgroup.freeze", str(int(frozen)))
        if is_unified()
        else ("freezer.state", "FROZEN" if frozen else "THAWED")
    )
    with contextlib.suppress(FileNotFoundError):
        (tracker() / name / file).write_text(state)


def remove(name: str) -> None:
    """Takes away the group in every hierarchy. Unavailable when somebody is still in it."""
    for hierarchy in hierarchies():
        for group in sorted(
            _walk(hierarchy / name), key=lambda path: len(path.parts), reverse=True
        ):
            _remove(group)


def kill(pids: Iterator[int] | set[int]) -> bool:
    """Ends them by SIGKILL; false when there was nobody. Who has gone already is no concern."""
    killed = False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed = True
    return killed


def _walk(top: Path) -> Iterator[Path]:
    for path, _, _ in os.walk(top):
        yield Path(path)


def _remove(group: Path) -> None:
    end = time.monotonic() + KILL_SECONDS
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:  # a process on its way out still counts
            if time.monotonic() > end:
                raise Unavailable(f"{group} is still in use: {error.strerror}") from error
            time.sleep(_STEP)
        else:
            return

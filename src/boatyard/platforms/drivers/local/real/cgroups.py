"""The control groups of a node, identified by its name: create, list, freeze, kill, remove.

A node's group is at the top of every hierarchy. Below it the kubelet creates its pods' groups; the node's own
programs are in `system`, in one hierarchy only (the freezer's, or the only one of version 2).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.local import cgroup_limits
from boatyard.platforms.drivers.local.cgroup_limits import CgroupLimits

ROOT = Path("/sys/fs/cgroup")
SYSTEM_GROUP = "system"
KILL_SECONDS = 20.0
_POLL_SECONDS = 0.02


def is_unified() -> bool:
    """Whether the machine uses control groups version 2: one hierarchy for everything."""
    return (ROOT / "cgroup.controllers").exists()


def hierarchies() -> list[Path]:
    if is_unified():
        return [ROOT]
    with contextlib.suppress(OSError):
        return sorted(path for path in ROOT.iterdir() if path.is_dir() and not path.is_symlink())
    return []


def process_hierarchy() -> Path:
    """Returns the hierarchy that contains all processes of a node."""
    return ROOT if is_unified() else ROOT / "freezer"


def list_groups(prefix: str) -> set[str]:
    return {
        group.name
        for hierarchy in hierarchies()
        for group in hierarchy.glob(f"{prefix}*")
        if group.is_dir()
    }


def make_groups(name: str, bounds: CgroupLimits) -> None:
    """Creates the node's group in every hierarchy, so that it can have processes and subgroups.

    The bounds hold for its pods together; with version 2 also for the node's own programs.
    """
    for hierarchy in hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # Version 1: a new cpuset has no processors.
            if not is_unified() and (group / setting).exists():
                (group / setting).write_text((hierarchy / setting).read_text())
    if is_unified():
        for group in (ROOT, ROOT / name):
            _enable_controllers(group)
    (process_hierarchy() / name / SYSTEM_GROUP).mkdir(exist_ok=True)
    cgroup_limits.set_limits(name, bounds)


def _enable_controllers(group: Path) -> None:
    """Enables all controllers of a version 2 group for its subgroups."""
    for controller in (group / "cgroup.controllers").read_text().split():
        with contextlib.suppress(
            OSError
        ):  # some cannot be enabled; the kubelet names what it misses
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


def processes(name: str) -> set[int]:
    """Returns the pids in the node's group or below, in all hierarchies."""
    pids: set[int] = set()
    for hierarchy in hierarchies():
        for group in _walk(hierarchy / name):
            with contextlib.suppress(OSError):
                pids.update(map(int, (group / "cgroup.procs").read_text().split()))
    return pids


def freeze(name: str, *, frozen: bool) -> None:
    """Freezes or thaws every process of the node at once. Does nothing when there is no such group."""
    file, state = (
        ("cgroup.freeze", str(int(frozen)))
        if is_unified()
        else ("freezer.state", "FROZEN" if frozen else "THAWED")
    )
    with contextlib.suppress(FileNotFoundError):
        (process_hierarchy() / name / file).write_text(state)


def remove(name: str) -> None:
    """Removes the group in every hierarchy. Unavailable when it still has processes."""
    for hierarchy in hierarchies():
        for group in sorted(
            _walk(hierarchy / name), key=lambda path: len(path.parts), reverse=True
        ):
            _remove(group)


def kill(pids: Iterator[int] | set[int]) -> bool:
    """Sends SIGKILL to the processes; ignores those that have ended. False when there was none."""
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
        except OSError as error:  # an ending process still counts
            if time.monotonic() > end:
                raise Unavailable(f"{group} is still in use: {error.strerror}") from error
            time.sleep(_POLL_SECONDS)
        else:
            return

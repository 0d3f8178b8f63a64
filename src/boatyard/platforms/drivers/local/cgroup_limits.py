"""Limits what the processes of one cluster use together of this machine, by control groups. Needs root.

Without root, or where control groups cannot be written, only the inherited limits of each process hold. The log says
so, once for each reason.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

CGROUP_ROOT = Path("/sys/fs/cgroup")
_REMOVE_SECONDS = 5.0


@dataclass(frozen=True)
class CgroupLimits:
    memory: int = 3 * 1024**3  # bytes; an empty cluster takes a tenth
    threads: int = 2000
    cpu_shares: int = (
        128  # CPU shares when processors are scarce; people and Boatyard itself have 1024
    )


def add_process(name: str, pid: int, limits: CgroupLimits) -> bool:
    """Puts a process into the cluster's groups and creates them if needed. False when that is impossible."""
    if os.geteuid() != 0:
        _log_once("not run as root")
        return False
    for hierarchy, settings in _settings(limits):
        group = hierarchy / _group(name)
        try:
            group.mkdir(exist_ok=True)
            _write(group, settings)
            (group / "cgroup.procs").write_text(str(pid))
        except ProcessLookupError:
            return False  # the process has ended
        except OSError as error:
            _log_once(f"{hierarchy}: {error.strerror or error}")
            return False
    return True


def set_limits(name: str, limits: CgroupLimits) -> bool:
    """Sets limits on existing groups at the top of the hierarchies. False when that is impossible."""
    for hierarchy, settings in _settings(limits):
        try:
            _write(hierarchy / name, settings)
        except OSError as error:
            _log_once(f"{hierarchy}: {error.strerror or error}")
            return False
    return True


def _write(group: Path, settings: Mapping[str, str]) -> None:
    for file, value in settings.items():
        (group / file).write_text(value)


_logged_reasons: set[str] = set()


def _log_once(reason: str) -> None:
    """Logs each reason once: every start of every component would repeat it."""
    if reason not in _logged_reasons:
        _logged_reasons.add(reason)
        logger.warning("resource limits not applied to clusters", extra={"why": reason})


def remove_groups(name: str) -> None:
    """Removes the groups once they are empty. Does nothing when there are none."""
    for hierarchy, _ in _settings(CgroupLimits()):
        _remove(hierarchy / _group(name))


def _remove(group: Path) -> None:
    end = time.monotonic() + _REMOVE_SECONDS
    while group.is_dir() and time.monotonic() < end:
        with contextlib.suppress(OSError):  # an ending process still counts
            group.rmdir()
            return
        time.sleep(0.02)
    if group.is_dir():
        logger.warning("control group not removed", extra={"group": str(group)})


def _settings(limits: CgroupLimits) -> list[tuple[Path, dict[str, str]]]:
    if (CGROUP_ROOT / "cgroup.controllers").exists():
        with contextlib.suppress(OSError):
            (CGROUP_ROOT / "cgroup.subtree_control").write_text("+cpu +memory +pids")
        weight = max(1, limits.cpu_shares * 100 // 1024)
        return [
            (
                CGROUP_ROOT,
                {
                    "memory.max": str(limits.memory),
                    "pids.max": str(limits.threads),
                    "cpu.weight": str(weight),
                },
            )
        ]
    return [
        (CGROUP_ROOT / "memory", {"memory.limit_in_bytes": str(limits.memory)}),
        (CGROUP_ROOT / "pids", {"pids.max": str(limits.threads)}),
        (CGROUP_ROOT / "cpu", {"cpu.shares": str(limits.cpu_shares)}),
    ]


def _group(name: str) -> str:
    return f"boatyard-{name}"

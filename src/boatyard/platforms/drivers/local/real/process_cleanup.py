"""Ends every process of a node or segment, whatever its parent is."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from boatyard.model.errors import Unavailable
from boatyard.netns.namespaces import list_pids
from boatyard.platforms.drivers.local.real import cgroups

END_SECONDS = 20.0
_POLL_SECONDS = 0.02


def end_processes(name: str) -> None:
    """Kills all processes in the network namespace or the control groups of that name, until none is left.

    Unavailable when some do not end. Blocks. The caller ensures that no new ones are started.
    """
    cgroups.freeze(name, frozen=False)  # a frozen process does not die
    end = time.monotonic() + END_SECONDS
    while pids := {pid for pid in _find(name) if not _has_ended(pid)}:
        if time.monotonic() > end:
            raise Unavailable(f"processes of {name} do not end: {sorted(pids)}")
        cgroups.kill(pids)
        time.sleep(_POLL_SECONDS)


def _find(name: str) -> set[int]:
    return ({*list_pids(name)} | cgroups.processes(name)) - {os.getpid()}


def _has_ended(pid: int) -> bool:
    """Whether the process has ended, even when its parent has not reaped it."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True

"""Memory and CPU of running processes, read from /proc. Used by every benchmark here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Self

_TICK = os.sysconf("SC_CLK_TCK")
Groups = Mapping[str, Iterable[int]]  # name to process ids


def family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            found = _stat(int(entry.name))
            if found is not None:
                parents.setdefault(int(found[1]), []).append(int(entry.name))
    ids = [pid]
    for one in ids:
        ids += parents.get(one, [])
    return ids


def memory(pid: int) -> int:
    """Resident bytes, with each shared page divided among those who share it."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu(pid: int) -> float:
    """Seconds of CPU the process has used, and those children of it that have ended."""
    found = _stat(pid)
    return 0.0 if found is None else sum(int(found[n]) for n in (11, 12, 13, 14)) / _TICK


def cpu_of(groups: Groups) -> dict[str, float]:
    return {name: sum(cpu(pid) for pid in pids) for name, pids in groups.items()}


def memory_of(groups: Groups) -> dict[str, int]:
    return {name: sum(memory(pid) for pid in pids) for name, pids in groups.items()}


def machine_busy() -> float:
    """Seconds of CPU that all processes of the machine have used together."""
    with Path("/proc/stat").open() as lines:
        user, nice, system, _idle, _iowait, irq, soft = lines.readline().split()[1:8]
    return sum(int(one) for one in (user, nice, system, irq, soft)) / _TICK


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


class Peak:
    """Looks at the memory of some processes every second; keeps the look with the largest sum."""

    def __init__(self, groups: Callable[[], Groups], every: float = 1.0) -> None:
        self._groups = groups
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.parts: dict[str, int] = {}

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def look(self) -> dict[str, int]:
        found = memory_of(self._groups())
        if sum(found.values()) > self.total:
            self.parts = found
        return found

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self.look()

    def __enter__(self) -> Self:
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.look()

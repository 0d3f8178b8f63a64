"""What a run is told by Boatyard, and what it leaves behind: files in its directory. Used by the supervisor."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field

PLAN, TAKEN, RESULT, EVENTS, LOCK = "plan.json", "plan.taken", "result.json", "events.jsonl", "lock"
WORK = "work"  # where the run's own directory is, or lies over


@dataclass(frozen=True)
class Plan:
    """One start of one run. Holds its secrets: the file is removed as soon as it is read."""

    attempt: int
    start: int
    user: int | None  # the number it runs under; none: ours
    namespaces: bool
    home: str  # its own directory, as it sees it
    memory: int  # bytes its own directory may take
    reach: tuple[str, ...]  # what it may read beside the system's programs
    content: tuple[str, str]  # where the template's content is, and where it is seen
    files: dict[str, str] = field(repr=False)  # by path in its directory
    links: dict[str, str]
    argv: tuple[str, ...]
    environ: dict[str, str]
    limits: dict[str, int]  # by the names of the module `resource`
    time_limit: float
    output_limit: int  # bytes of what it prints; more ends it
    events_limit: int  # bytes of its story that are kept
    hidden: tuple[str, ...] = field(repr=False)  # what is shown nowhere


def take(directory: str) -> Plan | None:
    """The plan, which is nobody else's from then on. None when there is none, or another took it."""
    plan_path, taken_path = os.path.join(directory, PLAN), os.path.join(directory, TAKEN)
    try:
        os.rename(plan_path, taken_path)
    except FileNotFoundError:
        return None
    with open(taken_path, encoding="utf-8") as file:
        fields = json.load(file)
    os.unlink(taken_path)
    for name in ("reach", "content", "argv", "hidden"):
        fields[name] = tuple(fields[name])
    return Plan(**fields)


def write_result(directory: str, result: dict[str, object]) -> None:
    """The whole of it or nothing, whatever happens."""
    draft = os.path.join(directory, RESULT + ".new")
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(result, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, os.path.join(directory, RESULT))
    directory_fd = os.open(directory, os.O_RDONLY)
    with contextlib.suppress(OSError):
        os.fsync(directory_fd)
    os.close(directory_fd)

"""The files of a run's directory: the plan that Boatyard writes and the result. Used by the supervisor."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field

PLAN, TAKEN, RESULT, EVENTS, LOCK = "plan.json", "plan.taken", "result.json", "events.jsonl", "lock"
WORK = "work"  # the run's own directory, or the mount point of it


@dataclass(frozen=True)
class Plan:
    """The plan of one start of a run. Contains its secrets: the file is removed as soon as it is read."""

    attempt: int
    start: int
    user: int | None  # its uid; None: ours
    namespaces: bool
    home: str  # path of its own directory, as the run sees it
    memory: int  # bytes its own directory may take
    reach: tuple[str, ...]  # paths it may read in addition to the system's programs
    content: tuple[str, str]  # path of the template's content, and where the run sees it
    files: dict[str, str] = field(repr=False)  # by path in its directory
    links: dict[str, str]
    argv: tuple[str, ...]
    environ: dict[str, str]
    limits: dict[str, int]  # by the names of the module `resource`
    time_limit: float
    output_limit: int  # bytes of output; more ends the run
    events_limit: int  # bytes of its log that are stored
    hidden: tuple[str, ...] = field(repr=False)  # secrets that are removed from all texts


def take(directory: str) -> Plan | None:
    """Takes the plan, so that no other supervisor gets it. None when there is none, or another has taken it."""
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
    """Writes the result atomically and durably."""
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

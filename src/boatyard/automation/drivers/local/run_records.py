"""Stores the records of runs, each in a directory named by a hash of its key. Called by the driver.

    run.json       the record, written before anything is started
    plan.json      the plan for the supervisor, which removes it as soon as it is read
    starting       locked by the process that starts or ends the run; the only file while a run waits for its turn
    lock           locked by the supervisor as long as it lives
    events.jsonl   the log of the run
    result.json    how the run ended, written by the supervisor
    work/          the run's own directory, or the mount point of it

A directory without `run.json` holds no run: the run waits for its turn, or we died while the directory was created or
removed. Releasing the run removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from boatyard.automation.port import RunEvent
from boatyard.model.errors import Refused

RUN, PLAN, LOCK, STARTING = "run.json", "plan.json", "lock", "starting"
EVENTS, RESULT, WORK = "events.jsonl", "result.json", "work"
EARLIER_START_FILES = ("plan.taken", RESULT, f"{RESULT}.new")
EVENTS_LIMIT = 1000  # returned by one call
_REMOVED_PREFIX = ".gone-"

Kind = TypeVar("Kind", bound=msgspec.Struct)


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    hub: str
    template: str
    action: str
    digest: str
    attempt: int
    start: int  # how many times this attempt has been started
    user: int | None = None


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    attempt: int
    start: int
    state: str  # "succeeded", "failed", "cancelled", "killed", "broken"
    task: str
    words: str
    facts: Mapping[str, str]


def run_slug(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]


class RunRecords:
    """The records in one data directory. Calls block, but are quick; several processes may share one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        # Mode 711: runs with their own uid can reach their directory but cannot list this one.
        directory.mkdir(parents=True, exist_ok=True, mode=0o711)

    def run_directory(self, key: str) -> Path:
        return self.directory / run_slug(key)

    def find(self, key: str) -> RunRecord | None:
        record = _read_struct(self.run_directory(key) / RUN, RunRecord)
        return record if record is not None and record.key == key else None

    def find_result(self, record: RunRecord) -> RunResult | None:
        """The result of exactly this attempt and start; None when there is none."""
        result = _read_struct(self.run_directory(record.key) / RESULT, RunResult)
        if result is None or (result.attempt, result.start) != (record.attempt, record.start):
            return None
        return result

    def save(self, record: RunRecord) -> None:
        run_directory = self.run_directory(record.key)
        run_directory.mkdir(exist_ok=True, mode=0o711)
        write_durably(run_directory / RUN, msgspec.json.encode(record))

    def clear_earlier_start(self, key: str) -> None:
        """Removes the files of an earlier start, except its log."""
        run_directory = self.run_directory(key)
        for name in (PLAN, *EARLIER_START_FILES):
            (run_directory / name).unlink(missing_ok=True)
        remove_tree(run_directory / WORK)
        (run_directory / WORK).mkdir(mode=0o700)

    def remove(self, key: str) -> None:
        """Removes the run. It is renamed first: even when the removal is interrupted, there is no such run any more."""
        run_directory = self.run_directory(key)
        removed_directory = run_directory.with_name(_REMOVED_PREFIX + run_directory.name)
        remove_tree(removed_directory)
        with contextlib.suppress(FileNotFoundError):
            os.rename(run_directory, removed_directory)
        remove_tree(removed_directory)

    def finish_removals(self) -> None:
        """Finishes removals that were interrupted."""
        for run_directory in self.directory.glob(f"{_REMOVED_PREFIX}*"):
            remove_tree(run_directory)

    def __iter__(self) -> Iterator[RunRecord]:
        for run_directory in sorted(self.directory.iterdir()):
            record = (
                None
                if run_directory.name.startswith(".")
                else _read_struct(run_directory / RUN, RunRecord)
            )
            if record is not None:
                yield record

    def read_events(self, key: str, after: int) -> list[RunEvent]:
        """At most EVENTS_LIMIT events after number `after`, in order. A line still being written is left out."""
        events: list[RunEvent] = []
        with (
            contextlib.suppress(FileNotFoundError),
            (self.run_directory(key) / EVENTS).open("rb") as file,
        ):
            for line in file:
                if len(events) == EVENTS_LIMIT or not line.endswith(b"\n"):
                    break
                event = msgspec.json.decode(line, type=RunEvent)
                if event.number > after:
                    events.append(event)
        return events

    def find_last_task(self, key: str) -> str:
        """The task that the run is at; empty before the first."""
        with (
            contextlib.suppress(FileNotFoundError),
            (self.run_directory(key) / EVENTS).open("rb") as file,
        ):
            file.seek(max(0, file.seek(0, os.SEEK_END) - 16384))
            for line in reversed(file.read().splitlines()):
                # The first and the last line may be incomplete.
                with contextlib.suppress(msgspec.DecodeError):
                    event = msgspec.json.decode(line, type=RunEvent)
                    if event.kind == "task":
                        return event.task
        return ""


def write_durably(path: Path, content: bytes) -> None:
    """Writes the file atomically: after a crash it has the old or the new content. Only our user can read it."""
    draft = path.with_name(path.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def remove_tree(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


def _read_struct(path: Path, kind: type[Kind]) -> Kind | None:
    """The decoded file; None when there is none. Refused when it is unreadable: its run must not be started anew."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise Refused(f"{path.name} of a run cannot be read: {error}") from error

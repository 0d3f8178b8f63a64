"""Logs of long-lived processes: how a record is written, and the rotation of a file that has become long."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import stat
from pathlib import Path
from typing import Any, TextIO

LONGEST_LOG = 10 * 1024 * 1024


def rotate_log(log: Path, longest: int = LONGEST_LOG) -> None:
    """Truncates a log that is too long; the end of its old content stays beside it, as `.1`.

    Writers need not know, as long as they only append. Lines written during the call may be lost.
    """
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size <= longest:
            return
        with log.open("rb") as old, log.with_name(f"{log.name}.1").open("wb") as backup:
            os.fchmod(backup.fileno(), 0o600)
            old.seek(-longest, os.SEEK_END)
            shutil.copyfileobj(old, backup)
        os.truncate(log, 0)


class RotatingStreamHandler(logging.StreamHandler[TextIO]):
    """Writes log records to a stream. When the stream is a file opened for appending, rotates it with `shorten`."""

    def __init__(self, stream: TextIO, longest: int = LONGEST_LOG) -> None:
        super().__init__(stream)
        self._longest = longest

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        with contextlib.suppress(OSError, ValueError):  # not a file, or a full disk
            descriptor = self.stream.fileno()
            appends = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
            if appends and stat.S_ISREG(os.fstat(descriptor).st_mode):
                rotate_log(Path(os.readlink(f"/proc/self/fd/{descriptor}")), self._longest)


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object: the message and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _BUILT_IN}
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


_BUILT_IN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

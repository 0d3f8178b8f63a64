"""Logs that processes write to for years: each begins anew when it has become long. Called by who keeps them."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import stat
from pathlib import Path
from typing import TextIO

LONGEST_LOG = 10 * 1024 * 1024


def shorten(log: Path, longest: int = LONGEST_LOG) -> None:
    """A log that is too long begins anew; the end of the old one is kept beside it, as `.1`.

    Whoever writes to it need not know, if it only ever appends. What it says in this very moment may be lost.
    """
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size <= longest:
            return
        with log.open("rb") as old, log.with_name(f"{log.name}.1").open("wb") as backup:
            os.fchmod(backup.fileno(), 0o600)
            old.seek(-longest, os.SEEK_END)
            shutil.copyfileobj(old, backup)
        os.truncate(log, 0)


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Words of our own to a stream; where that is a file that is appended to, it is kept from growing."""

    def __init__(self, stream: TextIO, longest: int = LONGEST_LOG) -> None:
        super().__init__(stream)
        self._longest = longest

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        with contextlib.suppress(OSError, ValueError):  # no file, or a disk without room
            descriptor = self.stream.fileno()
            appends = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
            if appends and stat.S_ISREG(os.fstat(descriptor).st_mode):
                shorten(Path(os.readlink(f"/proc/self/fd/{descriptor}")), self._longest)

"""Who watches over a run: asked of the kernel, by the lock its supervisor holds. Called by the driver.

There are no pid files. The lock goes with its holder, however that ended, and a number that was given to somebody
else does not hold it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
from pathlib import Path

_FLOCK = struct.Struct("hhqqi4x")  # type, whence, start, length, pid


def holder(lock: Path) -> int | None:
    """A descriptor of the process that holds the lock, which the caller closes. None when nobody does."""
    try:
        file = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        while pid := _pid(file):
            try:
                held = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            # Asked again now that we hold it: the number cannot pass to a stranger any more.
            if _pid(file) == pid:
                return held
            os.close(held)
        return None
    finally:
        os.close(file)


def is_held(lock: Path) -> bool:
    try:
        file = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return _pid(file) != 0
    finally:
        os.close(file)


def send(held: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(held, number)


def wait_for_end(held: int, seconds: float) -> bool:
    """Whether it has ended by then."""
    poll = select.poll()
    poll.register(held, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _pid(file: int) -> int:
    """Of another process that holds the lock; 0 when none does."""
    question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    answer = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, question))
    return 0 if answer[0] == fcntl.F_UNLCK else int(answer[4])

"""Finds the supervisor of a run by the lock that it holds. Called by the driver.

There are no pid files: the kernel releases the lock when its holder ends, however it ended, and a process that got
the same pid later does not hold it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
from pathlib import Path

_FLOCK_STRUCT = struct.Struct("hhqqi4x")  # type, whence, start, length, pid


def find_holder(lock: Path) -> int | None:
    """A pidfd of the process that holds the lock; the caller closes it. None when no process does."""
    try:
        file = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        while pid := _holder_pid(file):
            try:
                process_fd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            # Check again, now that we have the pidfd: from here on the pid cannot be reused.
            if _holder_pid(file) == pid:
                return process_fd
            os.close(process_fd)
        return None
    finally:
        os.close(file)


def is_held(lock: Path) -> bool:
    try:
        file = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return _holder_pid(file) != 0
    finally:
        os.close(file)


def send_signal(process_fd: int, signal_number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process_fd, signal_number)


def wait_for_end(process_fd: int, seconds: float) -> bool:
    """Waits for the process to end. True when it has ended within `seconds`."""
    poll = select.poll()
    poll.register(process_fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _holder_pid(file: int) -> int:
    """The pid of another process that holds the lock; 0 when none does."""
    request = _FLOCK_STRUCT.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    response = _FLOCK_STRUCT.unpack(fcntl.fcntl(file, fcntl.F_GETLK, request))
    return 0 if response[0] == fcntl.F_UNLCK else int(response[4])

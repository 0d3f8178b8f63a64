"""Starts a run's supervisor. The plain way here; the warm way is in `warm`. Called by the driver, in a thread."""

from __future__ import annotations

import os
import select
import subprocess
import threading
from pathlib import Path
from typing import Protocol

from boatyard.automation.drivers.local.planning import Ground, supervisor
from boatyard.model.errors import Unavailable

READY_SECONDS = 20.0


class Starter(Protocol):
    def start(self, run_directory: Path, capabilities: Ground) -> bool:
        """Starts a supervisor for the plan that lies in `place`; true when it has taken it.

        False when it ended before: another supervisor holds the run, or the plan is gone.
        """

    def close(self) -> None:
        """Lets go of helpers; runs go on. May be called twice."""


_children: list[subprocess.Popen[bytes]] = []  # ours by birth: who has ended is reaped by us
_counting = threading.Lock()


def reap(new_child: subprocess.Popen[bytes] | None = None) -> None:
    with _counting:
        _children[:] = [child for child in _children if child.poll() is None]
        if new_child is not None:
            _children.append(new_child)


class PlainStarter:
    """One process per run; it starts the command line of Ansible."""

    def start(self, run_directory: Path, capabilities: Ground) -> bool:
        ready_fd, ready_write_fd = os.pipe()
        try:
            child = subprocess.Popen(
                supervisor(
                    "supervise", str(run_directory), str(ready_write_fd), python=capabilities.python
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                pass_fds=(ready_write_fd,),
                start_new_session=True,
                umask=0o077,
            )
        except OSError as error:
            raise Unavailable(f"a run cannot be started: {error}") from error
        finally:
            os.close(ready_write_fd)
        reap(child)
        return has_begun(ready_fd)

    def close(self) -> None:
        return


def has_begun(ready_fd: int) -> bool:
    """Waits for the supervisor's word, and closes its descriptor."""
    try:
        poll = select.poll()
        poll.register(ready_fd, select.POLLIN | select.POLLHUP)
        if not poll.poll(READY_SECONDS * 1000):
            return False  # slow; when it comes it finds its plan, or finds it gone
        return os.read(ready_fd, 1) == b"1"
    finally:
        os.close(ready_fd)

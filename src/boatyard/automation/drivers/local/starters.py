"""Starts the supervisor of a run as a new process; `warm` forks it instead. Called by the driver, in a thread."""

from __future__ import annotations

import os
import select
import subprocess
import threading
from pathlib import Path
from typing import Protocol

from boatyard.automation.drivers.local.run_plan import RunCapabilities, supervisor_command
from boatyard.model.errors import Unavailable

READY_SECONDS = 20.0


class Starter(Protocol):
    def start(self, run_directory: Path, capabilities: RunCapabilities) -> bool:
        """Starts a supervisor for the plan in `run_directory`. True when it has taken the plan.

        False when it exited before: another supervisor holds the run, or the plan is gone.
        """

    def close(self) -> None:
        """Ends helper processes; runs go on. May be called twice."""


_children: list[subprocess.Popen[bytes]] = []  # our child processes: we reap those that have ended
_children_lock = threading.Lock()


def reap_children(new_child: subprocess.Popen[bytes] | None = None) -> None:
    """Reaps supervisors that have ended, and remembers `new_child` for later."""
    with _children_lock:
        _children[:] = [child for child in _children if child.poll() is None]
        if new_child is not None:
            _children.append(new_child)


class PlainStarter:
    """Starts one supervisor process per run, which executes ansible-playbook."""

    def start(self, run_directory: Path, capabilities: RunCapabilities) -> bool:
        ready_fd, ready_write_fd = os.pipe()
        try:
            child = subprocess.Popen(
                supervisor_command(
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
        reap_children(child)
        return wait_until_begun(ready_fd)

    def close(self) -> None:
        return


def wait_until_begun(ready_fd: int) -> bool:
    """Waits until the supervisor reports that it has the plan. Closes the descriptor."""
    try:
        poll = select.poll()
        poll.register(ready_fd, select.POLLIN | select.POLLHUP)
        if not poll.poll(READY_SECONDS * 1000):
            return False  # slow: it may still take the plan later, or find it gone
        return os.read(ready_fd, 1) == b"1"
    finally:
        os.close(ready_fd)

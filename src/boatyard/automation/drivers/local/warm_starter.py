"""Starts a run by asking a server that has imported Ansible to fork. Falls back to `PlainStarter`.

The server is our child process on a socket pair that nothing else can reach; it ends with us. While there is no
server, or it does not answer, runs are started as new processes: with the same result, only slower.
"""

from __future__ import annotations

import array
import contextlib
import logging
import os
import select
import socket
import subprocess
import threading
import time
from pathlib import Path

from boatyard.automation.drivers.local.run_plan import (
    INSIDE_DIRECTORY,
    RunCapabilities,
    supervisor_command,
)
from boatyard.automation.drivers.local.run_records import PLAN
from boatyard.automation.drivers.local.starters import PlainStarter, reap_children, wait_until_begun

logger = logging.getLogger(__name__)

RESTART_PAUSE_SECONDS = 10.0  # seconds between two attempts to start a server
WARM_UP_SECONDS = 60.0


class WarmStarter:
    def __init__(self, log: Path) -> None:
        self._log = log
        self._plain_starter = PlainStarter()
        self._server_socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._not_before = 0.0
        self._lock = threading.Lock()
        self.forked_runs = 0  # runs started by the server

    def start(self, run_directory: Path, capabilities: RunCapabilities) -> bool:
        ready_fd = self._request_fork(run_directory, capabilities)
        if ready_fd is not None:
            if wait_until_begun(ready_fd):
                self.forked_runs += 1
                return True
            if not (run_directory / PLAN).exists():
                return False  # another supervisor has taken the plan
        return self._plain_starter.start(run_directory, capabilities)

    def warm_up(self, capabilities: RunCapabilities) -> bool:
        """Waits until the server is ready. False when it does not become ready."""
        end = time.monotonic() + WARM_UP_SECONDS
        while time.monotonic() < end:
            with self._lock:
                if self._ensure_server(capabilities, wait=0.2):
                    return True
                if self._process is None and time.monotonic() < self._not_before:
                    return False
        return False

    @property
    def server_pid(self) -> int | None:
        """The pid of the server; None when there is none."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        with self._lock:
            self._stop_server()

    def _request_fork(self, run_directory: Path, capabilities: RunCapabilities) -> int | None:
        """The descriptor on which the supervisor reports that it has the plan; None when there is no server."""
        with self._lock:
            if (
                not capabilities.namespaces
                or not self._ensure_server(capabilities)
                or self._server_socket is None
            ):
                return None
            ready_fd, ready_write_fd = os.pipe()
            try:
                rights = [
                    (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [ready_write_fd]))
                ]
                self._server_socket.sendmsg([os.fsencode(run_directory)], rights)
            except OSError:
                os.close(ready_fd)
                self._stop_server()
                return None
            finally:
                os.close(ready_write_fd)
            return ready_fd

    def _ensure_server(self, capabilities: RunCapabilities, wait: float = 0.0) -> bool:
        if self._process is not None and self._process.poll() is not None:
            logger.warning("warm Ansible server ended", extra={"code": self._process.returncode})
            self._stop_server()
        if self._server_socket is None:
            if time.monotonic() < self._not_before:
                return False
            self._start_server(capabilities)
        if self._server_socket is not None and not self._is_ready:
            readable, _, _ = select.select([self._server_socket], [], [], wait)
            self._is_ready = bool(readable) and self._server_socket.recv(64) == b"ready"
        return self._is_ready

    def _start_server(self, capabilities: RunCapabilities) -> None:
        self._not_before = time.monotonic() + RESTART_PAUSE_SECONDS
        own_socket, server_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environ = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_CONFIG": str(INSIDE_DIRECTORY / "ansible.cfg"),
        }
        command = supervisor_command("serve", python=capabilities.python, site=True)
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=server_socket.fileno(),
                    stdout=log,
                    stderr=log,
                    env=environ,
                    cwd="/",
                    start_new_session=True,
                    umask=0o077,
                )
        except OSError as error:
            logger.warning("warm Ansible server cannot be started", extra={"why": str(error)})
            own_socket.close()
        else:
            self._server_socket = own_socket
        finally:
            server_socket.close()

    def _stop_server(self) -> None:
        """Closes the socket, upon which the server ends by itself, and waits for that."""
        if self._server_socket is not None:
            self._server_socket.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            reap_children(self._process)
        self._server_socket, self._process, self._is_ready = None, None, False

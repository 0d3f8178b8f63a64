"""The automation driver `local`: runs Ansible on this machine. Made by `app`, one per hub, on a shared workshop.

A run is found by its key: its directory is named by it, and its supervisor holds the lock in that directory. Whether
Boatyard, the supervisor or the run was killed, the next `ensure_run` finds what is left and continues from there.
"""

from __future__ import annotations

import asyncio
import contextvars
import fcntl
import json
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from boatyard.automation.drivers.local import run_lock
from boatyard.automation.drivers.local.run_plan import RunCapabilities, plan_run, process_mark
from boatyard.automation.drivers.local.run_records import (
    LOCK,
    PLAN,
    STARTING,
    RunRecord,
    RunResult,
    run_slug,
    write_durably,
)
from boatyard.automation.drivers.local.run_slots import RunSlot
from boatyard.automation.drivers.local.runner import PREPARING, LocalRunner
from boatyard.automation.drivers.local.starters import reap_children
from boatyard.automation.port import RUN_FAILED, RunEvent, RunSpec
from boatyard.model.errors import Conflict, Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, OwnedObject, Waiting
from boatyard.processes.marked_processes import find_processes

logger = logging.getLogger(__name__)

END_WAIT_SECONDS = 4.0  # how long one call waits for a run to end
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 1.0  # seconds between looks at a run
KIND = "run"
# The run has no result of its own: it was killed or cancelled, or its supervisor failed. It is started again.
INTERRUPTED_STATES = frozenset({"killed", "cancelled", "broken"})

Answer = TypeVar("Answer")


class LocalAutomation:
    def __init__(self, runner: LocalRunner, hub: str = "") -> None:
        self._runner = runner
        self._hub = hub
        self._cancelled_at: dict[str, float] = {}  # by key, when a run was first asked to end
        self._first_looks: dict[
            str, tuple[tuple[int, int], float]
        ] = {}  # by key: attempt and start, and when we first saw it
        self._calls: set[asyncio.Future[object]] = set()

    async def check_ready(self) -> None:
        self._runner.check_ready()

    async def get_isolation_warning(self) -> str:
        return await self._call_in_thread(self._runner.get_isolation_warning)

    async def ensure_run(self, key: str, spec: RunSpec) -> Outcome:
        return await self._call_in_thread(lambda: self._ensure(key, spec))

    async def release_run(self, key: str) -> Outcome:
        now = asyncio.get_running_loop().time()
        return await self._call_in_thread(lambda: self._release(key, now))

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return await self._call_in_thread(lambda: self._events(key, after))

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        return await self._call_in_thread(lambda: self._list_owned(prefix))

    async def close(self) -> None:
        if self._calls:
            await asyncio.wait(self._calls)

    async def _call_in_thread(self, work: Callable[[], Answer]) -> Answer:
        """Calls `work` in a thread. It completes even when the caller is cancelled: no start is left half done."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        call = loop.run_in_executor(self._runner.threads, lambda: context.run(work))
        self._calls.add(call)  # type: ignore[arg-type] # the result type does not matter there
        call.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(call)
        except OSError as error:
            message = error.strerror or type(error).__name__
            raise Unavailable(f"what is kept of runs cannot be used: {message}") from error

    # --- running -----------------------------------------------------------------------------

    def _ensure(self, key: str, spec: RunSpec) -> Outcome:
        records = self._runner.records
        record = records.find(key)
        if record is not None:
            if spec.attempt < record.attempt:
                raise Conflict("a later attempt of this run is known")
            if spec.attempt == record.attempt:
                return self._continue_run(record, spec)
            # An earlier attempt must not run beside the new one.
            if not self._stop(key):
                return Waiting("an earlier attempt is being ended", reason="Ending")
        record_of_attempt = RunRecord(
            key=key,
            hub=self._hub,
            template=spec.template,
            action=spec.action,
            digest=spec.digest,
            attempt=spec.attempt,
            start=0,
        )
        return self._start(record_of_attempt, spec)

    def _continue_run(self, record: RunRecord, spec: RunSpec) -> Outcome:
        result = self._runner.records.find_result(record)
        if result is None and run_lock.is_held(self._lock_path(record.key)):
            return self._running_outcome(record)
        reap_children()
        # It may have ended between reading the result and looking at the lock.
        result = result or self._runner.records.find_result(record)
        if result is not None and result.state not in INTERRUPTED_STATES:
            self._first_looks.pop(record.key, None)
            self._runner.slots.release(run_slug(record.key))
            return _to_outcome(record, result)
        if result is not None and result.state == "broken":
            logger.error(
                "run could not be carried out", extra={"run": record.key, "why": result.words}
            )
        if record.start >= self._runner.limits.max_starts:
            self._runner.slots.release(run_slug(record.key))
            message = f"it was interrupted {record.start} times and is not begun again"
            if result is not None and result.state == "broken":
                message = (
                    "it cannot be run on this machine; its operator finds the reason in the log"
                )
            raise Refused(f"{record.action} of {record.template}: {message}", reason=RUN_FAILED)
        return self._start(record, spec)

    def _running_outcome(self, record: RunRecord) -> Waiting:
        task = self._runner.records.find_last_task(record.key)
        progress = f" is at task {task!r}" if task else " has begun"
        return Waiting(
            f"{record.action} of {record.template}{progress}",
            look_again=self._pause_seconds(record),
            reason="Running",
        )

    def _pause_seconds(self, record: RunRecord) -> float:
        """Seconds until the next look: few after a start, so that its first events are seen soon; later one."""
        now, start = time.monotonic(), (record.attempt, record.start)
        first_look = self._first_looks.get(record.key)
        if first_look is None or first_look[0] != start:
            first_look = self._first_looks[record.key] = start, now
        return min(LONGEST_PAUSE_SECONDS, max(SHORTEST_PAUSE_SECONDS, (now - first_look[1]) / 2))

    def _start(self, record: RunRecord, spec: RunSpec) -> Outcome:
        key, slug = record.key, run_slug(record.key)
        try:
            capabilities = self._runner.get_capabilities()
        except Unavailable as error:
            if error.reason != PREPARING:
                raise
            return Waiting(str(error), reason=PREPARING)
        run_directory = self._runner.records.run_directory(key)
        record = msgspec.structs.replace(record, start=record.start + 1)
        within = run_slug(spec.parent_run) if spec.parent_run else ""
        turn = RunSlot(record.hub, record.template, within)
        run_directory.mkdir(exist_ok=True, mode=0o711)
        with _try_lock(run_directory / STARTING) as acquired:
            if not acquired or run_lock.is_held(self._lock_path(key)):
                return self._running_outcome(record)
            # First the turn, because waiting runs ask often. A turn without a start is over by itself.
            if wait_reason := self._runner.slots.take(slug, turn, self._is_over):
                return Waiting(wait_reason, reason="Queued")
            try:
                plan = self._make_plan(record, spec, run_directory, capabilities)
            except BaseException:
                self._runner.slots.return_unused(slug, turn)
                raise
            self._kill_orphans(run_directory)
            self._runner.records.clear_earlier_start(key)
            self._runner.records.save(record)
            write_durably(run_directory / PLAN, json.dumps(plan).encode())
            self._runner.starter.start(run_directory, capabilities)
        return self._running_outcome(record)

    def _make_plan(
        self, record: RunRecord, spec: RunSpec, run_directory: Path, capabilities: RunCapabilities
    ) -> dict[str, object]:
        limits = self._runner.limits
        seconds = min(spec.time_limit, limits.max_seconds)
        may_ask = spec.may_request_steps
        return plan_run(
            spec,
            start=record.start,
            content=self._runner.content(spec.digest),
            api=self._runner.make_run_token(record.key, spec.attempt, seconds) if may_ask else None,
            run_directory=run_directory,
            capabilities=capabilities,
            limits=limits,
        )

    def _is_over(self, slug: str) -> bool:
        """Whether a run that has a turn has ended or was never started."""
        run_directory = self._runner.records.directory / slug
        if run_lock.is_held(run_directory / LOCK):
            return False
        with _try_lock(run_directory / STARTING, create=False) as acquired:
            return acquired and not run_lock.is_held(run_directory / LOCK)

    # --- ending ------------------------------------------------------------------------------

    def _release(self, key: str, now: float) -> Outcome:
        run_directory = self._runner.records.run_directory(key)
        if not run_directory.exists():
            return Done()
        since = self._cancelled_at.setdefault(key, now)
        with _try_lock(run_directory / STARTING) as acquired:
            if not acquired or not self._stop(key, kill=now - since > 2 * END_WAIT_SECONDS):
                return Waiting("the run is being ended", reason="Ending")
            self._runner.records.remove(key)
        reap_children()
        self._cancelled_at.pop(key, None)
        self._first_looks.pop(key, None)
        self._runner.slots.release(run_slug(key))
        return Done()

    def _stop(self, key: str, *, kill: bool = False) -> bool:
        """Ends the run if it is under way. True when none of its processes is left."""
        run_directory = self._runner.records.run_directory(key)
        # A supervisor that is just starting exits when it finds no plan.
        (run_directory / PLAN).unlink(missing_ok=True)
        supervisor_fd = run_lock.find_holder(run_directory / LOCK)
        if supervisor_fd is not None:
            try:
                run_lock.send_signal(supervisor_fd, signal.SIGKILL if kill else signal.SIGTERM)
                run_lock.send_signal(supervisor_fd, signal.SIGCONT)
                if not run_lock.wait_for_end(supervisor_fd, END_WAIT_SECONDS):
                    return False
            finally:
                os.close(supervisor_fd)
        self._kill_orphans(run_directory)
        return True

    def _kill_orphans(self, run_directory: Path) -> None:
        """Without namespaces: kills the processes that are left when the supervisor itself was killed."""
        if self._runner.may_lack_namespaces():
            for processes in find_processes(process_mark(run_directory)).values():
                for process in processes:
                    process.signal(signal.SIGKILL)
                    process.close()

    # --- reading -----------------------------------------------------------------------------

    def _events(self, key: str, after: int) -> Sequence[RunEvent]:
        if self._runner.records.find(key) is None:
            return ()
        return self._runner.records.read_events(key, after)

    def _list_owned(self, prefix: str) -> Sequence[OwnedObject]:
        return [
            OwnedObject(
                key=record.key,
                kind=KIND,
                name=f"{record.template}/{record.action}",
                facts={"attempt": str(record.attempt)},
            )
            for record in self._runner.records
            if record.key.startswith(prefix) and record.hub == self._hub
        ]

    def _lock_path(self, key: str) -> Path:
        return self._runner.records.run_directory(key) / LOCK


def _to_outcome(record: RunRecord, result: RunResult) -> Done:
    if result.state == "succeeded":
        return Done(dict(result.facts))
    message = f"task {result.task!r}: {result.words}" if result.task else result.words
    raise Refused(f"{record.action} of {record.template}: {message}", reason=RUN_FAILED)


@contextmanager
def _try_lock(path: Path, *, create: bool = True) -> Iterator[bool]:
    """Locks the file without waiting; yields whether we have it. Without `create`, a missing file counts as locked."""
    try:
        file = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600)
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(file)

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

from boatyard.automation.drivers.local import holding
from boatyard.automation.drivers.local.planning import Ground, mark_of, plan_run
from boatyard.automation.drivers.local.records import (
    LOCK,
    PLAN,
    STARTING,
    Record,
    Result,
    slug_of,
    write_durably,
)
from boatyard.automation.drivers.local.starting import reap
from boatyard.automation.drivers.local.turns import Turn
from boatyard.automation.drivers.local.workshop import PREPARING, Workshop
from boatyard.automation.port import RUN_FAILED, RunEvent, RunWanted
from boatyard.model.errors import Conflict, Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Owned, Waiting
from boatyard.processes.marked import find

logger = logging.getLogger(__name__)

END_SECONDS = 4.0  # how long one call waits for a run to end
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 1.0  # seconds between looks at a run
KIND = "run"
# The run has no result of its own: it was killed or cancelled, or its supervisor failed. It is started again.
INTERRUPTED = frozenset({"killed", "cancelled", "broken"})

Answer = TypeVar("Answer")


class LocalAutomation:
    def __init__(self, workshop: Workshop, hub: str = "") -> None:
        self._shop = workshop
        self._hub = hub
        self._cancelled: dict[str, float] = {}  # by key, when a run was first asked to end
        self._seen: dict[
            str, tuple[tuple[int, int], float]
        ] = {}  # by key: attempt and start, and when we first saw it
        self._calls: set[asyncio.Future[object]] = set()

    async def check_ready(self) -> None:
        self._shop.check()

    async def caution(self) -> str:
        return await self._call(self._shop.caution)

    async def ensure_run(self, key: str, spec: RunWanted) -> Outcome:
        return await self._call(lambda: self._ensure(key, spec))

    async def release_run(self, key: str) -> Outcome:
        now = asyncio.get_running_loop().time()
        return await self._call(lambda: self._release(key, now))

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return await self._call(lambda: self._events(key, after))

    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        return await self._call(lambda: self._owned(prefix))

    async def close(self) -> None:
        if self._calls:
            await asyncio.wait(self._calls)

    async def _call(self, work: Callable[[], Answer]) -> Answer:
        """Calls `work` in a thread. It completes even when the caller is cancelled: no start is left half done."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        call = loop.run_in_executor(self._shop.threads, lambda: context.run(work))
        self._calls.add(call)  # type: ignore[arg-type] # the result type does not matter there
        call.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(call)
        except OSError as error:
            message = error.strerror or type(error).__name__
            raise Unavailable(f"what is kept of runs cannot be used: {message}") from error

    # --- running -----------------------------------------------------------------------------

    def _ensure(self, key: str, spec: RunWanted) -> Outcome:
        records = self._shop.records
        record = records.find(key)
        if record is not None:
            if spec.attempt < record.attempt:
                raise Conflict("a later attempt of this run is known")
            if spec.attempt == record.attempt:
                return self._go_on(record, spec)
            # An earlier attempt must not run beside the new one.
            if not self._stop(key):
                return Waiting("an earlier attempt is being ended", reason="Ending")
        record_of_attempt = Record(
            key=key,
            hub=self._hub,
            template=spec.template,
            action=spec.action,
            digest=spec.digest,
            attempt=spec.attempt,
            start=0,
        )
        return self._start(record_of_attempt, spec)

    def _go_on(self, record: Record, spec: RunWanted) -> Outcome:
        result = self._shop.records.result(record)
        if result is None and holding.is_held(self._lock(record.key)):
            return self._under_way(record)
        reap()
        # It may have ended between reading the result and looking at the lock.
        result = result or self._shop.records.result(record)
        if result is not None and result.state not in INTERRUPTED:
            self._seen.pop(record.key, None)
            self._shop.turns.give_back(slug_of(record.key))
            return _concluded(record, result)
        if result is not None and result.state == "broken":
            logger.error(
                "run could not be carried out", extra={"run": record.key, "why": result.words}
            )
        if record.start >= self._shop.limits.starts:
            self._shop.turns.give_back(slug_of(record.key))
            message = f"it was interrupted {record.start} times and is not begun again"
            if result is not None and result.state == "broken":
                message = (
                    "it cannot be run on this machine; its operator finds the reason in the log"
                )
            raise Refused(f"{record.action} of {record.template}: {message}", reason=RUN_FAILED)
        return self._start(record, spec)

    def _under_way(self, record: Record) -> Waiting:
        task = self._shop.records.last_task(record.key)
        progress = f" is at task {task!r}" if task else " has begun"
        return Waiting(
            f"{record.action} of {record.template}{progress}",
            look_again=self._pause(record),
            reason="Running",
        )

    def _pause(self, record: Record) -> float:
        """Seconds until the next look: few after a start, so that its first events are seen soon; later one."""
        now, start = time.monotonic(), (record.attempt, record.start)
        first_look = self._seen.get(record.key)
        if first_look is None or first_look[0] != start:
            first_look = self._seen[record.key] = start, now
        return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, (now - first_look[1]) / 2))

    def _start(self, record: Record, spec: RunWanted) -> Outcome:
        key, slug = record.key, slug_of(record.key)
        try:
            capabilities = self._shop.ground()
        except Unavailable as error:
            if error.reason != PREPARING:
                raise
            return Waiting(str(error), reason=PREPARING)
        run_directory = self._shop.records.place(key)
        record = msgspec.structs.replace(record, start=record.start + 1)
        within = slug_of(spec.within) if spec.within else ""
        turn = Turn(record.hub, record.template, within)
        run_directory.mkdir(exist_ok=True, mode=0o711)
        with _only_one(run_directory / STARTING) as acquired:
            if not acquired or holding.is_held(self._lock(key)):
                return self._under_way(record)
            # First the turn, because waiting runs ask often. A turn without a start is over by itself.
            if wait_reason := self._shop.turns.take(slug, turn, self._is_over):
                return Waiting(wait_reason, reason="Queued")
            try:
                plan = self._plan(record, spec, run_directory, capabilities)
            except BaseException:
                self._shop.turns.leave(slug, turn)
                raise
            self._end_strays(run_directory)
            self._shop.records.clear(key)
            self._shop.records.save(record)
            write_durably(run_directory / PLAN, json.dumps(plan).encode())
            self._shop.starter.start(run_directory, capabilities)
        return self._under_way(record)

    def _plan(
        self, record: Record, spec: RunWanted, run_directory: Path, capabilities: Ground
    ) -> dict[str, object]:
        limits = self._shop.limits
        seconds = min(spec.time_limit, limits.longest)
        may_ask = spec.may_ask
        return plan_run(
            spec,
            start=record.start,
            content=self._shop.content(spec.digest),
            api=self._shop.passes(record.key, spec.attempt, seconds) if may_ask else None,
            run_directory=run_directory,
            capabilities=capabilities,
            limits=limits,
        )

    def _is_over(self, slug: str) -> bool:
        """Whether a run that has a turn has ended or was never started."""
        run_directory = self._shop.records.directory / slug
        if holding.is_held(run_directory / LOCK):
            return False
        with _only_one(run_directory / STARTING, create=False) as acquired:
            return acquired and not holding.is_held(run_directory / LOCK)

    # --- ending ------------------------------------------------------------------------------

    def _release(self, key: str, now: float) -> Outcome:
        run_directory = self._shop.records.place(key)
        if not run_directory.exists():
            return Done()
        since = self._cancelled.setdefault(key, now)
        with _only_one(run_directory / STARTING) as acquired:
            if not acquired or not self._stop(key, kill=now - since > 2 * END_SECONDS):
                return Waiting("the run is being ended", reason="Ending")
            self._shop.records.forget(key)
        reap()
        self._cancelled.pop(key, None)
        self._seen.pop(key, None)
        self._shop.turns.give_back(slug_of(key))
        return Done()

    def _stop(self, key: str, *, kill: bool = False) -> bool:
        """Ends the run if it is under way. True when none of its processes is left."""
        run_directory = self._shop.records.place(key)
        # A supervisor that is just starting exits when it finds no plan.
        (run_directory / PLAN).unlink(missing_ok=True)
        supervisor_fd = holding.holder(run_directory / LOCK)
        if supervisor_fd is not None:
            try:
                holding.send(supervisor_fd, signal.SIGKILL if kill else signal.SIGTERM)
                holding.send(supervisor_fd, signal.SIGCONT)
                if not holding.wait_for_end(supervisor_fd, END_SECONDS):
                    return False
            finally:
                os.close(supervisor_fd)
        self._end_strays(run_directory)
        return True

    def _end_strays(self, run_directory: Path) -> None:
        """Without namespaces: kills the processes that are left when the supervisor itself was killed."""
        if self._shop.ground_is_bare():
            for processes in find(mark_of(run_directory)).values():
                for process in processes:
                    process.signal(signal.SIGKILL)
                    process.close()

    # --- reading -----------------------------------------------------------------------------

    def _events(self, key: str, after: int) -> Sequence[RunEvent]:
        if self._shop.records.find(key) is None:
            return ()
        return self._shop.records.events(key, after)

    def _owned(self, prefix: str) -> Sequence[Owned]:
        return [
            Owned(
                key=record.key,
                kind=KIND,
                name=f"{record.template}/{record.action}",
                facts={"attempt": str(record.attempt)},
            )
            for record in self._shop.records
            if record.key.startswith(prefix) and record.hub == self._hub
        ]

    def _lock(self, key: str) -> Path:
        return self._shop.records.place(key) / LOCK


def _concluded(record: Record, result: Result) -> Done:
    if result.state == "succeeded":
        return Done(dict(result.facts))
    message = f"task {result.task!r}: {result.words}" if result.task else result.words
    raise Refused(f"{record.action} of {record.template}: {message}", reason=RUN_FAILED)


@contextmanager
def _only_one(path: Path, *, create: bool = True) -> Iterator[bool]:
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

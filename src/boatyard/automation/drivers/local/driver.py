"""Answers the automation port with Ansible on this machine. Made by `app`, one per hub, on a shared workshop.

A run is found by its key: a directory named by it, and a supervisor that holds the lock in it. Whoever was killed,
Boatyard, the supervisor or the run, the next `ensure_run` finds what is left and goes on from there.
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
# Nobody has judged the run: somebody ended it, or what watches over it could not go on. It is begun again.
INTERRUPTED = frozenset({"killed", "cancelled", "broken"})

Answer = TypeVar("Answer")


class LocalAutomation:
    def __init__(self, workshop: Workshop, hub: str = "") -> None:
        self._shop = workshop
        self._hub = hub
        self._cancelled: dict[str, float] = {}  # when a run was asked to end, by key
        self._seen: dict[str, tuple[tuple[int, int], float]] = {}  # which start, and since when
        self._calls: set[asyncio.Future[object]] = set()

    async def check_ready(self) -> None:
        self._shop.check()

    async def caution(self) -> str:
        return await self._call(self._shop.caution)

    async def ensure_run(self, key: str, wanted: RunWanted) -> Outcome:
        return await self._call(lambda: self._ensure(key, wanted))

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
        """In a thread, and to its end also when the caller is cancelled: a start is not left half done."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        call = loop.run_in_executor(self._shop.threads, lambda: context.run(work))
        self._calls.add(call)  # type: ignore[arg-type] # what it answers is of no concern there
        call.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(call)
        except OSError as error:
            words = error.strerror or type(error).__name__
            raise Unavailable(f"what is kept of runs cannot be used: {words}") from error

    # --- running -----------------------------------------------------------------------------

    def _ensure(self, key: str, wanted: RunWanted) -> Outcome:
        records = self._shop.records
        record = records.find(key)
        if record is not None:
            if wanted.attempt < record.attempt:
                raise Conflict("a later attempt of this run is known")
            if wanted.attempt == record.attempt:
                return self._go_on(record, wanted)
            # An attempt that is given up must not go on beside the new one.
            if not self._stop(key):
                return Waiting("an earlier attempt is being ended", reason="Ending")
        fresh = Record(
            key=key,
            hub=self._hub,
            template=wanted.template,
            action=wanted.action,
            digest=wanted.digest,
            attempt=wanted.attempt,
            start=0,
        )
        return self._start(fresh, wanted)

    def _go_on(self, record: Record, wanted: RunWanted) -> Outcome:
        result = self._shop.records.result(record)
        if result is None and holding.is_held(self._lock(record.key)):
            return self._under_way(record)
        reap()
        # Between the two questions it may have come to its end.
        result = result or self._shop.records.result(record)
        if result is not None and result.state not in INTERRUPTED:
            self._seen.pop(record.key, None)
            self._shop.turns.give_back(slug_of(record.key))
            return _concluded(record, result)
        if result is not None and result.state == "broken":
            logger.error("run could not be run", extra={"run": record.key, "why": result.words})
        if record.start >= self._shop.limits.starts:
            self._shop.turns.give_back(slug_of(record.key))
            words = f"it was interrupted {record.start} times and is not begun again"
            if result is not None and result.state == "broken":
                words = "it cannot be run on this machine; its operator finds the reason in the log"
            raise Refused(f"{record.action} of {record.template}: {words}", reason=RUN_FAILED)
        return self._start(record, wanted)

    def _under_way(self, record: Record) -> Waiting:
        task = self._shop.records.last_task(record.key)
        at = f" is at task {task!r}" if task else " has begun"
        return Waiting(
            f"{record.action} of {record.template}{at}",
            look_again=self._pause(record),
            reason="Running",
        )

    def _pause(self, record: Record) -> float:
        """Seconds until the next look: soon after a start, so that its first words are quickly seen; then one."""
        now, start = time.monotonic(), (record.attempt, record.start)
        seen = self._seen.get(record.key)
        if seen is None or seen[0] != start:
            seen = self._seen[record.key] = start, now
        return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, (now - seen[1]) / 2))

    def _start(self, record: Record, wanted: RunWanted) -> Outcome:
        key, slug = record.key, slug_of(record.key)
        try:
            ground = self._shop.ground()
        except Unavailable as error:
            if error.reason != PREPARING:
                raise
            return Waiting(str(error), reason=PREPARING)
        place = self._shop.records.place(key)
        record = msgspec.structs.replace(record, start=record.start + 1)
        within = slug_of(wanted.within) if wanted.within else ""
        turn = Turn(record.hub, record.template, within)
        place.mkdir(exist_ok=True, mode=0o711)
        with _only_one(place / STARTING) as ours:
            if not ours or holding.is_held(self._lock(key)):
                return self._under_way(record)
            # Before anything that costs: who waits for a turn asks often. A turn is over unless somebody starts.
            if why := self._shop.turns.take(slug, turn, self._is_over):
                return Waiting(why, reason="Queued")
            try:
                plan = self._plan(record, wanted, place, ground)
            except BaseException:
                self._shop.turns.leave(slug, turn)
                raise
            self._end_strays(place)
            self._shop.records.clear(key)
            self._shop.records.save(record)
            write_durably(place / PLAN, json.dumps(plan).encode())
            self._shop.starter.start(place, ground)
        return self._under_way(record)

    def _plan(
        self, record: Record, wanted: RunWanted, place: Path, ground: Ground
    ) -> dict[str, object]:
        limits = self._shop.limits
        seconds = min(wanted.time_limit, limits.longest)
        may_ask = wanted.may_ask
        return plan_run(
            wanted,
            start=record.start,
            content=self._shop.content(wanted.digest),
            api=self._shop.passes(record.key, wanted.attempt, seconds) if may_ask else None,
            place=place,
            ground=ground,
            limits=limits,
        )

    def _is_over(self, slug: str) -> bool:
        """Whether a run that has a turn has come to its end, or was never begun."""
        place = self._shop.records.directory / slug
        if holding.is_held(place / LOCK):
            return False
        with _only_one(place / STARTING, make=False) as ours:
            return ours and not holding.is_held(place / LOCK)

    # --- ending ------------------------------------------------------------------------------

    def _release(self, key: str, now: float) -> Outcome:
        place = self._shop.records.place(key)
        if not place.exists():
            return Done()
        since = self._cancelled.setdefault(key, now)
        with _only_one(place / STARTING) as ours:
            if not ours or not self._stop(key, kill=now - since > 2 * END_SECONDS):
                return Waiting("the run is being ended", reason="Ending")
            self._shop.records.forget(key)
        reap()
        self._cancelled.pop(key, None)
        self._seen.pop(key, None)
        self._shop.turns.give_back(slug_of(key))
        return Done()

    def _stop(self, key: str, *, kill: bool = False) -> bool:
        """Ends the run if it is under way; whether nothing of it runs any more."""
        place = self._shop.records.place(key)
        # Without its plan a supervisor that is still on its way ends by itself.
        (place / PLAN).unlink(missing_ok=True)
        held = holding.holder(place / LOCK)
        if held is not None:
            try:
                holding.send(held, signal.SIGKILL if kill else signal.SIGTERM)
                holding.send(held, signal.SIGCONT)
                if not holding.wait_for_end(held, END_SECONDS):
                    return False
            finally:
                os.close(held)
        self._end_strays(place)
        return True

    def _end_strays(self, place: Path) -> None:
        """Where there are no namespaces: who was left when the supervisor itself was killed."""
        if self._shop.ground_is_bare():
            for processes in find(mark_of(place)).values():
                for process in processes:
                    process.signal(signal.SIGKILL)
                    process.close()

    # --- telling -----------------------------------------------------------------------------

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
    words = f"task {result.task!r}: {result.words}" if result.task else result.words
    raise Refused(f"{record.action} of {record.template}: {words}", reason=RUN_FAILED)


@contextmanager
def _only_one(path: Path, *, make: bool = True) -> Iterator[bool]:
    """Whether nobody else is at it."""
    try:
        file = os.open(path, os.O_RDWR | (os.O_CREAT if make else 0), 0o600)
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

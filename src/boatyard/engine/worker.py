"""The loop of a worker process: takes due objects, calls their reconciler, writes each result once and guarded.

A notification wakes it within milliseconds. It also polls, so a lost notification costs a second, never an order.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from boatyard.engine.queue import Queue
from boatyard.ledger.records import Lease
from boatyard.model.clock import Clock
from boatyard.model.errors import BoatyardError, Conflict, LeaseLost, Unavailable
from boatyard.resources.reconciling import Reconciler, Result, Turn

logger = logging.getLogger(__name__)

POISON_AFTER = 3  # workers that died while they reconciled one object
_LONGEST_DELAY = 60.0
_TURNS_IN_A_ROW = 8
_ROOM_SECONDS = 0.02


@dataclass(frozen=True)
class Pace:
    """How many objects a worker reconciles at once, and its intervals in seconds."""

    at_once: int = 32
    lease: float = 30.0
    poll: float = 1.0
    restart: float = 1.0  # pause after the queue's store did not answer


class Worker:
    def __init__(
        self,
        *,
        queue: Queue,
        reconcilers: Mapping[str, Reconciler],
        clock: Clock,
        wait_for_hint: Callable[[float], Awaitable[None]],
        pace: Pace | None = None,
    ) -> None:
        self._queue = queue
        self._reconcilers = reconcilers
        self._clock = clock
        self._wait_for_hint = wait_for_hint
        self._pace = pace or Pace()
        self._held: dict[tuple[str, str], Lease] = {}
        self._ends: dict[tuple[str, str], datetime] = {}
        self._soon: list[datetime] = []
        self._lapsed: list[
            Lease
        ] = []  # lost although this worker is alive; the queue takes the attempt back
        self._failures: dict[
            tuple[str, str], int
        ] = {}  # failures in a row, of objects that fail now

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set; then finishes the passes under way and gives their leases back."""
        async with asyncio.TaskGroup() as tasks:
            heartbeat = tasks.create_task(self._keep_leases())
            turns: set[asyncio.Task[None]] = set()
            while not stop.is_set():
                leases = await self._take(self._pace.at_once - len(turns))
                sound, suspect = await self._apart(leases)
                for lease in sound:
                    turn = tasks.create_task(self._turn(lease))
                    turns.add(turn)
                    turn.add_done_callback(turns.discard)
                if suspect is not None:
                    if turns:
                        await asyncio.wait(turns)
                    await self._turn(suspect)
                elif len(turns) >= self._pace.at_once:
                    # Wait, so that one query fills several free slots: a query per finished pass would double them.
                    await asyncio.wait(turns, timeout=_ROOM_SECONDS)
                elif not leases:
                    await self._wait(stop)
            if turns:
                await asyncio.wait(turns)
            heartbeat.cancel()

    async def run_until_idle(self) -> int:
        """Reconciles one object after another until nothing is due now; returns how many. For tests that step time."""
        count = 0
        while leases := await self._queue.take(self._pace.at_once, now=self._clock.now()):
            for lease in leases:
                self._hold(lease)
            sound, suspect = await self._apart(leases)
            for lease in (*sound, *([suspect] if suspect else ())):
                await self._turn(lease)
                count += 1
        return count

    async def _take(self, limit: int) -> list[Lease]:
        if limit <= 0:
            return []
        try:
            leases = list(await self._queue.take(limit, now=self._clock.now()))
        except Unavailable as error:
            logger.warning("queue does not answer", extra={"why": str(error)})
            await asyncio.sleep(self._pace.restart)
            return []
        for lease in leases:
            self._hold(lease)
        return leases

    async def _apart(self, leases: Sequence[Lease]) -> tuple[list[Lease], Lease | None]:
        """Splits the leases into those that may run side by side and one suspect to run alone.

        A suspect is an object that a worker held when it died. Nobody knows which of the objects it held killed
        it; run alone, another death counts against the suspect only. Further suspects are given back.
        """
        suspects = [lease for lease in leases if lease.attempts > 1]
        for lease in suspects[1:]:
            await self._again(lease, 0.0, attempts=lease.attempts - 1)
            self._let_go(lease)
        sound = [lease for lease in leases if lease.attempts <= 1]
        return sound, suspects[0] if suspects else None

    def _hold(self, lease: Lease) -> None:
        self._held[lease.kind, lease.id] = lease
        self._ends[lease.kind, lease.id] = lease.until  # counted from before the request

    def _let_go(self, lease: Lease) -> None:
        self._held.pop((lease.kind, lease.id), None)
        self._ends.pop((lease.kind, lease.id), None)

    async def _turn(self, lease: Lease) -> None:
        """Reconciles one object. Whatever happens, the object is due again at a known time."""
        try:
            for passes_left in reversed(range(_TURNS_IN_A_ROW)):
                now = self._clock.now()
                result = await self._reconcile(lease, now)
                if passes_left and result.look_again is not None and result.look_again <= now:
                    # More can be done now: write the result and go on under the same lease.
                    await self._queue.write(lease, result, now=now)
                    continue
                await self._queue.finish(lease, result, attempts=0, now=now)
                self._failures.pop((lease.kind, lease.id), None)
                if result.look_again is not None:
                    heapq.heappush(self._soon, result.look_again)
                break
        except LeaseLost:
            logger.warning("lease lost during a pass", extra={"kind": lease.kind, "id": lease.id})
            self._lapsed.append(lease)
        except Conflict:
            await self._again(lease, 0.0)  # somebody wrote it meanwhile: look again at once
        except BoatyardError as error:
            logger.warning(
                "object failed and will be retried",
                extra={"kind": lease.kind, "id": lease.id, "why": str(error)},
            )
            await self._again(lease, self._patience(lease))
        except Exception:  # a bug in one object's reconciler must not stop the others
            logger.exception(
                "object failed with an internal error", extra={"kind": lease.kind, "id": lease.id}
            )
            await self._again(lease, self._patience(lease))
        finally:
            self._let_go(lease)

    async def _reconcile(self, lease: Lease, now: datetime) -> Result:
        reconciler = self._reconcilers[lease.kind]
        turn = Turn(id=lease.id, now=now, lease=lease, check_lease=lambda: self._check(lease))
        if lease.attempts <= POISON_AFTER:
            return await reconciler.reconcile(turn)
        logger.error(
            "object quarantined after three crashes", extra={"kind": lease.kind, "id": lease.id}
        )
        return await reconciler.poisoned(turn)

    async def _again(self, lease: Lease, delay: float, attempts: int = 0) -> None:
        """Gives the lease back without writing anything, due after `delay` seconds. Failing that, it expires."""
        now = self._clock.now()
        look_again = now + timedelta(seconds=delay)
        result = Result(look_again=look_again, hub=lease.hub, waiting_for=lease.waiting_for)
        try:
            await self._queue.finish(lease, result, attempts=attempts, now=now)
        except BoatyardError as error:
            logger.warning(
                "lease not given back, it will expire", extra={"id": lease.id, "why": str(error)}
            )
            self._lapsed.append(lease)
            return
        heapq.heappush(self._soon, look_again)

    def _patience(self, lease: Lease) -> float:
        """Seconds until the next try: doubled after each failure in a row, with some jitter."""
        key = (lease.kind, lease.id)
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        share = hashlib.sha256(f"{lease.id}/{failures}".encode()).digest()[0] / 255
        return min(_LONGEST_DELAY, 2.0 ** min(failures, 16)) * (0.75 + 0.5 * share)

    def _check(self, lease: Lease) -> None:
        """Raises LeaseLost once another worker may hold the lease. Called before every effect."""
        ends = self._ends.get((lease.kind, lease.id))
        if ends is None or self._clock.now() >= ends:
            raise LeaseLost(f"the lease on {lease.kind} {lease.id} has run out")
        self._queue.check(lease)

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._pace.lease / 3)
            try:
                await self._keep(list(self._held.values()))
                await self._explain_lapses()
            except Unavailable as error:
                logger.warning("leases not extended", extra={"why": str(error)})

    async def _keep(self, leases: Sequence[Lease]) -> None:
        if not leases:
            return
        now = self._clock.now()
        extended_keys = await self._queue.extend(leases, now=now)
        for key in extended_keys & self._ends.keys():
            self._ends[key] = now + timedelta(seconds=self._pace.lease)

    async def _explain_lapses(self) -> None:
        """Takes back the attempts of lost leases: this worker is alive, so their objects are no suspects."""
        while self._lapsed:
            await self._queue.forgive(self._lapsed[-1])
            self._lapsed.pop()

    async def _wait(self, stop: asyncio.Event) -> None:
        """Waits for a notification, the next due time known here, the next poll, or `stop`, whichever comes first."""
        now = self._clock.now()
        while self._soon and self._soon[0] <= now - timedelta(seconds=self._pace.poll):
            heapq.heappop(self._soon)
        seconds = self._pace.poll
        if self._soon:
            seconds = min(seconds, max(0.0, (self._soon[0] - now).total_seconds()) + 0.001)
            if self._soon[0] <= now:
                heapq.heappop(self._soon)
        await _first(self._wait_for_hint(seconds), stop.wait())


async def _first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

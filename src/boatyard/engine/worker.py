"""The loop of a worker process: takes due objects, calls their reconciler, writes each result once and guarded.

A notification wakes it within milliseconds. It also polls, so a lost notification costs a second, never an order.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from boatyard.engine.queue import Queue
from boatyard.ledger.records import WorkLease
from boatyard.model.backoff import Backoff, share_of
from boatyard.model.clock import Clock
from boatyard.model.errors import BoatyardError, Conflict, LeaseLost, Unavailable
from boatyard.resources.reconciler import ReconcilePass, Reconciler, ReconcileResult

logger = logging.getLogger(__name__)

QUARANTINE_AFTER_CRASHES = 3  # workers that died while they reconciled one object
_BACKOFF = Backoff(first=2.0, longest=60.0)
_MAX_CONSECUTIVE_PASSES = 8
_FREE_SLOT_WAIT_SECONDS = 0.02


@dataclass(frozen=True)
class WorkerLimits:
    """How many objects a worker reconciles at once, and its intervals in seconds."""

    max_concurrent: int = 32
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
        limits: WorkerLimits | None = None,
    ) -> None:
        self._queue = queue
        self._reconcilers = reconcilers
        self._clock = clock
        self._wait_for_hint = wait_for_hint
        self._limits = limits or WorkerLimits()
        self._leases: dict[tuple[str, str], WorkLease] = {}
        self._lease_ends: dict[tuple[str, str], datetime] = {}
        self._due_times: list[datetime] = []
        self._lapsed_leases: list[
            WorkLease
        ] = []  # lost although this worker is alive; the queue takes the attempt back
        self._failure_counts: dict[
            tuple[str, str], int
        ] = {}  # failures in a row, of objects that fail now

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set; then finishes the passes under way and gives their leases back."""
        async with asyncio.TaskGroup() as tasks:
            heartbeat = tasks.create_task(self._extend_leases_forever())
            turns: set[asyncio.Task[None]] = set()
            while not stop.is_set():
                leases = await self._take(self._limits.max_concurrent - len(turns))
                sound, suspect = await self._separate_suspect(leases)
                for lease in sound:
                    turn = tasks.create_task(self._run_pass(lease))
                    turns.add(turn)
                    turn.add_done_callback(turns.discard)
                if suspect is not None:
                    if turns:
                        await asyncio.wait(turns)
                    await self._run_pass(suspect)
                elif len(turns) >= self._limits.max_concurrent:
                    # Wait, so that one query fills several free slots: a query per finished pass would double them.
                    await asyncio.wait(turns, timeout=_FREE_SLOT_WAIT_SECONDS)
                elif not leases:
                    await self._wait_for_work(stop)
            if turns:
                await asyncio.wait(turns)
            heartbeat.cancel()

    async def run_until_idle(self) -> int:
        """Reconciles one object after another until nothing is due now; returns how many. For tests that step time."""
        count = 0
        while leases := await self._queue.take(self._limits.max_concurrent, now=self._clock.now()):
            for lease in leases:
                self._add_lease(lease)
            sound, suspect = await self._separate_suspect(leases)
            for lease in (*sound, *([suspect] if suspect else ())):
                await self._run_pass(lease)
                count += 1
        return count

    async def _take(self, limit: int) -> list[WorkLease]:
        if limit <= 0:
            return []
        try:
            leases = list(await self._queue.take(limit, now=self._clock.now()))
        except Unavailable as error:
            logger.warning("queue does not answer", extra={"why": str(error)})
            await asyncio.sleep(self._limits.restart)
            return []
        for lease in leases:
            self._add_lease(lease)
        return leases

    async def _separate_suspect(
        self, leases: Sequence[WorkLease]
    ) -> tuple[list[WorkLease], WorkLease | None]:
        """Splits the leases into those that may run side by side and one suspect to run alone.

        A suspect is an object that a worker held when it died. Nobody knows which of the objects it held killed
        it; run alone, another death counts against the suspect only. Further suspects are given back.
        """
        suspects = [lease for lease in leases if lease.attempts > 1]
        for lease in suspects[1:]:
            await self._give_back(lease, 0.0, attempts=lease.attempts - 1)
            self._remove_lease(lease)
        sound = [lease for lease in leases if lease.attempts <= 1]
        return sound, suspects[0] if suspects else None

    def _add_lease(self, lease: WorkLease) -> None:
        self._leases[lease.kind, lease.id] = lease
        self._lease_ends[lease.kind, lease.id] = lease.until  # counted from before the request

    def _remove_lease(self, lease: WorkLease) -> None:
        self._leases.pop((lease.kind, lease.id), None)
        self._lease_ends.pop((lease.kind, lease.id), None)

    async def _run_pass(self, lease: WorkLease) -> None:
        """Reconciles one object. Whatever happens, the object is due again at a known time."""
        try:
            for passes_left in reversed(range(_MAX_CONSECUTIVE_PASSES)):
                now = self._clock.now()
                result = await self._reconcile(lease, now)
                if passes_left and result.look_again is not None and result.look_again <= now:
                    # More can be done now: write the result and go on under the same lease.
                    await self._queue.write(lease, result, now=now)
                    continue
                await self._queue.finish(lease, result, attempts=0, now=now)
                self._failure_counts.pop((lease.kind, lease.id), None)
                if result.look_again is not None:
                    heapq.heappush(self._due_times, result.look_again)
                break
        except LeaseLost:
            logger.warning("lease lost during a pass", extra={"kind": lease.kind, "id": lease.id})
            self._lapsed_leases.append(lease)
        except Conflict:
            await self._give_back(lease, 0.0)  # somebody wrote it meanwhile: look again at once
        except BoatyardError as error:
            logger.warning(
                "object failed and will be retried",
                extra={"kind": lease.kind, "id": lease.id, "why": str(error)},
            )
            await self._give_back(lease, self._compute_retry_delay(lease))
        except Exception:  # a bug in one object's reconciler must not stop the others
            logger.exception(
                "object failed with an internal error", extra={"kind": lease.kind, "id": lease.id}
            )
            await self._give_back(lease, self._compute_retry_delay(lease))
        finally:
            self._remove_lease(lease)

    async def _reconcile(self, lease: WorkLease, now: datetime) -> ReconcileResult:
        reconciler = self._reconcilers[lease.kind]
        turn = ReconcilePass(
            id=lease.id, now=now, lease=lease, check_lease=lambda: self._check_lease(lease)
        )
        if lease.attempts <= QUARANTINE_AFTER_CRASHES:
            return await reconciler.reconcile(turn)
        logger.error(
            "object quarantined after three crashes", extra={"kind": lease.kind, "id": lease.id}
        )
        return await reconciler.quarantine(turn)

    async def _give_back(self, lease: WorkLease, delay: float, attempts: int = 0) -> None:
        """Gives the lease back without writing anything, due after `delay` seconds. Failing that, it expires."""
        now = self._clock.now()
        look_again = now + timedelta(seconds=delay)
        result = ReconcileResult(
            look_again=look_again, hub=lease.hub, waiting_for=lease.waiting_for
        )
        try:
            await self._queue.finish(lease, result, attempts=attempts, now=now)
        except BoatyardError as error:
            logger.warning(
                "lease not given back, it will expire", extra={"id": lease.id, "why": str(error)}
            )
            self._lapsed_leases.append(lease)
            return
        heapq.heappush(self._due_times, look_again)

    def _compute_retry_delay(self, lease: WorkLease) -> float:
        """Seconds until the next try: doubled after each failure in a row, with some jitter."""
        key = (lease.kind, lease.id)
        failures = self._failure_counts[key] = self._failure_counts.get(key, 0) + 1
        return _BACKOFF.pause(failures, share=share_of(f"{lease.id}/{failures}"))

    def _check_lease(self, lease: WorkLease) -> None:
        """Raises LeaseLost once another worker may hold the lease. Called before every effect."""
        ends = self._lease_ends.get((lease.kind, lease.id))
        if ends is None or self._clock.now() >= ends:
            raise LeaseLost(f"the lease on {lease.kind} {lease.id} has run out")
        self._queue.check_lease(lease)

    async def _extend_leases_forever(self) -> None:
        while True:
            await asyncio.sleep(self._limits.lease / 3)
            try:
                await self._extend_leases(list(self._leases.values()))
                await self._refund_lapsed_attempts()
            except Unavailable as error:
                logger.warning("leases not extended", extra={"why": str(error)})

    async def _extend_leases(self, leases: Sequence[WorkLease]) -> None:
        if not leases:
            return
        now = self._clock.now()
        extended_keys = await self._queue.extend(leases, now=now)
        for key in extended_keys & self._lease_ends.keys():
            self._lease_ends[key] = now + timedelta(seconds=self._limits.lease)

    async def _refund_lapsed_attempts(self) -> None:
        """Takes back the attempts of lost leases: this worker is alive, so their objects are no suspects."""
        while self._lapsed_leases:
            await self._queue.refund_attempt(self._lapsed_leases[-1])
            self._lapsed_leases.pop()

    async def _wait_for_work(self, stop: asyncio.Event) -> None:
        """Waits for a notification, the next due time known here, the next poll, or `stop`, whichever comes first."""
        now = self._clock.now()
        while self._due_times and self._due_times[0] <= now - timedelta(seconds=self._limits.poll):
            heapq.heappop(self._due_times)
        seconds = self._limits.poll
        if self._due_times:
            seconds = min(seconds, max(0.0, (self._due_times[0] - now).total_seconds()) + 0.001)
            if self._due_times[0] <= now:
                heapq.heappop(self._due_times)
        await _wait_for_first(self._wait_for_hint(seconds), stop.wait())


async def _wait_for_first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

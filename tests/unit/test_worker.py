"""The loop of a worker, on a queue in memory: what it promises whatever happens in a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from boatyard.engine.worker import QUARANTINE_AFTER_CRASHES, Worker, WorkerLimits
from boatyard.ledger.records import WorkLease
from boatyard.model.errors import Conflict, LeaseLost, Unavailable
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = 30.0


class WorkerClock:
    def __init__(self) -> None:
        self.moment = BEGIN

    def now(self) -> datetime:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class MemoryQueue:
    """Rows in memory with the rules of the ledger's work table: due moments, tokens, counted takes."""

    def __init__(self, *ids: str) -> None:
        self.due: dict[str, datetime] = dict.fromkeys(ids, BEGIN)
        self.token: dict[str, int] = {}
        self.attempts: dict[str, int] = dict.fromkeys(ids, 0)
        self.finished: list[tuple[str, ReconcileResult, int]] = []
        self.written: list[str] = []
        self.forgiven: list[str] = []
        self.was_told = asyncio.Event()
        self.fail_take: list[Exception] = []
        self.fail_finish: list[Exception] = []
        self._tokens = 0

    async def take(self, limit: int, *, now: datetime) -> Sequence[WorkLease]:
        if self.fail_take:
            raise self.fail_take.pop(0)
        found = []
        for id in sorted(self.due, key=lambda one: self.due[one]):
            if self.due[id] <= now and len(found) < limit:
                self._tokens += 1
                self.token[id] = self._tokens
                self.attempts[id] += 1
                self.due[id] = now + timedelta(seconds=LEASE)
                found.append(self._lease(id))
        return found

    def _lease(self, id: str) -> WorkLease:
        return WorkLease(
            kind="Order",
            id=id,
            tenant="",
            hub="hub-1",
            attempts=self.attempts[id],
            token=self.token[id],
            until=self.due[id],
            waiting_for="capacity",
        )

    async def extend(self, leases: Sequence[WorkLease], *, now: datetime) -> set[tuple[str, str]]:
        return {(lease.kind, lease.id) for lease in leases}

    def check_lease(self, lease: WorkLease) -> None:
        pass

    async def refund_attempt(self, lease: WorkLease) -> None:
        self.forgiven.append(lease.id)
        self.was_told.set()

    async def write(self, lease: WorkLease, result: ReconcileResult, *, now: datetime) -> None:
        self._check(lease)
        self.written.append(lease.id)

    async def finish(
        self, lease: WorkLease, result: ReconcileResult, *, attempts: int, now: datetime
    ) -> None:
        if self.fail_finish:
            raise self.fail_finish.pop(0)
        self._check(lease)
        self.finished.append((lease.id, result, attempts))
        self.attempts[lease.id] = attempts
        self.token.pop(lease.id)
        if result.look_again is None:
            del self.due[lease.id]
        else:
            self.due[lease.id] = result.look_again

    def _check(self, lease: WorkLease) -> None:
        if self.token.get(lease.id) != lease.token:
            raise LeaseLost("another holds it now")


class Does:
    """A reconciler that does what the test says, and remembers whom it was given."""

    def __init__(
        self, act: Callable[[ReconcilePass], Awaitable[ReconcileResult]] | None = None
    ) -> None:
        self.act = act
        self.turns: list[str] = []
        self.set_aside: list[str] = []

    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        self.turns.append(reconcile_pass.id)
        return await self.act(reconcile_pass) if self.act else ReconcileResult()

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        self.set_aside.append(reconcile_pass.id)
        return ReconcileResult()


def make(
    queue: MemoryQueue, does: Does, clock: WorkerClock, limits: WorkerLimits | None = None
) -> Worker:
    return Worker(
        queue=queue,
        reconcilers={"Order": does},
        clock=clock,
        wait_for_hint=asyncio.sleep,
        limits=limits or WorkerLimits(poll=0.01, restart=0.01, lease=LEASE),
    )


async def test_what_has_nothing_left_to_do_is_not_due_any_more() -> None:
    queue, does = MemoryQueue("a", "b"), Does()
    assert await make(queue, does, WorkerClock()).run_until_idle() == 2
    assert queue.due == {}


@pytest.mark.parametrize(
    "error, soonest",
    [
        pytest.param(Conflict("somebody wrote it"), 0.0, id="a conflict: look again at once"),
        pytest.param(Unavailable("no answer"), 1.0, id="no answer: later"),
        pytest.param(RuntimeError("a bug"), 1.0, id="a bug: later, and the others go on"),
    ],
)
async def test_whatever_fails_is_due_again_at_a_known_time(
    error: Exception, soonest: float
) -> None:
    clock, failing = WorkerClock(), [error]

    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        if reconcile_pass.id == "a" and failing:
            raise failing.pop()
        return ReconcileResult()

    queue, does = MemoryQueue("a", "b"), Does(act)
    await make(queue, does, clock).run_until_idle()
    assert "b" in does.turns
    if soonest:
        assert soonest <= (queue.due["a"] - BEGIN).total_seconds() < 10
    else:
        assert does.turns.count("a") == 2
    assert queue.finished[0][1].waiting_for == "capacity", "what it waited for is kept"


async def test_failures_are_retried_ever_more_patiently_and_never_set_aside() -> None:
    clock = WorkerClock()

    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        raise Unavailable("no answer")

    queue, does = MemoryQueue("a"), Does(act)
    worker, delays = make(queue, does, clock), []
    for _ in range(9):
        await worker.run_until_idle()
        delays.append((queue.due["a"] - clock.now()).total_seconds())
        clock.moment = queue.due["a"]
    assert delays[0] < 3 < 30 < delays[-1] <= 75
    assert does.set_aside == []


async def test_more_to_do_goes_on_under_the_same_lease_but_not_for_ever() -> None:
    clock = WorkerClock()

    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        return ReconcileResult(look_again=reconcile_pass.now)

    queue, does = MemoryQueue("greedy"), Does(act)
    taken = await queue.take(1, now=BEGIN)
    worker = make(queue, does, clock)
    worker._add_lease(taken[0])
    await worker._run_pass(taken[0])
    assert len(does.turns) == 8, "then others have their turn"
    assert len(queue.written) == 7
    assert queue.due["greedy"] == BEGIN


async def test_a_late_write_is_thrown_away() -> None:
    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        queue.token["a"] += 100  # meanwhile somebody else has taken it
        return ReconcileResult()

    queue, does = MemoryQueue("a"), Does(act)
    await make(queue, does, WorkerClock()).run_until_idle()
    assert queue.finished == []


async def test_no_effect_begins_once_the_lease_may_have_passed_on() -> None:
    clock, effects = WorkerClock(), []

    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        for number in range(5):
            reconcile_pass.check_lease()
            effects.append(number)
            clock.moment += timedelta(seconds=LEASE / 2)
        return ReconcileResult()

    queue = MemoryQueue("a")
    worker = make(queue, Does(act), clock)
    (lease,) = await queue.take(1, now=BEGIN)
    worker._add_lease(lease)
    await worker._run_pass(lease)
    assert effects == [0, 1]
    assert queue.finished == []


async def test_whoever_killed_three_workers_is_set_aside() -> None:
    clock, queue, does = WorkerClock(), MemoryQueue("deadly"), Does()
    for _ in range(QUARANTINE_AFTER_CRASHES):
        assert await queue.take(1, now=clock.now())  # and the worker is no more
        clock.moment += timedelta(seconds=LEASE)
    await make(queue, does, clock).run_until_idle()
    assert (does.turns, does.set_aside) == ([], ["deadly"])
    assert queue.finished[0][2] == 0, "it starts with a clean slate when it is retried"


async def test_suspects_are_held_one_at_a_time() -> None:
    """A death counts against all that were held; the next time each is alone."""
    clock, queue, together = WorkerClock(), MemoryQueue("a", "b", "c"), []

    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        together.append(sorted(queue.token))
        return ReconcileResult()

    await queue.take(3, now=clock.now())  # and the worker is no more
    clock.moment += timedelta(seconds=LEASE)
    await make(queue, Does(act), clock).run_until_idle()
    assert together == [["a"], ["b"], ["c"]]


async def _run(worker: Worker, until: Callable[[], bool]) -> None:
    stop = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(worker.run(stop))
        while not until():  # noqa: ASYNC110 - what is waited for is in the queue, not in an event
            await asyncio.sleep(0.001)
        stop.set()
        await running


async def test_a_store_that_was_away_is_used_again() -> None:
    queue, does = MemoryQueue("a"), Does()
    queue.fail_take = [Unavailable("away"), Unavailable("away")]
    await _run(make(queue, does, WorkerClock()), lambda: bool(does.turns))
    assert queue.due == {}


async def test_a_result_that_could_not_be_written_is_looked_at_again_when_the_lease_ends() -> None:
    clock, queue, does = WorkerClock(), MemoryQueue("a"), Does()
    queue.fail_finish = [Unavailable("away"), Unavailable("away")]
    worker = make(queue, does, clock)
    await worker.run_until_idle()
    assert queue.due["a"] == BEGIN + timedelta(seconds=LEASE)
    clock.moment = queue.due["a"]
    await worker.run_until_idle()
    assert queue.due == {}


async def test_a_lease_lost_by_a_living_worker_is_not_held_against_the_object() -> None:
    queue, stop = MemoryQueue("a"), asyncio.Event()

    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        queue.token["a"] = -1  # another has taken it meanwhile
        return ReconcileResult()

    worker = make(queue, Does(act), WorkerClock(), WorkerLimits(poll=0.01, lease=0.03))
    running = asyncio.create_task(worker.run(stop))
    async with asyncio.timeout(10):
        await queue.was_told.wait()
    stop.set()
    await running
    assert queue.forgiven == ["a"]


async def test_stopping_finishes_the_turns_under_way() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        begun.set()
        await go_on.wait()
        return ReconcileResult()

    queue = MemoryQueue("a")
    stop = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(make(queue, Does(act), WorkerClock()).run(stop))
        await begun.wait()
        stop.set()
        go_on.set()
        await running
    assert [id for id, _, _ in queue.finished] == ["a"]


async def test_many_turns_run_side_by_side_and_not_more_than_allowed() -> None:
    running, most = 0, 0

    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return ReconcileResult()

    queue, does = MemoryQueue(*(f"o-{n:02}" for n in range(20))), Does(act)
    pace = WorkerLimits(max_concurrent=4, poll=0.01, lease=LEASE)
    await _run(make(queue, does, WorkerClock(), pace), lambda: len(queue.finished) == 20)
    assert 2 <= most <= 4


async def test_a_lease_ends_when_the_store_says_however_long_the_taking_took() -> None:
    clock, begun = WorkerClock(), []

    class SlowReconciler(MemoryQueue):
        async def take(self, limit: int, *, now: datetime) -> Sequence[WorkLease]:
            taken = await super().take(limit, now=now)
            if now == BEGIN:
                clock.moment += timedelta(seconds=LEASE + 1)
            return taken

    async def act(reconcile_pass: ReconcilePass) -> ReconcileResult:
        reconcile_pass.check_lease()
        begun.append(reconcile_pass.id)
        return ReconcileResult()

    does = Does(act)
    await make(SlowReconciler("a"), does, clock).run_until_idle()

    assert does.turns == ["a", "a"], "held too late, then held anew"
    assert begun == ["a"]

"""Following one cluster until it is as asked, given up on, or out of time."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TextIO

import msgspec

from boatyard.cli.exits import CAPACITY, FAILED, STILL_RUNNING, StillRunning, Unsuccessful
from boatyard.cli.screen import Screen, open_screen
from boatyard.cli.words import clean, spell_duration, terminal_now
from boatyard.client.client import Client
from boatyard.model.errors import BoatyardError, NotFound
from boatyard.model.generated.boatyard import Explanation, Receipt, Step, StepState

READY = "ready"
HIBERNATED = "hibernated"
DELETED = "deleted"

# What stood there before we acted may be shown once more; this long we wait for something newer.
STALE_SECONDS = 5.0

_SCARCE = ("Capacity", "Quota", "Exhausted")


async def follow_until(
    client: Client,
    cluster: str,
    *,
    name: str,
    goal: str,
    doing: str,
    timeout: float,
    stream: TextIO,
    before: Explanation | None = None,
    must_move: bool = False,
) -> Explanation:
    """Shows the tree until the goal is reached; `before` is what was true before we acted.

    With `must_move` it is not content with what was true before, unless that stays so for a while.
    Raises Unsuccessful when it cannot be reached by waiting, StillRunning when the time is over.
    Interrupted, it says that the order goes on and how to watch it again.
    """
    seen: list[Explanation] = []
    again = f"boatyard wait cluster {clean(name)} --for {goal}"
    try:
        with open_screen(stream, doing=doing, clock=terminal_now, before=before) as screen:
            async with asyncio.timeout(timeout or None):
                stale = before if must_move else None
                last = await _follow(
                    client, cluster, goal=goal, screen=screen, stale=stale, seen=seen
                )
    except TimeoutError as error:
        scarce = bool(seen) and waits_for_room(seen[-1])
        why = ", waiting for room at the provider" if scarce else ""
        raise StillRunning(
            f"still {doing} after {spell_duration(timeout)}{why}; it goes on. Watch it again: {again}",
            code=CAPACITY if scarce else STILL_RUNNING,
        ) from error
    except asyncio.CancelledError:
        print(f"\nThe order goes on without you. Watch it again: {again}", file=stream)
        raise
    verdict = judge(last, goal)
    if isinstance(verdict, Unsuccessful):
        raise verdict
    return last


async def _follow(
    client: Client,
    cluster: str,
    *,
    goal: str,
    screen: Screen,
    stale: Explanation | None,
    seen: list[Explanation],
) -> Explanation:
    def lost(error: BoatyardError) -> None:
        screen.tell(f"connection lost, trying again: {clean(str(error))}")

    last: Explanation | None = None
    final = moved = False
    try:
        async with aclosing(client.follow(cluster, on_cut=lost)) as stream:
            while True:
                try:
                    async with asyncio.timeout(STALE_SECONDS if final else None):
                        last = await anext(stream)
                except TimeoutError:
                    if last is not None and final:
                        return last
                    raise
                seen[:] = [last]
                screen.show(last)
                final = bool(judge(last, goal))
                moved = moved or last != stale
                if final and moved:
                    return last
    except (NotFound, StopAsyncIteration):
        if goal != DELETED:
            raise
        return _gone(last, await client.receipt(cluster), cluster)


def _gone(last: Explanation | None, receipt: Receipt, cluster: str) -> Explanation:
    """The stream was cut at the very end: what it would have said last."""
    known = last or Explanation(cluster=cluster)
    return msgspec.structs.replace(known, gone=True, receipt=receipt)


def waits_for_room(explanation: Explanation) -> bool:
    """Whether what blocks is that something scarce is used up: hub capacity, hosts, addresses."""
    if explanation.blocked_by == "placement":
        return True
    blocking = [step for step in explanation.steps if step.name == explanation.blocked_by]
    return any(step.reason.startswith("NoFree") for step in blocking)


def judge(explanation: Explanation, goal: str) -> bool | Unsuccessful:
    """Whether the goal is reached, or why it will not be by waiting."""
    name = clean(explanation.name or explanation.cluster)
    if goal == DELETED:
        return explanation.gone
    if explanation.gone or explanation.state.startswith("DELET"):
        return Unsuccessful(f"cluster {name} is being deleted or gone")
    if explanation.state == goal.upper():
        return True
    if explanation.state == "HIBERNATED":
        return Unsuccessful(f"cluster {name} rests; wake it: boatyard resume cluster {name}")
    stuck = _stuck_step(explanation)
    if explanation.state != "FAILED" and (stuck is None or stuck.state is StepState.FAILED):
        return False
    return _failure(name, explanation, stuck)


def _stuck_step(explanation: Explanation) -> Step | None:
    stuck = [
        step
        for step in explanation.steps
        if step.state in (StepState.FAILED, StepState.QUARANTINED)
    ]
    named = [step for step in stuck if step.name == explanation.blocked_by]
    return next(iter(named or stuck), None)


def _failure(name: str, explanation: Explanation, stuck: Step | None) -> Unsuccessful:
    words = clean(stuck.message if stuck and stuck.message else explanation.summary)
    where = f" at {clean(stuck.name)}" if stuck else ""
    remedy = clean((stuck.remedy if stuck else "") or explanation.remedy)
    scarce = stuck is not None and any(word in stuck.reason for word in _SCARCE)
    advice = f" {remedy.rstrip('.')}." if remedy else ""
    return Unsuccessful(
        f"cluster {name} failed{where}: {words}{advice} "
        f"More: boatyard explain cluster {name}; again: boatyard retry cluster {name}",
        code=CAPACITY if scarce else FAILED,
    )

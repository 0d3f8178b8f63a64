"""Follows one cluster until it reaches a goal, fails, or the timeout is over."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TextIO

import msgspec

from boatyard.cli.exit_codes import CAPACITY, FAILED, STILL_RUNNING, StillRunning, Unsuccessful
from boatyard.cli.screen import Screen, open_screen
from boatyard.cli.text_format import clean, format_duration, terminal_now
from boatyard.client.client import Client
from boatyard.model.errors import BoatyardError, NotFound
from boatyard.model.generated.boatyard import Explanation, Receipt, Step, StepState
from boatyard.model.reasons import SCARCITY_REASONS

READY = "ready"
HIBERNATED = "hibernated"
DELETED = "deleted"

# The first explanation may still be the one from before our call; we wait this long for a newer one.
STALE_SECONDS = 5.0

_CAPACITY_REASONS = ("Capacity", "Quota", "Exhausted")


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
    """Shows the tree until the goal is reached; `before` is the explanation from before our call.

    With `must_move`, an explanation equal to `before` counts only when it stays the same for STALE_SECONDS.
    Raises Unsuccessful when waiting cannot reach the goal, StillRunning when the timeout is over.
    When interrupted, prints that the order goes on and how to watch it again.
    """
    explanations: list[Explanation] = []
    wait_command = f"boatyard wait cluster {clean(name)} --for {goal}"
    try:
        with open_screen(stream, doing=doing, clock=terminal_now, before=before) as screen:
            async with asyncio.timeout(timeout or None):
                stale = before if must_move else None
                explanation = await _follow_explanations(
                    client,
                    cluster,
                    goal=goal,
                    screen=screen,
                    stale=stale,
                    explanations=explanations,
                )
    except TimeoutError as error:
        scarce = bool(explanations) and is_waiting_for_capacity(explanations[-1])
        reason = ", waiting for room at the provider" if scarce else ""
        raise StillRunning(
            f"still {doing} after {format_duration(timeout)}{reason}; it goes on. Watch it again: {wait_command}",
            code=CAPACITY if scarce else STILL_RUNNING,
        ) from error
    except asyncio.CancelledError:
        print(f"\nThe order goes on without you. Watch it again: {wait_command}", file=stream)
        raise
    verdict = check_goal(explanation, goal)
    if isinstance(verdict, Unsuccessful):
        raise verdict
    return explanation


async def _follow_explanations(
    client: Client,
    cluster: str,
    *,
    goal: str,
    screen: Screen,
    stale: Explanation | None,
    explanations: list[Explanation],
) -> Explanation:
    def show_cut(error: BoatyardError) -> None:
        screen.show_remark(f"connection lost, trying again: {clean(str(error))}")

    explanation: Explanation | None = None
    final = moved = False
    try:
        async with aclosing(client.follow(cluster, on_cut=show_cut)) as stream:
            while True:
                try:
                    async with asyncio.timeout(STALE_SECONDS if final else None):
                        explanation = await anext(stream)
                except TimeoutError:
                    if explanation is not None and final:
                        return explanation
                    raise
                explanations[:] = [explanation]
                screen.show(explanation)
                final = bool(check_goal(explanation, goal))
                moved = moved or explanation != stale
                if final and moved:
                    return explanation
    except (NotFound, StopAsyncIteration):
        if goal != DELETED:
            raise
        return _make_final_explanation(explanation, await client.get_receipt(cluster), cluster)


def _make_final_explanation(
    last: Explanation | None, receipt: Receipt, cluster: str
) -> Explanation:
    """The last explanation of a deleted cluster, for when the stream ended before it was sent."""
    explanation = last or Explanation(cluster=cluster)
    return msgspec.structs.replace(explanation, gone=True, receipt=receipt)


def is_waiting_for_capacity(explanation: Explanation) -> bool:
    """Whether the order is blocked because something is used up: hub capacity, hosts, addresses."""
    if explanation.blocked_by == "placement":
        return True
    blocking = [step for step in explanation.steps if step.name == explanation.blocked_by]
    return any(step.reason in SCARCITY_REASONS for step in blocking)


def check_goal(explanation: Explanation, goal: str) -> bool | Unsuccessful:
    """Whether the goal is reached, or the error when waiting cannot reach it."""
    name = clean(explanation.name or explanation.cluster)
    if goal == DELETED:
        return explanation.gone
    if explanation.gone or explanation.state.startswith("DELET"):
        return Unsuccessful(f"cluster {name} is being deleted or gone")
    if explanation.state == goal.upper():
        return True
    if explanation.state == "HIBERNATED":
        return Unsuccessful(f"cluster {name} rests; wake it: boatyard resume cluster {name}")
    stuck_step = _find_stuck_step(explanation)
    if explanation.state != "FAILED" and (
        stuck_step is None or stuck_step.state is StepState.FAILED
    ):
        return False
    return _make_failure(name, explanation, stuck_step)


def _find_stuck_step(explanation: Explanation) -> Step | None:
    stuck_steps = [
        step
        for step in explanation.steps
        if step.state in (StepState.FAILED, StepState.QUARANTINED)
    ]
    blocking_steps = [step for step in stuck_steps if step.name == explanation.blocked_by]
    return next(iter(blocking_steps or stuck_steps), None)


def _make_failure(name: str, explanation: Explanation, stuck_step: Step | None) -> Unsuccessful:
    message = clean(
        stuck_step.message if stuck_step and stuck_step.message else explanation.summary
    )
    where = f" at {clean(stuck_step.name)}" if stuck_step else ""
    remedy = clean((stuck_step.remedy if stuck_step else "") or explanation.remedy)
    scarce = stuck_step is not None and any(word in stuck_step.reason for word in _CAPACITY_REASONS)
    advice = f" {remedy.rstrip('.')}." if remedy else ""
    return Unsuccessful(
        f"cluster {name} failed{where}: {message}{advice} "
        f"More: boatyard explain cluster {name}; again: boatyard retry cluster {name}",
        code=CAPACITY if scarce else FAILED,
    )

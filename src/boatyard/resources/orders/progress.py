"""The state of each step, computed from its items and from the attempts of this pass. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from boatyard.automation.port import RUN_FAILED
from boatyard.model.backoff import Backoff, share_of
from boatyard.model.generated.boatyard import Actor, Item, ItemState, Step, StepState
from boatyard.model.outcome import Waiting
from boatyard.resources.orders.attempts import Attempt, AttemptFailure, AttemptFault
from boatyard.resources.orders.item_graph import (
    CHANGED_COUNT_FACT,
    ITEM_KINDS,
    ROLE_STEPS,
    STEPS,
    TASK_COUNT_FACT,
    list_direct_dependencies,
)

QUARANTINE_AFTER_BUGS = 3
_BACKOFF = Backoff(first=1.0, longest=60.0)

STUCK_STATES = (StepState.FAILED, StepState.QUARANTINED)

_DEFAULT_REMEDY = "change the order so that it can be accepted, then retry"
_REMEDIES_BY_REASON: Mapping[str, str] = {
    "UpgradeFailed": "the cluster runs its old version: retry, or set the version back to it",
    RUN_FAILED: "read the whole story with `boatyard logs`, mend the cause, then retry",
}


def can_try_step(step: Step | None, now: datetime) -> bool:
    """Whether this step may be tried now. Failed and quarantined steps wait for a retry, others for `next_look`."""
    if step is None:
        return True
    if step.state in STUCK_STATES:
        return False
    return step.next_look is None or step.next_look <= now


def advance(
    old: Sequence[Step],
    *,
    items: Iterable[Item],
    attempts: Sequence[Attempt],
    deleting: bool,
    order_id: str,
    now: datetime,
) -> tuple[Step, ...]:
    """The state of every step after a pass, in the order of the plan."""
    old_steps = {step.name: step for step in old}
    by_step: dict[str, list[Item]] = {name: [] for name in STEPS}
    for item in items:
        by_step[item.step].append(item)
    attempts_by_step: dict[str, list[Attempt]] = {name: [] for name in STEPS}
    for attempt in attempts:
        if not (attempt.released and ITEM_KINDS[attempt.item.kind].leaves_nothing):
            attempts_by_step[attempt.item.step].append(attempt)
    step_names = [
        name for name in STEPS if name not in ROLE_STEPS or name in old_steps or by_step[name]
    ]
    return tuple(
        _advance_step(
            old_steps.get(name)
            or Step(
                name=name,
                needs=tuple(need for need in list_direct_dependencies(name) if need in step_names),
            ),
            items=by_step[name],
            attempts=attempts_by_step[name],
            deleting=deleting,
            order_id=order_id,
            now=now,
        )
        for name in step_names
    )


def reset(steps: Iterable[Step], now: datetime) -> tuple[Step, ...]:
    """Clears the tries and messages of every step; failed and quarantined steps are tried again at once."""
    return tuple(
        msgspec.structs.replace(
            step,
            state=StepState.RUNNING if step.state in STUCK_STATES else step.state,
            tries=0,
            bugs=0,
            next_look=None,
            reason="",
            message="",
            actor=Actor.UNSPECIFIED,
            remedy="",
            since=now if step.state in STUCK_STATES else step.since,
        )
        for step in steps
    )


def compute_retry_delay(order_id: str, step: str, tries: int) -> float:
    """Seconds until the next try: exponential, with a jitter derived from the order, so that not all return at once."""
    return _BACKOFF.pause(tries, share=share_of(f"{order_id}/{step}/{tries}"))


def _advance_step(
    old: Step,
    *,
    items: Sequence[Item],
    attempts: Sequence[Attempt],
    deleting: bool,
    order_id: str,
    now: datetime,
) -> Step:
    failures = [
        attempt.result for attempt in attempts if isinstance(attempt.result, AttemptFailure)
    ]
    waits = [attempt.result for attempt in attempts if isinstance(attempt.result, Waiting)]
    succeeded = len(attempts) > len(failures) + len(waits)
    finished = _is_finished(items, deleting=deleting)
    if not attempts and not finished:
        if old.state in (StepState.DONE, StepState.RELEASED, StepState.UNSPECIFIED):
            # Its items have changed since: the step is queued again.
            state = StepState.RELEASING if deleting else StepState.QUEUED
            return _with_state(old, state=state, items=items, now=now, next_look=None)
        return _with_state(old, state=old.state, items=items, now=now, keep_message=True)
    if failures:
        return _apply_failure(
            old, _find_worst_failure(failures), items=items, order_id=order_id, now=now
        )
    if finished:
        state = StepState.RELEASED if deleting else StepState.DONE
        return _with_state(old, state=state, items=items, now=now, next_look=None)
    if waits:
        first = min(waits, key=lambda wait: wait.look_again)
        return _with_state(
            old,
            state=StepState.WAITING,
            items=items,
            now=now,
            reason=first.reason,
            message=first.why,
            actor=Actor.NOBODY,
            # Looking at a running role is not another try.
            tries=0 if succeeded or old.name in ROLE_STEPS else old.tries + 1,
            next_look=now + timedelta(seconds=first.look_again),
        )
    state = StepState.RELEASING if deleting else StepState.RUNNING
    return _with_state(old, state=state, items=items, now=now, next_look=None)


def _is_finished(items: Sequence[Item], *, deleting: bool) -> bool:
    if deleting:
        return not items
    return all(item.state == ItemState.PRESENT and item.have == item.want for item in items)


def _find_worst_failure(failures: Sequence[AttemptFailure]) -> AttemptFailure:
    rank = {AttemptFault.REFUSED: 0, AttemptFault.BUG: 1, AttemptFault.UNAVAILABLE: 2}
    return min(failures, key=lambda failure: (rank[failure.fault], failure.message))


def _apply_failure(
    old: Step, failure: AttemptFailure, *, items: Sequence[Item], order_id: str, now: datetime
) -> Step:
    tries = old.tries + 1
    bugs = old.bugs + 1 if failure.fault is AttemptFault.BUG else 0
    state, actor, remedy = StepState.WAITING, Actor.NOBODY, ""
    if failure.fault is AttemptFault.REFUSED:
        state, actor = StepState.FAILED, Actor.TENANT
        remedy = _REMEDIES_BY_REASON.get(failure.reason, _DEFAULT_REMEDY)
    elif bugs >= QUARANTINE_AFTER_BUGS:
        state, actor = StepState.QUARANTINED, Actor.OPERATOR
        remedy = "look up the internal error in the log, mend the cause, then retry"
    elif failure.fault is AttemptFault.UNAVAILABLE:
        actor = Actor.OPERATOR
        remedy = "see why the service does not answer; it is tried again by itself"
    stuck = state in STUCK_STATES
    return _with_state(
        old,
        state=state,
        items=items,
        now=now,
        reason=failure.reason,
        message=failure.message,
        actor=actor,
        remedy=remedy,
        tries=tries,
        bugs=bugs,
        next_look=None
        if stuck
        else now + timedelta(seconds=compute_retry_delay(order_id, old.name, tries)),
    )


def _with_state(
    old: Step,
    *,
    state: StepState,
    items: Sequence[Item],
    now: datetime,
    reason: str = "",
    message: str = "",
    actor: Actor = Actor.UNSPECIFIED,
    remedy: str = "",
    tries: int = 0,
    bugs: int = 0,
    next_look: datetime | None = None,
    keep_message: bool = False,
) -> Step:
    detail = _detail(old.name, items)
    if keep_message:
        return msgspec.structs.replace(old, detail=detail)
    same = (old.state, old.reason) == (state, reason)
    finished = state in (StepState.DONE, StepState.RELEASED)
    started = state not in (StepState.UNSPECIFIED, StepState.QUEUED)
    restarted = old.state in (StepState.DONE, StepState.UNSPECIFIED, StepState.QUEUED) and not same
    return msgspec.structs.replace(
        old,
        state=state,
        since=old.since if same and old.since else now,
        tries=tries,
        bugs=bugs,
        reason=reason,
        message=message,
        actor=actor,
        remedy=remedy,
        next_look=next_look,
        detail=detail,
        started_at=(now if restarted or old.started_at is None else old.started_at)
        if started
        else None,
        finished_at=(old.finished_at if same else now) if finished else None,
    )


def _detail(step: str, items: Sequence[Item]) -> str:
    """What the step has created, in words a tenant may read: counts and the tenant's own addresses."""
    facts = {item.kind: item.facts for item in items if item.state == ItemState.PRESENT}
    if step in _COUNTED:
        kind, noun = _COUNTED[step]
        counted = [item for item in items if item.kind == kind]
        done = sum(item.state == ItemState.PRESENT for item in counted)
        return f"{done}/{len(counted)} {noun}" if counted else ""
    if step in ROLE_STEPS:
        return " · ".join(
            _format_task_counts(run_facts)
            for run_facts in facts.values()
            if TASK_COUNT_FACT in run_facts
        )
    parts = [
        label + facts[kind][fact]
        for kind, fact, label in _SHOWN_FACTS.get(step, ())
        if fact in facts.get(kind, {})
    ]
    return " · ".join(parts)


def _format_task_counts(facts: Mapping[str, str]) -> str:
    """The task counts of a run: `12 tasks, 3 changed`."""
    tasks, changed = facts[TASK_COUNT_FACT], facts.get(CHANGED_COUNT_FACT, "0")
    noun = "task" if tasks == "1" else "tasks"
    return f"{tasks} {noun}, {'nothing' if changed == '0' else changed} changed"


_COUNTED: Mapping[str, tuple[str, str]] = {
    "hosts": ("host", "hosts"),
    "install": ("node", "nodes"),
    "validate": ("check", "checks"),
}
_SHOWN_FACTS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "network": (("l3", "cidr", ""),),
    "addresses": (("api-address", "address", "api "), ("ingress-address", "address", "ingress ")),
    "names": (("api-name", "name", ""),),
}

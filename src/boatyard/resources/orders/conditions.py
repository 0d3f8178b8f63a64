"""The conditions of an order, with their transition times. Pure; called by the order's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from boatyard.model.conditions import with_transition_time
from boatyard.model.generated.boatyard import (
    Order,
    OrderCondition,
    OrderPhase,
    OrderStatus,
    Step,
    StepState,
)
from boatyard.platforms.port import ObservedCluster
from boatyard.resources.orders import progress

_INFRASTRUCTURE_STEPS = ("hosts", "network", "addresses", "names")
_HIBERNATED_MESSAGE = "the cluster rests; resume it to use it"


def with_conditions(
    order: Order, status: OrderStatus, *, observation: ObservedCluster | None, now: datetime
) -> OrderStatus:
    old = {condition.type: condition for condition in order.status.conditions}
    conditions = tuple(
        with_transition_time(
            OrderCondition(type=name, status=value, reason=reason, message=message),
            order.status.conditions,
            now,
        )
        for name, value, reason, message in _evaluate_conditions(status, observation, old)
    )
    return msgspec.structs.replace(status, conditions=conditions)


def _evaluate_conditions(
    status: OrderStatus, observation: ObservedCluster | None, old: Mapping[str, OrderCondition]
) -> Iterable[tuple[str, bool, str, str]]:
    phase = status.phase
    steps = {step.name: step for step in status.steps}
    blocking = next((step for step in status.steps if step.state in progress.STUCK_STATES), None)
    current = blocking or next(
        (s for s in status.steps if s.state not in (StepState.DONE, StepState.RELEASED)), None
    )
    step_text = f"at step {current.name}" if current else ""

    infrastructure = all(_is_done(steps.get(name)) for name in _INFRASTRUCTURE_STEPS)
    yield (
        "InfrastructureReady",
        infrastructure,
        "InfrastructureReady" if infrastructure else "InfrastructurePending",
        "" if infrastructure else step_text,
    )
    resting = phase == OrderPhase.RESTING
    previous = old.get("ClusterAvailable")
    available = (
        observation.available
        if observation
        else bool(previous and previous.status and phase != OrderPhase.DELETED)
    )
    false_reason = "Hibernated" if resting else "ClusterNotAvailable"
    yield (
        "ClusterAvailable",
        available,
        "ClusterAvailable" if available else false_reason,
        ""
        if available
        else _HIBERNATED_MESSAGE
        if resting
        else observation.message
        if observation
        else "",
    )
    previous = old.get("NodesReady")
    nodes = (
        bool(observation.nodes) and all(node.ready for node in observation.nodes)
        if observation
        else bool(previous and previous.status and phase in (OrderPhase.READY, OrderPhase.DEGRADED))
    )
    false_reason = "Hibernated" if resting else "NodesNotReady"
    yield "NodesReady", nodes, "NodesReady" if nodes else false_reason, ""
    applied = _is_done(steps.get("validate"))
    yield "TemplateApplied", applied, "Validated" if applied else "NotValidated", ""
    yield (
        "Progressing",
        phase in (OrderPhase.PROGRESSING, OrderPhase.DELETING),
        phase.name.capitalize(),
        step_text if phase in (OrderPhase.PROGRESSING, OrderPhase.DELETING) else "",
    )
    ready = phase == OrderPhase.READY
    false_reason = "Hibernated" if resting else "NotReady"
    yield "Ready", ready, "Ready" if ready else false_reason, "" if ready or resting else step_text
    failed = phase == OrderPhase.FAILED
    yield (
        "Failed",
        failed,
        blocking.reason if failed and blocking else "NotFailed",
        blocking.message if failed and blocking else "",
    )
    degraded = phase == OrderPhase.DEGRADED
    yield (
        "Degraded",
        degraded,
        "Degraded" if degraded else "NotDegraded",
        (observation.message if observation else "") if degraded else "",
    )


def _is_done(step: Step | None) -> bool:
    return step is not None and step.state == StepState.DONE

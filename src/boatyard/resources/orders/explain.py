"""Says in words where a cluster's order is, what blocks it, and who can act. Pure; called by the API."""

from __future__ import annotations

from datetime import datetime

import msgspec

from boatyard.model.generated.boatyard import (
    Actor,
    Explanation,
    HubReason,
    Order,
    Receipt,
    ReceiptLine,
    Step,
    StepState,
)
from boatyard.model.generated.osac import (
    Cluster,
    ClusterConditionType,
    ClusterState,
    ConditionStatus,
)
from boatyard.model.reasons import PLACEMENT_REASONS, SCARCITY_REASONS
from boatyard.resources.orders.item_graph import ROLE_STEPS
from boatyard.resources.orders.progress import STUCK_STATES
from boatyard.resources.orders.redaction import redact_for_tenants

_SERVICES = {
    "hosts": "the inventory",
    "network": "the network service",
    "addresses": "the address service",
    "names": "the name service",
    "install": "the cluster platform",
    "validate": "a check",
    **dict.fromkeys(ROLE_STEPS, "what runs the template"),
}
# Items whose outside names tenants may know; all others are shown by their key in the order.
_TENANT_VISIBLE_KINDS = ("l3", "api-address", "ingress-address", "api-name", "ingress-name")


def explain(cluster: Cluster, order: Order | None, *, now: datetime, operator: bool) -> Explanation:
    """Explains the state of one cluster. Without `operator`, nothing about hubs, hosts or other tenants is in it."""
    steps = order.status.steps if order else ()
    visible_steps = steps if operator or not order else tuple(_redact_step(s, order) for s in steps)
    blocking = _find_blocking_step(visible_steps)
    placement = cluster.status.placement
    explanation = Explanation(
        cluster=cluster.id,
        name=cluster.metadata.name,
        state=_shown_state(cluster).name,
        template=cluster.spec.template.name or cluster.spec.template.id,
        steps=visible_steps,
        started_at=(order.status.started_at if order else None)
        or cluster.metadata.creation_timestamp,
        placement=_format_placement(cluster, operator=operator),
        summary=_summary(cluster, order, blocking),
    )
    if operator:
        explanation = msgspec.structs.replace(
            explanation,
            hub=cluster.status.hub,
            hubs=tuple(
                HubReason(
                    hub=candidate.hub,
                    fits=candidate.fits,
                    score=candidate.score,
                    reason=candidate.reason,
                )
                for candidate in placement.candidates
            ),
        )
    if order is not None:
        explanation = msgspec.structs.replace(
            explanation, receipt=redact_receipt(order.status.receipt, operator=operator)
        )
    if blocking is not None:
        return msgspec.structs.replace(
            explanation,
            blocked_by=blocking.name,
            since=blocking.since,
            tries=blocking.tries,
            next_look=blocking.next_look,
            actor=blocking.actor,
            remedy=blocking.remedy,
        )
    waiting_since = _waiting_for_capacity_since(cluster)
    if waiting_since is not None:
        return msgspec.structs.replace(
            explanation,
            blocked_by="placement",
            since=waiting_since,
            actor=Actor.OPERATOR,
            remedy="wait, ask for less or elsewhere, or have the provider add capacity",
        )
    return explanation


def _shown_state(cluster: Cluster) -> ClusterState:
    """The state with regard to the current spec: a change not yet reconciled is never shown as done."""
    state = cluster.status.state
    if cluster.metadata.deletion_timestamp is not None:
        return ClusterState.DELETING
    unseen = cluster.metadata.generation != cluster.status.observed_generation
    steady = (ClusterState.READY, ClusterState.DEGRADED, ClusterState.HIBERNATED)
    if unseen and state in steady:
        return ClusterState.PROGRESSING
    return state


def redact_receipt(receipt: Receipt, *, operator: bool) -> Receipt:
    """The receipt as the caller may read it: names of hosts and VLAN numbers are for operators only."""
    if operator:
        return receipt
    return msgspec.structs.replace(
        receipt,
        gone=tuple(_redact_receipt_line(line) for line in receipt.gone),
        left=tuple(_redact_receipt_line(line) for line in receipt.left),
    )


def _redact_receipt_line(line: ReceiptLine) -> ReceiptLine:
    if line.kind in _TENANT_VISIBLE_KINDS:
        return line
    return msgspec.structs.replace(line, name=line.key.rpartition("/")[2])


def _find_blocking_step(steps: tuple[Step, ...]) -> Step | None:
    """The step that blocks the order: a stuck one before a waiting one, the earliest of the plan first."""
    for states in (STUCK_STATES, (StepState.WAITING,)):
        for step in steps:
            if step.state in states:
                return step
    return None


def _waiting_for_capacity_since(cluster: Cluster) -> datetime | None:
    """Since when the cluster waits for capacity, or None."""
    for condition in cluster.status.conditions:
        if (
            condition.type == ClusterConditionType.PROGRESSING
            and condition.status == ConditionStatus.FALSE
            and condition.reason in PLACEMENT_REASONS
        ):
            return condition.last_transition_time
    return None


def _summary(cluster: Cluster, order: Order | None, blocking: Step | None) -> str:
    state = _shown_state(cluster).name.lower().replace("_", " ")
    if blocking is not None:
        return f"{state}: {blocking.name}: {blocking.message}"
    if order is None:
        waiting = next(
            (c.message for c in cluster.status.conditions if c.status == ConditionStatus.FALSE), ""
        )
        return f"{state}: {waiting}" if waiting else f"{state}: waiting to be placed"
    current = next(
        (
            step.name
            for step in order.status.steps
            if step.state not in (StepState.DONE, StepState.RELEASED)
        ),
        "",
    )
    return f"{state}: at step {current}" if current else state


def _format_placement(cluster: Cluster, *, operator: bool) -> str:
    placement = cluster.status.placement
    if not cluster.status.hub:
        return "not placed yet"
    if operator:
        return f"on hub {cluster.status.hub}: {placement.reason}"
    return "placed on the emptiest hub where it fits"


def _redact_step(step: Step, order: Order) -> Step:
    """The step as tenants may read it: a failing back-end is named by its purpose, its own message is left out."""
    if step.state != StepState.WAITING or step.actor != Actor.OPERATOR:
        return msgspec.structs.replace(step, message=redact_for_tenants(step.message, order))
    if step.reason in SCARCITY_REASONS:
        return step
    service = _SERVICES.get(step.name, "a service")
    return msgspec.structs.replace(
        step,
        message=f"{service} does not answer; it is tried again by itself",
        remedy="nothing; the provider can see the cause",
    )

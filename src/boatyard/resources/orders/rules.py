"""Computes an order's status from the results of a pass: phase, conditions, facts, next look. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from boatyard.model.backoff import share_of
from boatyard.model.generated.boatyard import (
    Actor,
    Credentials,
    Item,
    ItemState,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
    Order,
    OrderPhase,
    OrderStatus,
    StepState,
)
from boatyard.model.generated.osac import Metadata
from boatyard.model.outcome import Done
from boatyard.platforms.port import ClusterAccess, ObservedCluster, RestMode
from boatyard.resources.orders import hibernation, plan, progress
from boatyard.resources.orders.attempts import Attempt
from boatyard.resources.orders.conditions import with_conditions
from boatyard.resources.orders.item_graph import RENEWAL_TIME_FACT, ROLE_FACT_PREFIX
from boatyard.resources.orders.receipts import with_receipt

STEADY_INTERVAL_SECONDS = 60.0  # seconds between looks at a finished cluster
SETTLING_INTERVAL_SECONDS = (
    5.0  # all items are present, and the platform has not reported the cluster ready yet
)
STUCK_INTERVAL_SECONDS = (
    300.0  # a failed order is reconciled now and then, so that it always has a due time
)
_FINAL_PHASES = (OrderPhase.READY, OrderPhase.RESTING, OrderPhase.DELETED)


@dataclass(frozen=True)
class OrderUpdate:
    """The new status, when the order is due again, and the items whose claims are to be freed."""

    status: OrderStatus
    look_again: datetime | None
    freed_keys: tuple[str, ...] = ()  # item keys


def make_planned_status(order: Order, items: tuple[Item, ...], now: datetime) -> OrderStatus:
    """The status right after planning, before any item was tried."""
    deleting = order.metadata.deletion_timestamp is not None
    # Results of the old plan are dropped: a waiting step without a message would look like the blocking one.
    final_states = (StepState.DONE, StepState.RELEASED)
    steps = progress.advance(
        [step for step in order.status.steps if step.state in final_states],
        items=items,
        attempts=(),
        deleting=deleting,
        order_id=order.id,
        now=now,
    )
    status = msgspec.structs.replace(
        order.status,
        items=items,
        steps=steps,
        observed_generation=order.spec.generation,
        next_slots=plan.next_slots(order, items),
        started_at=now,
        finished_at=None,
        phase=OrderPhase.DELETING if deleting else OrderPhase.PROGRESSING,
        rest=plan.get_desired_rest(order),
        resting_since=None,
    )
    return with_conditions(order, status, observation=None, now=now)


def apply_attempt(item: Item, attempt: Attempt) -> Item | None:
    """The item after an attempt; None once its release is confirmed."""
    if not isinstance(attempt.result, Done):
        return item
    if attempt.released:
        return None
    return msgspec.structs.replace(
        item,
        state=ItemState.PRESENT,
        have=item.want,
        facts={**item.facts, **attempt.result.facts},
    )


def absorb(
    order: Order,
    *,
    items: tuple[Item, ...],
    attempts: Sequence[Attempt],
    observation: ObservedCluster | None,
    access: ClusterAccess | None,
    unfinished: bool,
    now: datetime,
) -> OrderUpdate:
    """The order's status after a pass. `unfinished`: more could have been done, so the order is due at once."""
    deleting = order.metadata.deletion_timestamp is not None
    if not deleting:
        items = hibernation.request_rest_correction(order, items, observation)
    steps = progress.advance(
        order.status.steps,
        items=items,
        attempts=attempts,
        deleting=deleting,
        order_id=order.id,
        now=now,
    )
    status = msgspec.structs.replace(order.status, items=items, steps=steps)
    if observation is not None:
        status = _with_observation(order, status, observation)
    if access is not None:
        status = msgspec.structs.replace(
            status,
            credentials=Credentials(
                kubeconfig=access.kubeconfig,
                username=access.username,
                password=access.password,
                simulated=access.simulated,
            ),
            facts={
                **{name: text for name, text in status.facts.items() if name != RENEWAL_TIME_FACT},
                "api_url": access.api_url,
                "console_url": access.console_url,
                **({RENEWAL_TIME_FACT: access.ask_again} if access.ask_again else {}),
            },
        )
    phase = _phase(order, status, observation, deleting=deleting)
    if phase in _FINAL_PHASES and status.finished_at is None:
        status = msgspec.structs.replace(status, finished_at=now)
    status = msgspec.structs.replace(
        status,
        phase=phase,
        facts=_facts(status),
        resting_since=hibernation.get_hibernating_since(order, phase, now),
        restored=_get_last_restore_request(order, status),
    )
    status = with_conditions(order, status, observation=observation, now=now)
    if deleting:
        finished = phase == OrderPhase.DELETED
        status = with_receipt(order, status, remaining_items=(), finished=finished, now=now)
    remaining = {item.key for item in items}
    freed = tuple(item.key for item in order.status.items if item.key not in remaining)
    return OrderUpdate(
        status=status,
        look_again=_next_look(order, status, unfinished=unfinished, now=now),
        freed_keys=freed,
    )


def abandon(order: Order, items: tuple[Item, ...], now: datetime) -> tuple[OrderStatus, Leftover]:
    """Ends a deletion that ran out of time: unreleased items go into a Leftover, which keeps their claims."""
    leftover = Leftover(
        id=order.id,
        metadata=Metadata(
            name=order.metadata.name,
            tenant=order.metadata.tenant,
            project=order.metadata.project,
            creator=order.metadata.creator,
            creation_timestamp=now,
        ),
        spec=LeftoverSpec(order=order.id, cluster_name=order.spec.cluster_name, hub=order.spec.hub),
        status=LeftoverStatus(
            items=items,
            steps=order.status.steps,
            next_look=now,
            message="not released within the time a deletion may take",
        ),
    )
    status = msgspec.structs.replace(
        order.status, items=(), phase=OrderPhase.DELETED, finished_at=now
    )
    status = with_receipt(order, status, remaining_items=items, finished=True, now=now)
    return with_conditions(order, status, observation=None, now=now), leftover


def quarantine(order: Order, now: datetime) -> OrderUpdate:
    """Quarantines an order during whose passes workers died again and again.

    Every unfinished step is quarantined, also those not begun: nobody knows which one killed the worker.
    """
    steps = tuple(
        msgspec.structs.replace(
            step,
            state=StepState.QUARANTINED,
            reason="WorkerDied",
            message="the worker died several times while working on this step",
            actor=Actor.OPERATOR,
            remedy="look up the end of the worker in its log, mend the cause, then retry",
            since=now,
            next_look=None,
        )
        if step.state not in (StepState.DONE, StepState.RELEASED, StepState.QUARANTINED)
        else step
        for step in order.status.steps
    )
    status = msgspec.structs.replace(order.status, steps=steps)
    deleting = order.metadata.deletion_timestamp is not None
    phase = _phase(order, status, None, deleting=deleting)
    status = msgspec.structs.replace(status, phase=phase)
    status = with_conditions(order, status, observation=None, now=now)
    look_again = _next_look(order, status, unfinished=False, now=now)
    return OrderUpdate(status=status, look_again=look_again)


def retry(order: Order, now: datetime, *, retry_count: int | None = None) -> Order:
    """Returns the order with every step ready for another try. `retry_count`: retries requested so far."""
    stuck = {step.name for step in order.status.steps if step.state in progress.STUCK_STATES}
    status = msgspec.structs.replace(
        order.status,
        items=plan.start_new_run_attempts(order.status.items, stuck),
        steps=progress.reset(order.status.steps, now),
        retried=order.status.retried + 1 if retry_count is None else retry_count,
        phase=OrderPhase.PROGRESSING
        if order.status.phase == OrderPhase.FAILED
        else order.status.phase,
    )
    return msgspec.structs.replace(order, status=status)


def select_cluster_fields(status: OrderStatus) -> tuple[object, ...]:
    """The part of the status that the cluster shows. While it is unchanged, the cluster need not be reconciled."""
    return (
        status.phase,
        status.conditions,
        status.nodes,
        status.ready_nodes,
        status.facts,
        status.observed_generation,
        status.version,
        status.rest,
        status.restored,
    )


def _phase(
    order: Order, status: OrderStatus, observation: ObservedCluster | None, *, deleting: bool
) -> OrderPhase:
    if deleting:
        return OrderPhase.DELETED if not status.items else OrderPhase.DELETING
    if any(step.state in progress.STUCK_STATES for step in status.steps):
        return OrderPhase.FAILED
    if not plan.is_settled(status.items):
        # A frozen cluster that we stop counts as hibernated all the while.
        resting_before = order.status.phase == OrderPhase.RESTING
        return OrderPhase.RESTING if resting_before else OrderPhase.PROGRESSING
    if observation is None:
        return order.status.phase
    at_rest = hibernation.get_hibernation_phase(order, observation)
    if at_rest is not None:
        return at_rest
    if not status.credentials.kubeconfig:
        return OrderPhase.PROGRESSING  # ready means that somebody can use it
    return OrderPhase.READY if _is_healthy(order, observation) else OrderPhase.DEGRADED


def _with_observation(
    order: Order, status: OrderStatus, observation: ObservedCluster
) -> OrderStatus:
    """The status with the reported nodes and version. A hibernated cluster keeps its nodes; none is ready."""
    version = observation.version or order.status.version
    if observation.exists and observation.rest != RestMode.AWAKE:
        return msgspec.structs.replace(status, version=version, ready_nodes={})
    return msgspec.structs.replace(
        status,
        version=version,
        nodes=_count_nodes(observation, ready=False),
        ready_nodes=_count_nodes(observation, ready=True),
    )


def _get_last_restore_request(order: Order, status: OrderStatus) -> str:
    """The request id of the last restore that was carried out."""
    done = any(item.kind == "cluster" and plan.is_settled([item]) for item in status.items)
    if done and status.observed_generation == order.spec.generation:
        return order.spec.restore.request or status.restored
    return status.restored


def _is_healthy(order: Order, observation: ObservedCluster) -> bool:
    ready = _count_nodes(observation, ready=True)
    return (
        observation.exists
        and observation.available
        and not observation.degraded
        and all(
            ready.get(name, 0) >= node_set.size for name, node_set in order.spec.node_sets.items()
        )
    )


def _count_nodes(observation: ObservedCluster, *, ready: bool) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in observation.nodes:
        if node.ready or not ready:
            counts[node.node_set] = counts.get(node.node_set, 0) + 1
    return counts


def _facts(status: OrderStatus) -> Mapping[str, str]:
    facts_by_kind = {
        item.kind: item.facts for item in status.items if item.state == ItemState.PRESENT
    }
    order_facts = dict(status.facts)
    for kind, fact, name in (
        ("api-address", "address", "api_endpoint"),
        ("ingress-address", "address", "ingress_endpoint"),
    ):
        if fact in facts_by_kind.get(kind, {}):
            order_facts[name] = facts_by_kind[kind][fact]
    for item in status.items:
        order_facts |= {
            name: text for name, text in item.facts.items() if name.startswith(ROLE_FACT_PREFIX)
        }
    return order_facts


def _next_look(
    order: Order, status: OrderStatus, *, unfinished: bool, now: datetime
) -> datetime | None:
    if status.phase == OrderPhase.DELETED:
        return None
    if unfinished:
        return now
    # All ready items have been tried: the next to move is a step that named its next look.
    looks = [
        step.next_look
        for step in status.steps
        if step.next_look is not None and step.state not in progress.STUCK_STATES
    ]
    if not looks:
        looks = [now + timedelta(seconds=_get_default_interval(order, status))]
    if status.phase == OrderPhase.DELETING and order.spec.delete_by is not None:
        looks.append(max(now, order.spec.delete_by))
    return min(looks)


def _get_default_interval(order: Order, status: OrderStatus) -> float:
    """Seconds until the next pass when no step has named a time."""
    if any(step.state in progress.STUCK_STATES for step in status.steps):
        return STUCK_INTERVAL_SECONDS
    if status.phase == OrderPhase.PROGRESSING:
        return SETTLING_INTERVAL_SECONDS
    return STEADY_INTERVAL_SECONDS * (0.9 + 0.2 * share_of(order.id))

"""Hibernated clusters: what the platform is asked for, and when a frozen one is stopped. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from boatyard.model.generated.boatyard import Item, Order, OrderPhase, OrderStatus, StepState
from boatyard.model.generated.osac import ClusterRest
from boatyard.platforms.port import ObservedCluster, RestMode
from boatyard.resources.orders import plan, progress

LONGEST_FREEZE = timedelta(
    hours=1
)  # in a frozen cluster, leases, heartbeats and certificates expire

_PLATFORM_RESTS: Mapping[ClusterRest, RestMode] = {
    ClusterRest.AWAKE: RestMode.AWAKE,
    ClusterRest.FROZEN: RestMode.FROZEN,
    ClusterRest.STOPPED: RestMode.STOPPED,
}


def get_platform_rest(order: Order) -> RestMode:
    return _PLATFORM_RESTS[plan.get_desired_rest(order)]


def should_stop(order: Order, freeze_for: timedelta, now: datetime) -> bool:
    """Whether a cluster has been frozen for so long that it must be stopped."""
    since = order.status.resting_since
    return (
        order.status.phase == OrderPhase.RESTING
        and plan.get_desired_rest(order) == ClusterRest.FROZEN
        and since is not None
        and now >= since + freeze_for
    )


def plan_stop(order: Order, now: datetime) -> OrderStatus:
    """The order's status when a frozen cluster is to be stopped. Its owner still sees it as hibernated."""
    status = msgspec.structs.replace(order.status, rest=ClusterRest.STOPPED)
    items = plan.replan(msgspec.structs.replace(order, status=status), {}, ())
    steps = progress.advance(
        [step for step in status.steps if step.state == StepState.DONE],
        items=items,
        attempts=(),
        deleting=False,
        order_id=order.id,
        now=now,
    )
    return msgspec.structs.replace(status, items=items, steps=steps)


def get_hibernation_phase(order: Order, observation: ObservedCluster) -> OrderPhase | None:
    """The phase of a settled order as far as hibernation decides it; None when the cluster is awake as desired."""
    if not observation.exists:
        return None
    if observation.rest != get_platform_rest(order):
        return OrderPhase.PROGRESSING
    return None if observation.rest == RestMode.AWAKE else OrderPhase.RESTING


def request_rest_correction(
    order: Order, items: tuple[Item, ...], observation: ObservedCluster | None
) -> tuple[Item, ...]:
    """Returns the items, with the cluster to be ensured again if somebody else put it to sleep or woke it."""
    if (
        observation is None
        or not observation.exists
        or observation.rest == get_platform_rest(order)
    ):
        return items
    if not plan.is_settled(items):
        return items
    return tuple(
        msgspec.structs.replace(item, have="") if item.kind == "cluster" else item for item in items
    )


def get_hibernating_since(order: Order, phase: OrderPhase, now: datetime) -> datetime | None:
    """Since when the cluster hibernates; None while it should be awake."""
    if plan.get_desired_rest(order) == ClusterRest.AWAKE:
        return None
    return order.status.resting_since or (now if phase == OrderPhase.RESTING else None)

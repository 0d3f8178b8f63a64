"""What a role may ask of its order while it decides what is done, and what it is told. Pure; called by the API."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from boatyard.model.caller import OrderRun
from boatyard.model.generated.boatyard import (
    ItemState,
    Order,
    RoleRun,
    RoleRunNode,
    RoleRunStep,
    Step,
    StepState,
)
from boatyard.orderbook.port import ASKED, asked_steps
from boatyard.resources.orders.progress import STUCK
from boatyard.resources.orders.road import ATTEMPT, KINDS, ROLE_STEPS, STEPS, step_needs
from boatyard.resources.orders.told import told_order
from boatyard.resources.orders.words import for_tenants

# What a role says, and the step of the road that it is.
STEP_OF: Mapping[str, str] = {
    "hosts": "hosts",
    "network": "network",
    "addresses": "addresses",
    "names": "names",
    "platform": "install",
}
_WORD_OF = {step: word for word, step in STEP_OF.items()}


def is_under_way(order: Order, run: OrderRun) -> bool:
    """Whether this attempt of the run may still be going on, so that its token is good.

    Not once the order is being deleted, the item is confirmed or leaving, another attempt has taken its place,
    or the run has failed.
    """
    if order.id != run.order or order.metadata.deletion_timestamp is not None:
        return False
    item = next((one for one in order.status.items if one.key == run.item), None)
    if item is None or item.state != ItemState.PLANNED or not KINDS[item.kind].phase:
        return False
    failed = any(
        step.name == item.step and step.state == StepState.FAILED for step in order.status.steps
    )
    return not failed and item.facts.get(ATTEMPT) == str(run.attempt)


def needed_steps(step: str) -> tuple[str, ...]:
    """The step and all it stands on, in the order of the road: what is asked for with it.

    Parts of the role are left out: they are run whenever they are due.
    """
    return tuple(name for name in _road_to(step) if name not in ROLE_STEPS)


def _road_to(step: str) -> tuple[str, ...]:
    found = {step}
    ahead = [step]
    while ahead:
        for need in step_needs(ahead.pop()):
            if need not in found:
                found.add(need)
                ahead.append(need)
    return tuple(name for name in STEPS if name in found)


def asked_for(order: Order, word: str) -> tuple[Order, tuple[str, ...]]:
    """The order with the step and what it needs asked for, and which of these nobody had asked for before."""
    before = asked_steps(order)
    new = tuple(step for step in needed_steps(STEP_OF[word]) if step not in before)
    if not new:
        return order, ()
    steps = [step for step in STEPS if step in before or step in new]
    annotations = {**order.metadata.annotations, ASKED: ",".join(steps)}
    metadata = msgspec.structs.replace(order.metadata, annotations=annotations)
    return msgspec.structs.replace(order, metadata=metadata), tuple(
        _WORD_OF.get(step, step) for step in new
    )


def told_run(order: Order, *, kubeconfig: bool = False) -> RoleRun:
    """How far each step is, in the words that tenants read, and what is there so far.

    The kubeconfig is among it where it is asked for, and once the platform has come to its end.
    """
    told = told_order(order, {item.key: item for item in order.status.items})
    by_name = {step.name: step for step in order.status.steps}
    steps = tuple(_told_step(order, by_name, word) for word in STEP_OF)
    install = by_name.get(STEP_OF["platform"])
    there = install is not None and install.state == StepState.DONE
    credentials = order.status.credentials
    has_kubeconfig = there and bool(credentials.kubeconfig)
    return RoleRun(
        order=order.id,
        steps=steps,
        nodes=tuple(RoleRunNode(**node) for node in told["nodes"]),
        cidr=told["network"]["cidr"],
        gateway=told["network"]["gateway"],
        api_address=told["api_address"],
        ingress_address=told["ingress_address"],
        api_name=told["api_name"],
        ingress_name=told["ingress_name"],
        api_url=told["api_url"],
        kubeconfig=credentials.kubeconfig if kubeconfig and has_kubeconfig else "",
        simulated=credentials.simulated,
        has_kubeconfig=has_kubeconfig,
    )


def _told_step(order: Order, steps: Mapping[str, Step], word: str) -> RoleRunStep:
    name = STEP_OF[word]
    asked = name in asked_steps(order)
    # In a plan that is not made yet, nothing is.
    step = steps.get(name, Step(name=name, state=StepState.QUEUED))
    stuck = [one for need in _road_to(name) if (one := steps.get(need)) and one.state in STUCK]
    return RoleRunStep(
        name=word,
        asked=asked,
        state=step.state,
        reason=step.reason,
        message=for_tenants(step.message, order),
        remedy=step.remedy,
        detail=step.detail,
        blocked=_words(order, stuck[0]) if stuck else "",
    )


def _words(order: Order, step: Step) -> str:
    message = for_tenants(step.message, order)
    return f"{_WORD_OF.get(step.name, step.name)}: {message or step.reason or step.state.name}"

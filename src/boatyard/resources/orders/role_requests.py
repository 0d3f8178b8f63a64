"""The steps that a running role may request of its order, and the state it may read. Pure; called by the API."""

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
from boatyard.orderbook.port import REQUESTED_STEPS_ANNOTATION, list_requested_steps
from boatyard.resources.orders.item_graph import (
    ATTEMPT_FACT,
    ITEM_KINDS,
    ROLE_STEPS,
    STEPS,
    list_direct_dependencies,
)
from boatyard.resources.orders.progress import STUCK_STATES
from boatyard.resources.orders.redaction import redact_for_tenants
from boatyard.resources.orders.role_context import build_role_context

# The word that a role uses, and the step it means.
STEPS_BY_REQUEST_NAME: Mapping[str, str] = {
    "hosts": "hosts",
    "network": "network",
    "addresses": "addresses",
    "names": "names",
    "platform": "install",
}
_REQUEST_NAMES_BY_STEP = {step: word for word, step in STEPS_BY_REQUEST_NAME.items()}


def is_run_active(order: Order, run: OrderRun) -> bool:
    """Whether this attempt of the run may still be running, so that its token is valid.

    It is not once the order is being deleted, the item is confirmed or leaving, another attempt has replaced it,
    or the run has failed.
    """
    if order.id != run.order or order.metadata.deletion_timestamp is not None:
        return False
    item = next((item for item in order.status.items if item.key == run.item), None)
    if item is None or item.state != ItemState.PLANNED or not ITEM_KINDS[item.kind].phase:
        return False
    failed = any(
        step.name == item.step and step.state == StepState.FAILED for step in order.status.steps
    )
    return not failed and item.facts.get(ATTEMPT_FACT) == str(run.attempt)


def needed_steps(step: str) -> tuple[str, ...]:
    """The step and all steps it depends on, in the order of the plan: they are requested together.

    Parts of the role are left out: they run whenever they are due.
    """
    return tuple(name for name in _collect_dependencies(step) if name not in ROLE_STEPS)


def _collect_dependencies(step: str) -> tuple[str, ...]:
    steps = {step}
    unvisited = [step]
    while unvisited:
        for need in list_direct_dependencies(unvisited.pop()):
            if need not in steps:
                steps.add(need)
                unvisited.append(need)
    return tuple(name for name in STEPS if name in steps)


def request_step(order: Order, word: str) -> tuple[Order, tuple[str, ...]]:
    """Returns the order with the step and its dependencies requested, and which of these are newly requested."""
    requested_steps = list_requested_steps(order)
    new_steps = tuple(
        step for step in needed_steps(STEPS_BY_REQUEST_NAME[word]) if step not in requested_steps
    )
    if not new_steps:
        return order, ()
    steps = [step for step in STEPS if step in requested_steps or step in new_steps]
    annotations = {**order.metadata.annotations, REQUESTED_STEPS_ANNOTATION: ",".join(steps)}
    metadata = msgspec.structs.replace(order.metadata, annotations=annotations)
    return msgspec.structs.replace(order, metadata=metadata), tuple(
        _REQUEST_NAMES_BY_STEP.get(step, step) for step in new_steps
    )


def to_role_run(order: Order, *, kubeconfig: bool = False) -> RoleRun:
    """The state of each step, in words that tenants may read, and the facts known so far.

    The kubeconfig is included when `kubeconfig` is set and the install step is done.
    """
    context = build_role_context(order, {item.key: item for item in order.status.items})
    steps_by_name = {step.name: step for step in order.status.steps}
    steps = tuple(_to_role_run_step(order, steps_by_name, word) for word in STEPS_BY_REQUEST_NAME)
    install = steps_by_name.get(STEPS_BY_REQUEST_NAME["platform"])
    installed = install is not None and install.state == StepState.DONE
    credentials = order.status.credentials
    has_kubeconfig = installed and bool(credentials.kubeconfig)
    return RoleRun(
        order=order.id,
        steps=steps,
        nodes=tuple(RoleRunNode(**node) for node in context["nodes"]),
        cidr=context["network"]["cidr"],
        gateway=context["network"]["gateway"],
        api_address=context["api_address"],
        ingress_address=context["ingress_address"],
        api_name=context["api_name"],
        ingress_name=context["ingress_name"],
        api_url=context["api_url"],
        kubeconfig=credentials.kubeconfig if kubeconfig and has_kubeconfig else "",
        simulated=credentials.simulated,
        has_kubeconfig=has_kubeconfig,
    )


def _to_role_run_step(order: Order, steps: Mapping[str, Step], word: str) -> RoleRunStep:
    name = STEPS_BY_REQUEST_NAME[word]
    requested = name in list_requested_steps(order)
    # Before the order is planned, no step is recorded.
    step = steps.get(name, Step(name=name, state=StepState.QUEUED))
    stuck = [
        needed_step
        for need in _collect_dependencies(name)
        if (needed_step := steps.get(need)) and needed_step.state in STUCK_STATES
    ]
    return RoleRunStep(
        name=word,
        asked=requested,
        state=step.state,
        reason=step.reason,
        message=redact_for_tenants(step.message, order),
        remedy=step.remedy,
        detail=step.detail,
        blocked=_format_blocking_step(order, stuck[0]) if stuck else "",
    )


def _format_blocking_step(order: Order, step: Step) -> str:
    message = redact_for_tenants(step.message, order)
    return f"{_REQUEST_NAMES_BY_STEP.get(step.name, step.name)}: {message or step.reason or step.state.name}"

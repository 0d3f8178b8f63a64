"""Runs the parts of the template's role, each once, before and after what the platform does."""

from __future__ import annotations

from boatyard.automation.port import Automation, RunSpec
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.generated.boatyard import Item
from boatyard.model.generated.osac import ClusterRest
from boatyard.model.outcome import Done, Outcome
from boatyard.platforms.port import ClusterAccess
from boatyard.resources.orders.item_graph import (
    ATTEMPT_FACT,
    CHANGED_COUNT_FACT,
    ITEM_KINDS,
    ROLE_FACT_PREFIX,
    TASK_COUNT_FACT,
)
from boatyard.resources.orders.plan import get_desired_rest
from boatyard.resources.orders.role_context import build_role_context
from boatyard.resources.orders.steps.context import StepContext
from boatyard.resources.orders.steps.run_logs import RunLogCopier
from boatyard.roles.parameter_values import decode_secrets, plain_values
from boatyard.roles.phases import INSTALL

KUBECONFIG_FILE = "kubeconfig"
_CONTROLLING_RUN = (
    "role"  # kind and key of the run that controls the installation and waits for the other parts
)
_BEFORE_CLUSTER = (_CONTROLLING_RUN, "pre_install")


async def ensure_run(context: StepContext, item: Item) -> Outcome:
    run_spec = await _make_run_spec(context, item)
    automation = _require_automation(context)
    run_log = _make_log_copier(context, item, automation)
    try:
        outcome = await automation.ensure_run(context.key(item.key), run_spec)
    except Refused:
        await run_log.copy_new_lines()
        raise
    await run_log.copy_new_lines()
    if not isinstance(outcome, Done):
        return outcome
    tasks, changed = await run_log.count_tasks()
    task_counts = {TASK_COUNT_FACT: str(tasks), CHANGED_COUNT_FACT: str(changed)} if tasks else {}
    return Done(
        {f"{ROLE_FACT_PREFIX}{name}": value for name, value in outcome.facts.items()} | task_counts
    )


async def release_run(context: StepContext, item: Item) -> Outcome:
    """Ends the run if it is under way. What the role has created is removed by its own delete part."""
    automation = context.drivers.automation
    if automation is None:
        return Done()
    run_log = _make_log_copier(context, item, automation)
    await run_log.copy_new_lines()
    outcome = await automation.release_run(context.key(item.key))
    if isinstance(outcome, Done):
        await run_log.write_end_line()
    return outcome


async def run_delete_hook(context: StepContext, item: Item) -> Outcome:
    """Releases the delete hook by running it. A leftover has no spec any more, so its hook is only ended."""
    if context.order.spec.template_digest:
        outcome = await ensure_run(context, item)
        if not isinstance(outcome, Done):
            return outcome
    return await release_run(context, item)


def _require_automation(context: StepContext) -> Automation:
    if context.drivers.automation is None:
        raise Unavailable("this hub runs no roles of templates", reason="NoAutomation")
    return context.drivers.automation


def _make_log_copier(context: StepContext, item: Item, automation: Automation) -> RunLogCopier:
    return RunLogCopier(
        order=context.order,
        items=tuple(context.items.values()),
        item=item,
        automation=automation,
        run_logs=context.run_logs,
        now=context.now,
    )


async def _make_run_spec(context: StepContext, item: Item) -> RunSpec:
    spec = context.order.spec
    access = None if item.kind in _BEFORE_CLUSTER else await _fetch_access(context)
    return RunSpec(
        action=ITEM_KINDS[item.kind].phase,
        template=spec.template,
        digest=spec.template_digest,
        attempt=int(item.facts[ATTEMPT_FACT]),
        order={
            **build_role_context(context.order, context.items),
            "simulated": access is not None and access.simulated,
        },
        values=plain_values(spec.template_parameters),
        secrets=plain_values(decode_secrets(spec.secret_values)),
        files={KUBECONFIG_FILE: access.kubeconfig} if access and access.kubeconfig else {},
        may_request_steps=ITEM_KINDS[item.kind].phase == INSTALL,
        parent_run=context.key(_CONTROLLING_RUN)
        if _CONTROLLING_RUN in context.items and item.kind != _CONTROLLING_RUN
        else "",
    )


async def _fetch_access(context: StepContext) -> ClusterAccess | None:
    """The credentials of the order's cluster; None while it does not exist or hibernates."""
    if "cluster" not in context.items or get_desired_rest(context.order) != ClusterRest.AWAKE:
        return None
    try:
        return await context.drivers.platform.access(context.key("cluster"))
    except NotFound:
        return None

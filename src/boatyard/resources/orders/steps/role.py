"""Runs the parts of the template's role, each once, before and after what the platform does."""

from __future__ import annotations

from boatyard.automation.port import Automation, RunWanted
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.generated.boatyard import Item
from boatyard.model.generated.osac import ClusterRest
from boatyard.model.outcome import Done, Outcome
from boatyard.platforms.port import Access
from boatyard.resources.orders.plan import rest_of
from boatyard.resources.orders.road import ATTEMPT, CHANGED, KINDS, REPORTED, TASKS
from boatyard.resources.orders.steps.context import Context
from boatyard.resources.orders.steps.telling import Telling
from boatyard.resources.orders.told import told_order
from boatyard.roles.phases import INSTALL
from boatyard.roles.values import plain_values, unsealed

KUBECONFIG = "kubeconfig"
_DECIDES = (
    "role"  # kind and key of the run that controls the installation and waits for the other parts
)
_BEFORE_CLUSTER = (_DECIDES, "pre_install")


async def ensure_run(context: Context, item: Item) -> Outcome:
    run_spec = await _wanted(context, item)
    automation = _automation(context)
    run_log = _telling(context, item, automation)
    try:
        outcome = await automation.ensure_run(context.key(item.key), run_spec)
    except Refused:
        await run_log.copy()
        raise
    await run_log.copy()
    if not isinstance(outcome, Done):
        return outcome
    tasks, changed = await run_log.tally()
    task_counts = {TASKS: str(tasks), CHANGED: str(changed)} if tasks else {}
    return Done({f"{REPORTED}{name}": value for name, value in outcome.facts.items()} | task_counts)


async def release_run(context: Context, item: Item) -> Outcome:
    """Ends the run if it is under way. What the role has created is removed by its own delete part."""
    automation = context.drivers.automation
    if automation is None:
        return Done()
    run_log = _telling(context, item, automation)
    await run_log.copy()
    outcome = await automation.release_run(context.key(item.key))
    if isinstance(outcome, Done):
        await run_log.close()
    return outcome


async def say_farewell(context: Context, item: Item) -> Outcome:
    """Releases the delete hook by running it. A leftover has no spec any more, so its hook is only ended."""
    if context.order.spec.template_digest:
        outcome = await ensure_run(context, item)
        if not isinstance(outcome, Done):
            return outcome
    return await release_run(context, item)


def _automation(context: Context) -> Automation:
    if context.drivers.automation is None:
        raise Unavailable("this hub runs no roles of templates", reason="NoAutomation")
    return context.drivers.automation


def _telling(context: Context, item: Item, automation: Automation) -> Telling:
    return Telling(
        order=context.order,
        items=tuple(context.items.values()),
        item=item,
        automation=automation,
        stories=context.stories,
        now=context.now,
    )


async def _wanted(context: Context, item: Item) -> RunWanted:
    spec = context.order.spec
    access = None if item.kind in _BEFORE_CLUSTER else await _access(context)
    return RunWanted(
        action=KINDS[item.kind].phase,
        template=spec.template,
        digest=spec.template_digest,
        attempt=int(item.facts[ATTEMPT]),
        order={
            **told_order(context.order, context.items),
            "simulated": access is not None and access.simulated,
        },
        values=plain_values(spec.template_parameters),
        secrets=plain_values(unsealed(spec.secret_values)),
        files={KUBECONFIG: access.kubeconfig} if access and access.kubeconfig else {},
        may_ask=KINDS[item.kind].phase == INSTALL,
        within=context.key(_DECIDES) if _DECIDES in context.items and item.kind != _DECIDES else "",
    )


async def _access(context: Context) -> Access | None:
    """The credentials of the order's cluster; None while it does not exist or hibernates."""
    if "cluster" not in context.items or rest_of(context.order) != ClusterRest.AWAKE:
        return None
    try:
        return await context.drivers.platform.access(context.key("cluster"))
    except NotFound:
        return None

"""Runs every check of the hub's checks driver on the finished cluster."""

from __future__ import annotations

from boatyard.checks.port import Subject
from boatyard.model.errors import NotFound
from boatyard.model.generated.boatyard import Item, ItemState
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.resources.orders.steps.context import StepContext


async def ensure_check(context: StepContext, item: Item) -> Outcome:
    drivers = context.drivers
    kubeconfig = ""
    if drivers.checks.needs_kubeconfig:
        try:
            kubeconfig = (await drivers.platform.access(context.key("cluster"))).kubeconfig
        except NotFound:
            return Waiting("Nobody can be let into the cluster yet.", reason="NoAccess")
    subject = Subject(
        cluster_key=context.key("cluster"),
        api_name=context.fact("api-name", "name"),
        api_address=context.fact("api-address", "address"),
        ingress_name=context.fact("ingress-name", "name"),
        ingress_address=context.fact("ingress-address", "address"),
        slots=tuple(
            sorted(
                other.slot
                for other in context.items.values()
                if other.kind == "node" and other.state != ItemState.LEAVING
            )
        ),
        version=context.order.spec.version,
        kubeconfig=kubeconfig,
        resolve=drivers.dns.resolve,
    )
    return await drivers.checks.run_check(item.facts["check"], subject)


async def release_check(context: StepContext, item: Item) -> Outcome:
    return Done()  # a check leaves nothing behind

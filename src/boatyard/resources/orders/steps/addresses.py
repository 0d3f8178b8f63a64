"""Floating addresses: one for the API, one for ingress."""

from __future__ import annotations

from boatyard.model.generated.boatyard import Item
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.model.reasons import ScarcityReason
from boatyard.resources.orders.steps.context import StepContext


async def ensure_address(context: StepContext, item: Item) -> Outcome:
    address = item.facts.get("address")
    if address is None:
        free = await context.drivers.l3.floating_addresses()
        address = await context.claim("floating", free, item)
    if address is None:
        return Waiting(
            "all floating addresses of the hub are in use",
            15,
            reason=ScarcityReason.NO_FREE_ADDRESS,
        )
    outcome = await context.drivers.l3.ensure_floating(
        context.key(item.key),
        address,
        network_key=context.key("l3"),
        purpose=item.kind.removesuffix("-address"),
    )
    if isinstance(outcome, Waiting):
        return outcome
    return Done({**outcome.facts, "address": address})


async def release_address(context: StepContext, item: Item) -> Outcome:
    return await context.drivers.l3.release_floating(context.key(item.key))

"""Hosts: one machine of the right type per node, held for this order."""

from __future__ import annotations

from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import Item
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.model.reasons import ScarcityReason
from boatyard.resources.orders.steps.context import StepContext

HOST_UNUSABLE = "HostUnusable"
HELD_BY_ANOTHER = "HeldByAnother"
_SLICE_SIZES = (8, 64, 4096)


async def ensure_host(context: StepContext, item: Item) -> Outcome:
    """Claims a free host of the node set's type, then has the inventory hold it."""
    host_type = context.order.spec.node_sets[item.node_set].host_type
    name = item.facts.get("host") or await _claim_host(context, item, host_type)
    if name is None:
        return Waiting(
            f"no free host of type {host_type!r}", look_again=15, reason=ScarcityReason.NO_FREE_HOST
        )
    try:
        outcome = await context.drivers.inventory.ensure_held(context.key(item.key), name)
    except Refused as refusal:
        if refusal.reason not in (HOST_UNUSABLE, HELD_BY_ANOTHER):
            raise
        # The claimed host broke or was taken since: free the claim and claim another on the next look.
        await context.book.unclaim(context.key(item.key), now=context.now)
        return Waiting("a host cannot be used, another is being chosen", 1, reason=HOST_UNUSABLE)
    if isinstance(outcome, Waiting):
        return outcome
    return Done({**outcome.facts, "host": name})


async def _claim_host(context: StepContext, item: Item, host_type: str) -> str | None:
    owner = context.key(item.key)
    for limit in _SLICE_SIZES:
        free = await context.drivers.inventory.list_free(host_type, limit, seed=owner)
        names = [host.name for host in free]
        host_name = await context.book.claim(context.pool("hosts"), names, owner, now=context.now)
        if host_name is not None or len(names) < limit:
            return host_name
    return None


async def release_host(context: StepContext, item: Item) -> Outcome:
    """Gives the host back. Without a recorded host, the claim tells which one the inventory may hold."""
    name = item.facts.get("host") or await context.book.claim(
        context.pool("hosts"), (), context.key(item.key), now=context.now
    )
    if name is None:
        return Done()
    return await context.drivers.inventory.release_held(context.key(item.key), name)

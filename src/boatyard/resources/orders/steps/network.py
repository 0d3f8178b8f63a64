"""The network: a VLAN with the hosts' ports on it, and a subnet with DHCP and gateway tied to it."""

from __future__ import annotations

from boatyard.model.generated.boatyard import Item
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.model.reasons import ScarcityReason
from boatyard.resources.orders.steps.context import StepContext


async def ensure_l2(context: StepContext, item: Item) -> Outcome:
    vlan = item.facts.get("vlan")
    if vlan is None:
        vlans = [str(number) for number in await context.drivers.l2.vlans()]
        vlan = await context.claim("vlans", vlans, item)
    if vlan is None:
        return Waiting("all VLANs of the hub are in use", 15, reason=ScarcityReason.NO_FREE_VLAN)
    outcome = await context.drivers.l2.ensure_network(context.key(item.key), int(vlan))
    if isinstance(outcome, Waiting):
        return outcome
    return Done({**outcome.facts, "vlan": vlan})


async def release_l2(context: StepContext, item: Item) -> Outcome:
    return await context.drivers.l2.release_network(context.key(item.key))


async def ensure_port(context: StepContext, item: Item) -> Outcome:
    host = context.fact(f"host/{item.slot}", "host")
    outcome = await context.drivers.l2.ensure_port(context.key(item.key), context.key("l2"), host)
    if isinstance(outcome, Waiting):
        return outcome
    return Done({**outcome.facts, "host": host})


async def release_port(context: StepContext, item: Item) -> Outcome:
    host = item.facts.get("host") or await _claimed_host(context, item)
    if host is None:
        return Done()  # a port is only ever bound for a host that was claimed first
    return await context.drivers.l2.release_port(context.key(item.key), host)


async def _claimed_host(context: StepContext, item: Item) -> str | None:
    host_item = context.items.get(f"host/{item.slot}")
    if host_item is not None and "host" in host_item.facts:
        return host_item.facts["host"]
    owner = context.key(f"host/{item.slot}")
    return await context.book.claim(context.pool("hosts"), (), owner, now=context.now)


async def ensure_agent(context: StepContext, item: Item) -> Outcome:
    """Waits until the host's agent is seen with an address on the new network."""
    host = context.fact(f"host/{item.slot}", "host")
    return await context.drivers.inventory.agent_address(context.key(f"host/{item.slot}"), host)


async def release_agent(context: StepContext, item: Item) -> Outcome:
    return Done()  # nothing was made: the agent loses its address with the port


async def ensure_l3(context: StepContext, item: Item) -> Outcome:
    cidr = item.facts.get("cidr")
    if cidr is None:
        cidr = await context.claim("subnets", await context.drivers.l3.subnets(), item)
    if cidr is None:
        return Waiting(
            "all subnets of the hub are in use", 15, reason=ScarcityReason.NO_FREE_SUBNET
        )
    outcome = await context.drivers.l3.ensure_network(context.key(item.key), cidr)
    if isinstance(outcome, Waiting):
        return outcome
    return Done({**outcome.facts, "cidr": cidr})


async def release_l3(context: StepContext, item: Item) -> Outcome:
    return await context.drivers.l3.release_network(context.key(item.key))


async def ensure_binding(context: StepContext, item: Item) -> Outcome:
    return await context.drivers.l3.ensure_binding(
        context.key(item.key), context.key("l3"), context.key("l2")
    )


async def release_binding(context: StepContext, item: Item) -> Outcome:
    return await context.drivers.l3.release_binding(context.key(item.key))

"""DNS records of the cluster's API and applications."""

from __future__ import annotations

import hashlib

from boatyard.model.generated.boatyard import Item, Order
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.resources.orders.steps.context import StepContext

_LONGEST_LABEL = 63


def cluster_label(order: Order) -> str:
    """The cluster's label under the zone. A fragment of the id's hash keeps clusters of the same name apart."""
    fragment = hashlib.sha256(order.id.encode()).hexdigest()[:6]
    name = order.spec.cluster_name[: _LONGEST_LABEL - len(fragment) - 1].rstrip("-")
    return f"{name}-{fragment}"


async def ensure_name(context: StepContext, item: Item) -> Outcome:
    zone = await context.drivers.dns.zone()
    label = cluster_label(context.order)
    if item.kind == "api-name":
        name, address = f"api.{label}.{zone}", context.fact("api-address", "address")
    else:
        name, address = f"*.apps.{label}.{zone}", context.fact("ingress-address", "address")
    outcome = await context.drivers.dns.ensure_record(context.key(item.key), name, address)
    if isinstance(outcome, Waiting):
        return outcome
    return Done({**outcome.facts, "name": name, "address": address})


async def release_name(context: StepContext, item: Item) -> Outcome:
    return await context.drivers.dns.release_record(context.key(item.key))

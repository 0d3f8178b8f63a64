"""Install: the control plane, then its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.model.generated.boatyard import Item, Order
from boatyard.model.outcome import Outcome
from boatyard.platforms.port import ClusterWanted, NodeWanted
from boatyard.resources.orders.steps.context import Context


async def ensure_cluster(context: Context, item: Item) -> Outcome:
    spec = context.order.spec
    wanted = ClusterWanted(
        name=spec.cluster_name,
        version=spec.version,
        release_image=spec.release_image,
        api_name=context.fact("api-name", "name"),
        api_address=context.fact("api-address", "address"),
        ingress_name=context.fact("ingress-name", "name"),
        ingress_address=context.fact("ingress-address", "address"),
        pod_cidr=spec.pod_cidr,
        service_cidr=spec.service_cidr,
        ssh_public_key=spec.ssh_public_key,
        pull_secret=spec.pull_secret,
        parameters=_parameters(context.order),
    )
    return await context.drivers.platform.ensure_cluster(context.key(item.key), wanted)


def _parameters(order: Order) -> Mapping[str, object]:
    return {name: value.get("value") for name, value in order.spec.template_parameters.items()}


async def release_cluster(context: Context, item: Item) -> Outcome:
    return await context.drivers.platform.release_cluster(context.key(item.key))


async def ensure_node(context: Context, item: Item) -> Outcome:
    node = NodeWanted(
        slot=item.slot,
        node_set=item.node_set,
        host=context.fact(f"host/{item.slot}", "host"),
        address=context.fact(f"agent/{item.slot}", "address"),
    )
    return await context.drivers.platform.ensure_node(
        context.key(item.key), context.key("cluster"), node
    )


async def release_node(context: Context, item: Item) -> Outcome:
    return await context.drivers.platform.release_node(
        context.key(item.key), context.key("cluster"), item.slot
    )

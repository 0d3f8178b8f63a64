"""Install: the control plane, then its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.model.generated.boatyard import Item, ItemState, Order
from boatyard.model.outcome import Outcome, Waiting
from boatyard.platforms.port import HAS_NODES, DesiredCluster, DesiredNode, DesiredRestore
from boatyard.resources.orders.hibernation import get_platform_rest
from boatyard.resources.orders.steps.context import StepContext


async def ensure_cluster(context: StepContext, item: Item) -> Outcome:
    spec = context.order.spec
    desired_cluster = DesiredCluster(
        name=spec.cluster_name,
        version=spec.version,
        release_image=spec.release_image,
        api_name=context.fact("api-name", "name"),
        api_address=context.fact("api-address", "address"),
        ingress_name=context.fact("ingress-name", "name"),
        ingress_address=context.fact("ingress-address", "address"),
        pod_cidr=spec.pod_cidr,
        service_cidr=spec.service_cidr,
        machine_cidr=context.fact("l3", "cidr"),
        gateway=context.items["l3"].facts.get("gateway", ""),
        ssh_public_key=spec.ssh_public_key,
        pull_secret=spec.pull_secret,
        parameters=_get_plain_parameters(context.order),
        settings=spec.platform_settings,
        host_types=tuple(sorted({node_set.host_type for node_set in spec.node_sets.values()})),
        rest=get_platform_rest(context.order),
        restore=_restore(context.order),
    )
    return await context.drivers.platform.ensure_cluster(context.key(item.key), desired_cluster)


def _get_plain_parameters(order: Order) -> Mapping[str, object]:
    return {name: value.get("value") for name, value in order.spec.template_parameters.items()}


def _restore(order: Order) -> DesiredRestore | None:
    restore = order.spec.restore
    if not restore.request:
        return None
    return DesiredRestore(request=restore.request, backup_key=backup_key(restore.backup))


def backup_key(backup_id: str) -> str:
    """The key under which a backup can be found again outside."""
    return f"{backup_id}/backup"


async def release_cluster(context: StepContext, item: Item) -> Outcome:
    """Releases the control plane, and makes unrecorded nodes that block it leaving items.

    A worker that was suspended between the check of its lease and an effect may create a node after the
    release of that node was confirmed.
    """
    outcome = await context.drivers.platform.release_cluster(context.key(item.key))
    if isinstance(outcome, Waiting) and outcome.reason == HAS_NODES:
        for node in await context.drivers.platform.list_owned(context.key("node/")):
            key = node.key.removeprefix(context.key(""))
            context.items.setdefault(key, _leaving_node(key))
    return outcome


def _leaving_node(key: str) -> Item:
    slot = key.partition("/")[2]
    return Item(
        key=key,
        kind="node",
        step="install",
        node_set=slot.rpartition("-")[0],
        slot=slot,
        state=ItemState.LEAVING,
    )


async def ensure_node(context: StepContext, item: Item) -> Outcome:
    node = DesiredNode(
        slot=item.slot,
        node_set=item.node_set,
        host=_host_fact(context, f"host/{item.slot}", "host"),
        address=_host_fact(context, f"agent/{item.slot}", "address"),
        host_type=context.order.spec.node_sets[item.node_set].host_type,
    )
    return await context.drivers.platform.ensure_node(
        context.key(item.key), context.key("cluster"), node
    )


def _host_fact(context: StepContext, key: str, name: str) -> str:
    """Empty where the platform makes machines itself."""
    return context.fact(key, name) if key in context.items else ""


async def release_node(context: StepContext, item: Item) -> Outcome:
    return await context.drivers.platform.release_node(
        context.key(item.key),
        context.key("cluster"),
        item.slot,
        drain=context.order.metadata.deletion_timestamp is None,
    )


async def ensure_backup(context: StepContext, item: Item) -> Outcome:
    raise AssertionError("backups are made by their own reconciler")


async def release_backup(context: StepContext, item: Item) -> Outcome:
    """Releases a backup whose deletion did not finish in time."""
    return await context.drivers.platform.release_backup(context.key(item.key))

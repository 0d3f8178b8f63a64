"""The end of a cluster: reservations of what is left, and the final event. Pure; called by the cluster reconciler."""

from __future__ import annotations

from datetime import datetime

from boatyard.ledger.changes import Change, EventNote, Reserve
from boatyard.model.generated.boatyard import Order, OrderPhase, OrderSpec
from boatyard.model.generated.osac import Cluster, Metadata
from boatyard.resources.clusters import placement


def reserve_leftover_hosts(cluster: Cluster, order: Order) -> list[Change]:
    """Reservations for the hosts that a deletion left behind: they still take capacity of the hub."""
    remaining_lines = order.status.receipt.left
    # A node without a host runs on a machine of the platform.
    kind = "host" if any(line.kind == "host" for line in remaining_lines) else "node"
    hosts = {line.key for line in remaining_lines if line.kind == kind}
    return [
        Reserve(
            placement.get_capacity_pool(cluster.status.hub, resource),
            owner=leftover_owner(cluster.id),
            amount=amount,
            capacity=placement.UNBOUNDED,
        )
        for resource, amount in _count_left_hosts(order, hosts).items()
    ]


def make_receipt_note(order: Order) -> EventNote:
    receipt = order.status.receipt
    return EventNote(
        "Deleted",
        f"Deleted: {len(receipt.gone)} things taken back, {len(receipt.left)} left",
    )


def make_unmirrored_order(cluster: Cluster, now: datetime) -> Order:
    """A stand-in for an order that the hub may have and the ledger has never mirrored."""
    return Order(
        id=cluster.id,
        metadata=Metadata(name=cluster.id, tenant=cluster.metadata.tenant, deletion_timestamp=now),
        spec=OrderSpec(cluster_name=cluster.metadata.name, hub=cluster.status.hub),
    )


def was_created_after_deletion(cluster: Cluster, order: Order) -> bool:
    """Whether an order in progress was created after the deletion of its cluster was requested."""
    deletion_time, creation_time = (
        cluster.metadata.deletion_timestamp,
        order.metadata.creation_timestamp,
    )
    late = (
        deletion_time is not None and creation_time is not None and creation_time >= deletion_time
    )
    return late and order.status.phase in (OrderPhase.UNSPECIFIED, OrderPhase.PROGRESSING)


def leftover_owner(cluster_id: str) -> str:
    """The owner under which hosts that a deletion left behind stay reserved."""
    return f"leftover/{cluster_id}"


def _count_left_hosts(order: Order, left_keys: set[str]) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for key in left_keys:
        node_set = key.partition("/")[2].rpartition("-")[0]
        node_set_spec = order.spec.node_sets.get(node_set)
        if node_set_spec is not None:
            amounts[node_set_spec.host_type] = amounts.get(node_set_spec.host_type, 0) + 1
    return amounts

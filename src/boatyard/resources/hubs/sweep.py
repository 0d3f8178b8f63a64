"""Finds what deleted orders have left on a hub unnoticed. Called by the hub reconciler every few minutes.

A worker that was suspended between the check of its lease and an effect may carry out that effect after
another worker has deleted the order: only listing outside objects can find it. What is found becomes a
Leftover, so it is released, retried and shown like everything a deletion leaves behind. Objects of an order
that this ledger has never known are not touched: they may belong to another installation, or be newer than a
restored ledger.
"""

from __future__ import annotations

from datetime import datetime

from boatyard.ledger.changes import Change, Due, EventNote, Insert
from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.boatyard import (
    Item,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
    Order,
)
from boatyard.model.generated.osac import Cluster, Metadata
from boatyard.resources.hubs.owned_items import list_owned_objects, to_leaving_items
from boatyard.resources.orders.drivers import HubDrivers


async def sweep_hub(
    ledger: Ledger, hub_id: str, drivers: HubDrivers, now: datetime
) -> list[Change]:
    """Returns a Leftover for each deleted order that still has objects on the hub.

    Lists the objects outside first, then reads the ledger.
    """
    owned_by_order = (await list_owned_objects(drivers)).by_order
    unknown_ids = set(owned_by_order)
    # A cluster outlives its order, so the first kind finds most ids.
    for kind in (Cluster, Leftover, Order):
        unknown_ids -= (
            await ledger.documents.get_many(kind, sorted(unknown_ids), sealed=True)
        ).keys()
    changes: list[Change] = []
    for order_id in sorted(unknown_ids):
        order = await ledger.documents.get_archived(Order, order_id, sealed=True)
        items = to_leaving_items(owned_by_order[order_id])
        if order is None or order.spec.hub != hub_id or not items:
            continue
        leftover = _leftover(order, items, now)
        note = EventNote("Swept", f"{len(items)} things of an order that has ended were found")
        changes += [
            Insert(leftover, note=note),
            Due("Leftover", order_id, now, tenant=order.metadata.tenant, hub=hub_id),
        ]
    return changes


def _leftover(order: Order, items: tuple[Item, ...], now: datetime) -> Leftover:
    return Leftover(
        id=order.id,
        metadata=Metadata(
            name=order.metadata.name,
            tenant=order.metadata.tenant,
            project=order.metadata.project,
            creator=order.metadata.creator,
            creation_timestamp=now,
        ),
        spec=LeftoverSpec(order=order.id, cluster_name=order.spec.cluster_name, hub=order.spec.hub),
        status=LeftoverStatus(
            items=items, next_look=now, message="found after the order had ended"
        ),
    )

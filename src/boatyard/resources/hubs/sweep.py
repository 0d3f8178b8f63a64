"""Finds what ended orders have left on a hub unnoticed. Called by the hub reconciler, now and then.

A worker that was stopped between the check of its lease and an effect may carry out that effect after
somebody else has finished and deleted the order: only looking outside can find it. What is found becomes
a Leftover, and so is released, retried and seen like everything a deletion leaves behind. An order that
this ledger has never known is not touched: its things may be another yard's, or newer than a restored ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from boatyard.ledger.changes import Change, Due, Insert, Note
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.boatyard import (
    Item,
    ItemState,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
    Order,
)
from boatyard.model.generated.osac import Cluster, Metadata
from boatyard.model.outcome import Owned
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.road import KINDS

_LIST_SECONDS = 30.0


async def sweep(ledger: Ledger, hub_id: str, drivers: HubDrivers, now: datetime) -> list[Change]:
    """A Leftover for each order that has ended and still has something on the hub. First looks outside, then inside."""
    found: dict[str, list[Owned]] = {}
    for owned in await _owned(drivers):
        found.setdefault(owned.key.partition("/")[0], []).append(owned)
    unknown = set(found)
    for kind in (Cluster, Leftover, Order):  # a cluster outlives its order: most are known at once
        unknown -= (await ledger.get_many(kind, sorted(unknown), sealed=True)).keys()
    changes: list[Change] = []
    for order_id in sorted(unknown):
        order = await ledger.archived(Order, order_id, sealed=True)
        items = _items(found[order_id])
        if order is None or order.spec.hub != hub_id or not items:
            continue
        leftover = _leftover(order, items, now)
        note = Note("Swept", f"{len(items)} things of an order that has ended were found")
        changes += [
            Insert(leftover, note=note),
            Due("Leftover", order_id, now, tenant=order.metadata.tenant, hub=hub_id),
        ]
    return changes


async def _owned(drivers: HubDrivers) -> Sequence[Owned]:
    """What the drivers name as ours. One that does not answer is asked at the next sweep."""
    found: list[Owned] = []
    asked = [drivers.inventory, drivers.l2, drivers.l3, drivers.dns, drivers.platform]
    for driver in (*asked, *([drivers.automation] if drivers.automation else [])):
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                found += await driver.list_owned()
        except (Unavailable, Refused, TimeoutError):
            continue
    return found


def _items(owned: Sequence[Owned]) -> tuple[Item, ...]:
    """What was found as items of the road, which know how to be released."""
    items: dict[str, Item] = {}
    for one in owned:
        key = one.key.partition("/")[2]
        name, _, slot = key.partition("/")
        kind = KINDS.get(name)
        if kind is not None and kind.phase:
            slot = ""  # a run of some generation
        if kind is None or kind.apart or kind.per_node != bool(slot):
            continue
        facts: Mapping[str, str] = {"host": one.name} if one.kind in ("host", "port") else {}
        items[key] = Item(
            key=key,
            kind=kind.name,
            step=kind.step,
            slot=slot,
            node_set=slot.rpartition("-")[0],
            state=ItemState.LEAVING,
            facts=facts,
        )
    return tuple(items.values())


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

"""The receipt of a deletion: what was released and what had to be left. Pure; called by the order's rules."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from boatyard.model.generated.boatyard import Item, Order, OrderStatus, Receipt, ReceiptLine
from boatyard.resources.orders.road import FAREWELL, KINDS

_NAMING = ("host", "vlan", "cidr", "name", "address")  # facts by which people recognise an item


def with_receipt(
    order: Order,
    status: OrderStatus,
    *,
    remaining_items: tuple[Item, ...],
    finished: bool,
    now: datetime,
) -> OrderStatus:
    """Returns the status with the items released in this pass added to its receipt, and those that remain."""
    remaining_keys = {item.key for item in (*status.items, *remaining_items)}
    released_items = [item for item in order.status.items if item.key not in remaining_keys]
    receipt = Receipt(
        requested_at=order.metadata.deletion_timestamp,
        finished_at=now if finished else None,
        gone=(*order.status.receipt.gone, *_lines(released_items)),
        left=_lines(remaining_items, reason="not released in time"),
        leftover=order.id if remaining_items else "",
    )
    return msgspec.structs.replace(status, receipt=receipt)


def _lines(items: Iterable[Item], reason: str = "") -> tuple[ReceiptLine, ...]:
    return tuple(
        ReceiptLine(kind=item.kind, name=_name(item), key=item.key, reason=reason)
        for item in items
        if not KINDS[item.kind].leaves_nothing
        and (not KINDS[item.kind].phase or item.kind == FAREWELL)
    )


def _name(item: Item) -> str:
    if item.kind == FAREWELL:
        return "tasks/delete"
    for fact in _NAMING:
        if fact in item.facts:
            return item.facts[fact]
    return item.slot or item.key

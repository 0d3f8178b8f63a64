"""The receipt of a deletion: what was released and what had to be left. Pure; called by the order's rules."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from boatyard.model.generated.boatyard import Item, Order, OrderStatus, Receipt, ReceiptLine
from boatyard.resources.orders.item_graph import DELETE_HOOK, ITEM_KINDS

_NAMING_FACTS = (
    "host",
    "vlan",
    "cidr",
    "name",
    "address",
)  # facts by which people recognise an item


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
        gone=(*order.status.receipt.gone, *_make_receipt_lines(released_items)),
        left=_make_receipt_lines(remaining_items, reason="not released in time"),
        leftover=order.id if remaining_items else "",
    )
    return msgspec.structs.replace(status, receipt=receipt)


def _make_receipt_lines(items: Iterable[Item], reason: str = "") -> tuple[ReceiptLine, ...]:
    return tuple(
        ReceiptLine(kind=item.kind, name=_get_display_name(item), key=item.key, reason=reason)
        for item in items
        if not ITEM_KINDS[item.kind].leaves_nothing
        and (not ITEM_KINDS[item.kind].phase or item.kind == DELETE_HOOK)
    )


def _get_display_name(item: Item) -> str:
    if item.kind == DELETE_HOOK:
        return "tasks/delete"
    for fact in _NAMING_FACTS:
        if fact in item.facts:
            return item.facts[fact]
    return item.slot or item.key

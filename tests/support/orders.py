"""Orders and items in a line or two. For tables about plans, progress and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from boatyard.model.generated.boatyard import (
    Credentials,
    Item,
    ItemState,
    Order,
    OrderNodeSet,
    OrderSpec,
    OrderStatus,
)
from boatyard.model.generated.osac import Metadata
from boatyard.resources.orders import plan

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CHECKS = ("names", "api")


def an_order(
    *,
    sizes: Mapping[str, int] | None = None,
    items: Sequence[Item] = (),
    deleting: bool = False,
    generation: int = 1,
    delete_by: datetime | None = None,
    version: str = "4.17.9",
    **status: Any,
) -> Order:
    return Order(
        id="o-1",
        metadata=Metadata(name="o-1", tenant="acme", deletion_timestamp=NOW if deleting else None),
        spec=OrderSpec(
            cluster_name="web",
            hub="hub-1",
            version=version,
            generation=generation,
            delete_by=delete_by,
            node_sets={
                name: OrderNodeSet(host_type="bm-small", size=size)
                for name, size in (sizes if sizes is not None else {"compute": 1}).items()
            },
        ),
        status=OrderStatus(items=tuple(items), **status),
    )


def planned(order: Order, leaving: Mapping[str, Sequence[str]] | None = None) -> Order:
    """The order with the plan recorded."""
    items = plan.replan(order, leaving or {}, CHECKS)
    status = msgspec.structs.replace(
        order.status,
        items=items,
        observed_generation=order.spec.generation,
        next_slots=plan.next_slots(order, items),
    )
    return msgspec.structs.replace(order, status=status)


def settled(order: Order) -> Order:
    """The order with everything of its plan made."""
    items = tuple(present(item) for item in planned(order).status.items)
    status = msgspec.structs.replace(
        order.status,
        items=items,
        observed_generation=order.spec.generation,
        next_slots=plan.next_slots(order, items),
        credentials=Credentials(kubeconfig="kubeconfig"),
    )
    return msgspec.structs.replace(order, status=status)


def present(item: Item, **facts: str) -> Item:
    return msgspec.structs.replace(
        item, state=ItemState.PRESENT, have=item.want, facts={**item.facts, **facts}
    )


def with_sizes(order: Order, **sizes: int) -> Order:
    """The same order with another wish."""
    node_sets = {
        name: OrderNodeSet(host_type="bm-small", size=size) for name, size in sizes.items()
    }
    spec = msgspec.structs.replace(
        order.spec, node_sets=node_sets, generation=order.spec.generation + 1
    )
    return msgspec.structs.replace(order, spec=spec)


def with_version(order: Order, version: str) -> Order:
    spec = msgspec.structs.replace(
        order.spec, version=version, generation=order.spec.generation + 1
    )
    return msgspec.structs.replace(order, spec=spec)


def being_deleted(order: Order, delete_by: datetime | None = None) -> Order:
    metadata = msgspec.structs.replace(order.metadata, deletion_timestamp=NOW)
    spec = msgspec.structs.replace(order.spec, delete_by=delete_by)
    return msgspec.structs.replace(order, metadata=metadata, spec=spec)


def keys(items: Sequence[Item], *states: ItemState) -> set[str]:
    return {item.key for item in items if not states or item.state in states}


def waves_of_making(items: tuple[Item, ...]) -> list[set[str]]:
    """What becomes ready, wave after wave, when everything succeeds."""
    waves = []
    while ready := plan.ready_to_add(items):
        waves.append(keys(ready))
        done = {item.key for item in ready}
        items = tuple(present(item) if item.key in done else item for item in items)
    return waves


def waves_of_releasing(items: tuple[Item, ...]) -> list[set[str]]:
    waves = []
    while ready := plan.ready_to_remove(items):
        waves.append(keys(ready))
        items = tuple(item for item in items if item.key not in waves[-1])
    assert items == (), "something can never be released"
    return waves

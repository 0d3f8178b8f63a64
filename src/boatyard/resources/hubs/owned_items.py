"""Lists everything on a hub that carries our mark, by order. Used by the sweeps of service and operator."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boatyard.model.errors import BoatyardError
from boatyard.model.generated.boatyard import Item, ItemState
from boatyard.model.outcome import OwnedObject
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.item_graph import ITEM_KINDS

logger = logging.getLogger(__name__)

_LIST_SECONDS = 30.0


@dataclass(frozen=True)
class OwnedObjects:
    """Objects outside that carry our mark. `complete`: every driver has answered."""

    by_order: Mapping[str, Sequence[OwnedObject]]
    complete: bool


async def list_owned_objects(drivers: HubDrivers) -> OwnedObjects:
    """Asks all drivers of a hub for what they hold for us. A driver that fails is asked again at the next sweep."""
    owned_by_order: dict[str, list[OwnedObject]] = {}
    complete = True
    required_drivers = [drivers.inventory, drivers.l2, drivers.l3, drivers.dns, drivers.platform]
    for driver in (*required_drivers, *([drivers.automation] if drivers.automation else [])):
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                owned = await driver.list_owned()
        except (BoatyardError, TimeoutError) as error:
            logger.warning(
                "driver did not list its objects, sweep is incomplete",
                extra={"why": str(error) or "no answer in time"},
            )
            complete = False
            continue
        for thing in owned:
            owned_by_order.setdefault(thing.key.partition("/")[0], []).append(thing)
    return OwnedObjects(by_order=owned_by_order, complete=complete)


def to_leaving_items(owned: Sequence[OwnedObject]) -> tuple[Item, ...]:
    """The owned objects as leaving items, which the steps can release. Objects of unknown kinds are left out."""
    items: dict[str, Item] = {}
    for thing in owned:
        key = thing.key.partition("/")[2]
        name, _, slot = key.partition("/")
        kind = ITEM_KINDS.get(name)
        if kind is not None and kind.phase:
            slot = ""  # a run of some generation
        if kind is None or kind.never_planned or kind.per_node != bool(slot):
            continue
        facts: Mapping[str, str] = {"host": thing.name} if thing.kind in ("host", "port") else {}
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

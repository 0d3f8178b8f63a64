"""What every step has at hand: the order, its items as they are now, the hub's drivers, the order book."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from boatyard.model.generated.boatyard import Item, Order
from boatyard.orderbook.port import OrderBook
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.steps.telling import NoStories, Stories


@dataclass(frozen=True)
class Context:
    order: Order
    drivers: HubDrivers
    book: OrderBook
    now: datetime
    items: dict[str, Item] = field(default_factory=dict)  # by key; grows as the pass confirms more
    stories: Stories = field(default_factory=NoStories)  # where what runs tell is kept

    def key(self, item_key: str) -> str:
        """The name under which the item can be found again outside."""
        return f"{self.order.id}/{item_key}"

    def fact(self, item_key: str, name: str) -> str:
        """A fact of another item; what it needs is present, so its facts are there."""
        return self.items[item_key].facts[name]

    def pool(self, name: str) -> str:
        return f"{self.order.spec.hub}/{name}"

    async def claim(self, pool: str, candidates: Sequence[str], item: Item) -> str | None:
        """Claims one of many candidates without reading them all: widening slices from a place of its own."""
        owner = self.key(item.key)
        count = len(candidates)
        start = spread(owner, count)
        width = _FIRST_SLICE
        while True:
            slice_ = [candidates[(start + n) % count] for n in range(min(width, count))]
            claim = await self.book.claim(self.pool(pool), slice_, owner, now=self.now)
            if claim is not None or width >= count:
                return claim
            width *= 16


_FIRST_SLICE = 16


def spread(text: str, count: int) -> int:
    """A place between 0 and count, always the same for the same text, so that claimers rarely meet."""
    if count == 0:
        return 0
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % count

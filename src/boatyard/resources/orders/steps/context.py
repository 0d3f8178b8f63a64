"""The argument of every step: the order, its items as they are now, the hub's drivers, the order book."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from boatyard.model.generated.boatyard import Item, Order
from boatyard.orderbook.port import OrderBook
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.steps.run_logs import NoRunLogSink, RunLogSink


@dataclass(frozen=True)
class StepContext:
    order: Order
    drivers: HubDrivers
    book: OrderBook
    now: datetime
    items: dict[str, Item] = field(default_factory=dict)  # by key; grows as the pass confirms more
    run_logs: RunLogSink = field(default_factory=NoRunLogSink)  # stores the logs of role runs

    def key(self, item_key: str) -> str:
        """The key under which the item can be found again outside."""
        return f"{self.order.id}/{item_key}"

    def fact(self, item_key: str, name: str) -> str:
        """A fact of another item. Items that a step needs are present, so their facts exist."""
        return self.items[item_key].facts[name]

    def pool(self, name: str) -> str:
        return f"{self.order.spec.hub}/{name}"

    async def claim(self, pool: str, candidates: Sequence[str], item: Item) -> str | None:
        """Claims one of many candidates, or returns None when all are taken.

        Tries growing slices that begin at a position derived from the owner, so that claimers rarely collide.
        """
        owner = self.key(item.key)
        count = len(candidates)
        start = hash_to_index(owner, count)
        width = _FIRST_SLICE_SIZE
        while True:
            slice_ = [candidates[(start + n) % count] for n in range(min(width, count))]
            claim = await self.book.claim(self.pool(pool), slice_, owner, now=self.now)
            if claim is not None or width >= count:
                return claim
            width *= 16


_FIRST_SLICE_SIZE = 16


def hash_to_index(text: str, count: int) -> int:
    """A number from 0 to count - 1, always the same for the same text, evenly spread over texts."""
    if count == 0:
        return 0
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % count

"""Orders that a hub keeps itself, and of which the ledger has a copy. Put together by app; asked by the API."""

from __future__ import annotations

from typing import Protocol

import msgspec

from boatyard.model.generated.boatyard import Credentials, Order
from boatyard.orderbook.port import RETRY, retries


class Elsewhere(Protocol):
    async def keeps(self, hub_id: str) -> bool:
        """Whether this hub keeps its orders itself."""

    async def credentials(self, order: Order) -> Credentials | None:
        """What opens the order's cluster, asked of its hub; None when the ledger itself keeps it.

        Unavailable when the hub does not answer.
        """


class Nowhere:
    """All orders are in the ledger."""

    async def keeps(self, hub_id: str) -> bool:
        return False

    async def credentials(self, order: Order) -> Credentials | None:
        return None


def ask_for_retry(order: Order) -> Order:
    """The copy of an order with one more retry asked for; its cluster's reconciler tells the hub."""
    count = max(retries(order), order.status.retried) + 1
    annotations = {**order.metadata.annotations, RETRY: str(count)}
    metadata = msgspec.structs.replace(order.metadata, annotations=annotations)
    return msgspec.structs.replace(order, metadata=metadata)

"""Orders that a hub stores itself and the ledger only mirrors. Built by app; called by the API."""

from __future__ import annotations

from typing import Protocol

import msgspec

from boatyard.model.generated.boatyard import Credentials, Order
from boatyard.orderbook.port import RETRY_ANNOTATION, count_requested_retries


class RemoteOrders(Protocol):
    async def stores_orders(self, hub_id: str) -> bool:
        """Whether this hub stores its orders itself."""

    async def read_credentials(self, order: Order) -> Credentials | None:
        """The credentials of the order's cluster, read from its hub; None when the ledger itself stores the order.

        Raises Unavailable when the hub does not answer.
        """


class NoRemoteOrders:
    """For installations where the ledger stores all orders."""

    async def stores_orders(self, hub_id: str) -> bool:
        return False

    async def read_credentials(self, order: Order) -> Credentials | None:
        return None


def request_retry(order: Order) -> Order:
    """Returns the mirrored order with one more retry requested; the cluster reconciler passes it on to the hub."""
    count = max(count_requested_retries(order), order.status.retried) + 1
    annotations = {**order.metadata.annotations, RETRY_ANNOTATION: str(count)}
    metadata = msgspec.structs.replace(order.metadata, annotations=annotations)
    return msgspec.structs.replace(order, metadata=metadata)

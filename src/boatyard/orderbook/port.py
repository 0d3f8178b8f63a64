"""The order book of a hub: its orders, and the claims on its scarce items. Called by both reconcilers.

The cluster reconciler calls `put`, `request_delete` and `forget`. The order reconciler reads and claims; its one
guarded write per pass is made by its queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from boatyard.model.generated.boatyard import Leftover, Order, OrderSpec

RETRY_ANNOTATION = (
    "boatyard.io/retry"  # annotation of an order: the total number of requested retries
)

REQUESTED_STEPS_ANNOTATION = (
    "boatyard.io/asked"  # annotation of an order: the steps its role has asked for
)

# Annotation of an order in memory, stored nowhere: why its spec cannot be read.
UNREADABLE_ANNOTATION = "boatyard.io/unreadable"


def get_unreadable_reason(order: Order) -> str:
    """Why the order's spec cannot be read; empty when it can. Its items are known in both cases."""
    return order.metadata.annotations.get(UNREADABLE_ANNOTATION, "")


def count_requested_retries(order: Order) -> int:
    """The total number of retries requested for the order, by its annotation."""
    count_text = order.metadata.annotations.get(RETRY_ANNOTATION, "")
    return int(count_text) if count_text.isdecimal() else 0


def list_requested_steps(order: Order) -> frozenset[str]:
    """The steps that the role has asked for while it decides what is done."""
    return frozenset(
        filter(None, order.metadata.annotations.get(REQUESTED_STEPS_ANNOTATION, "").split(","))
    )


class OrderBook(Protocol):
    async def get(self, order_id: str) -> Order | None:
        """The order as it is now, secrets readable; None when there is none."""

    async def put(self, order_id: str, *, tenant: str, spec: OrderSpec, now: datetime) -> None:
        """Creates the order, or replaces its spec. The same spec again changes nothing.

        An order that is being deleted is left alone. Conflict: another write came first; read it again.
        """

    async def request_delete(self, order_id: str, *, delete_by: datetime, now: datetime) -> None:
        """Requests the release of everything by `delete_by`. Requested before, or no such order: no change."""

    async def forget(self, order_id: str, *, tenant: str = "", now: datetime) -> None:
        """Moves a finished order (phase DELETED) to the archive. No such order: does nothing.

        With `tenant`, the order's tenant, it also deletes what a process left that died while it placed the order.
        """

    async def claim(
        self, pool: str, candidates: Sequence[str], owner: str, *, now: datetime
    ) -> str | None:
        """Takes the first free candidate of the pool for `owner`, by a unique key.

        An owner holds at most one item of a pool: asked again, the answer is what it holds already,
        whatever the candidates. None when every candidate is taken.
        """

    async def unclaim(self, owner: str, *, now: datetime) -> None:
        """Deletes the owner's claims in every pool. No claims: does nothing."""

    async def get_leftover(self, leftover_id: str) -> Leftover | None:
        """What a deletion on this hub had to leave behind; None when nothing is left of it."""

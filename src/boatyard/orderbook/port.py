"""Where a hub keeps its orders and who holds which of its scarce things. Called by both reconcilers.

The cluster reconciler asks (`put`, `request_delete`, `forget`); the order reconciler reads, claims, and
answers with one guarded write per pass, which its queue carries out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from boatyard.model.generated.boatyard import Leftover, Order, OrderSpec

RETRY = "boatyard.io/retry"  # annotation of an order: how often somebody asked for a retry, in all

ASKED = "boatyard.io/asked"  # annotation of an order: the steps its role has asked for

# Annotation of an order as it is read, kept nowhere: why nobody understands what it asks for.
UNREADABLE = "boatyard.io/unreadable"


def unreadable(order: Order) -> str:
    """Why what the order asks for cannot be understood; empty when it can. What it holds is known all the same."""
    return order.metadata.annotations.get(UNREADABLE, "")


def retries(order: Order) -> int:
    """How often a retry was asked for where the order is kept."""
    count_text = order.metadata.annotations.get(RETRY, "")
    return int(count_text) if count_text.isdecimal() else 0


def asked_steps(order: Order) -> frozenset[str]:
    """The steps that the role has asked for while it decides what is done."""
    return frozenset(filter(None, order.metadata.annotations.get(ASKED, "").split(",")))


class OrderBook(Protocol):
    async def get(self, order_id: str) -> Order | None:
        """The order as it is now, secrets readable; None when there is none."""

    async def put(self, order_id: str, *, tenant: str, spec: OrderSpec, now: datetime) -> None:
        """Makes the order, or changes what it asks for. The same spec again changes nothing.

        An order that is being deleted is left alone. Conflict: somebody wrote it in between; look again.
        """

    async def request_delete(self, order_id: str, *, delete_by: datetime, now: datetime) -> None:
        """Asks for everything to be taken back by then. Asked before, or no such order: nothing changes."""

    async def forget(self, order_id: str, *, tenant: str = "", now: datetime) -> None:
        """Moves a finished order (phase DELETED) to the archive. No such order: content.

        `tenant`, whose it was, has also that taken away which whoever died while placing it has left.
        """

    async def claim(
        self, pool: str, candidates: Sequence[str], owner: str, *, now: datetime
    ) -> str | None:
        """Takes the first free candidate of the pool for `owner`, by a unique key.

        An owner holds at most one item of a pool: asked again, the answer is what it holds already,
        whatever the candidates. None when every candidate is taken.
        """

    async def unclaim(self, owner: str, *, now: datetime) -> None:
        """Gives back what this owner holds, in every pool. Nothing held: content."""

    async def leftover(self, leftover_id: str) -> Leftover | None:
        """What a deletion on this hub had to leave behind; None when nothing is left of it."""

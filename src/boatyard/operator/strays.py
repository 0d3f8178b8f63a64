"""Finds what no order of the hub stands behind: things outside, and claims. Run by the leader, now and then.

A leader that was stopped between the check of its lease and an effect may carry out that effect after its successor
has ended the order; and an order may be stripped of its finalizers and removed while nobody leads. Only looking outside
finds what is left then. It becomes a Leftover, and so is released, retried and seen like all that a deletion leaves.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from boatyard.kube.client import KubeClient
from boatyard.model.errors import BoatyardError
from boatyard.model.generated.boatyard import Item, Leftover, LeftoverSpec, LeftoverStatus
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.kube.objects import HubObjects
from boatyard.orderbook.kube.sweep import free_claims, read_books
from boatyard.orderbook.kube.view import HubView
from boatyard.resources.hubs.owned_items import Outside, items_of, look_outside
from boatyard.resources.orders.drivers import HubDrivers

logger = logging.getLogger(__name__)

# So many orders at once may have ended unnoticed. More than these were not ended: the hub was set back to an older
# state, or its orders are looked for in the wrong place, and a person should look before anything is taken down.
FEW = 3
_WHY = "found outside although no order of the hub knows of it"


@dataclass(frozen=True)
class Swept:
    claims: int  # given back
    orders: int  # of which a Leftover was made
    strays: int  # orders that only things outside tell of


class Sweeper:
    """One for as long as this process leads under the same settings: what it finds counts when it finds it twice.

    `awaited` are orders whose going this leader saw and that the service places again: they are left alone.
    """

    def __init__(
        self,
        *,
        client: KubeClient,
        view: HubView,
        namespace: str,
        drivers: Callable[[], Awaitable[HubDrivers]],
        awaited: Collection[str],
        check: Callable[[], None],
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._view = view
        self._objects = HubObjects(client, view.place)
        self._namespace = namespace
        self._drivers = drivers
        self._awaited = awaited
        self._check = check
        self._now = now
        self._suspects: frozenset[str] = frozenset()  # of the sweep before

    async def sweep(self) -> Swept:
        """First looks outside, then at the hub: who stands behind what was found is seen after it.

        What is released in between is seen too; therefore only what is found twice in a row is nobody's.
        """
        outside = await self._look_outside()
        books = await read_books(
            self._client, self._view.place, self._namespace, read_all=bool(outside.by_order)
        )
        items_by_order = {
            order_id: items
            for order_id, owned in outside.by_order.items()
            if not books.knows(order_id) and (items := items_of(owned))
        }
        leftover_count = await self._keep(items_by_order) if outside.complete else 0
        claim_count = await free_claims(
            *(self._client, self._view, self._namespace, books),
            check=self._check,
            # Their things may still be outside, and must not become somebody else's meanwhile.
            is_protected=lambda order_id: (
                order_id in items_by_order or not (outside.complete or books.knows(order_id))
            ),
        )
        return Swept(claims=claim_count, orders=leftover_count, strays=len(items_by_order))

    async def _look_outside(self) -> Outside:
        try:
            return await look_outside(await self._drivers())
        except BoatyardError as error:  # no such driver: the orders say so
            logger.warning("not swept", extra={"why": str(error)})
            return Outside(by_order={}, complete=False)

    async def _keep(self, items_by_order: Mapping[str, tuple[Item, ...]]) -> int:
        """A Leftover for each order that was found the last time too; how many."""
        strays = sorted(self._suspects & items_by_order.keys() - frozenset(self._awaited))
        self._suspects = frozenset(items_by_order)
        if len(strays) > FEW:
            logger.error(
                "too many orders are missing on the hub; what they hold is left alone",
                extra={"orders": ", ".join(strays)},
            )
            return 0
        for order_id in strays:
            self._check()
            leftover = _leftover(
                order_id, self._view.place.hub, items_by_order[order_id], self._now()
            )
            await self._objects.create_leftover(leftover)
            logger.warning("things without an order found", extra={"order": order_id})
        return len(strays)


def _leftover(order_id: str, hub: str, items: tuple[Item, ...], now: datetime) -> Leftover:
    """Whose it was nobody knows any more."""
    return Leftover(
        id=order_id,
        metadata=Metadata(name=order_id, creator="system", creation_timestamp=now),
        spec=LeftoverSpec(order=order_id, hub=hub),
        status=LeftoverStatus(items=items, next_look=now, message=_WHY),
    )

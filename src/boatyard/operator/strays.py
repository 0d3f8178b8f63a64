"""Finds objects outside, and claims, that belong to no order of the hub. Run by the leader every ten minutes.

A leader that pauses between the check of its lease and an effect may carry out that effect after its successor has
ended the order. And an order may lose its finalizers and be removed while nobody leads. What is left then is found
only by listing what is outside. It becomes a Leftover, and so is released, retried and shown like all that a
deletion leaves.
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

# So many orders may have ended unnoticed at once. If more are missing they did not end: the hub was restored to an
# older state, or its orders are looked for in the wrong place, and a person should look before anything is released.
FEW = 3
_WHY = "found outside although no order of the hub knows of it"


@dataclass(frozen=True)
class Swept:
    claims: int  # deleted
    orders: int  # for which a Leftover was written
    strays: int  # orders known only from objects outside


class Sweeper:
    """Sweeps one hub while this process leads with the same settings. It acts on what two sweeps in a row find.

    `awaited` are orders that this leader saw disappear and that the service places again: they are left alone.
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
        """Lists what is outside, then the hub's orders, so that the order of everything found is seen.

        What is released between the two lists looks ownerless; therefore only what two sweeps in a row find counts.
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
            # Their objects may still be outside, and must not be handed to another order meanwhile.
            is_protected=lambda order_id: (
                order_id in items_by_order or not (outside.complete or books.knows(order_id))
            ),
        )
        return Swept(claims=claim_count, orders=leftover_count, strays=len(items_by_order))

    async def _look_outside(self) -> Outside:
        try:
            return await look_outside(await self._drivers())
        except BoatyardError as error:  # no such driver: the orders say so
            logger.warning("objects outside not listed", extra={"why": str(error)})
            return Outside(by_order={}, complete=False)

    async def _keep(self, items_by_order: Mapping[str, tuple[Item, ...]]) -> int:
        """Writes a Leftover for each order that the previous sweep found too. Returns how many."""
        strays = sorted(self._suspects & items_by_order.keys() - frozenset(self._awaited))
        self._suspects = frozenset(items_by_order)
        if len(strays) > FEW:
            logger.error(
                "orders missing on the hub are too many; what they hold is left alone",
                extra={"orders": ", ".join(strays)},
            )
            return 0
        for order_id in strays:
            self._check()
            leftover = _leftover(
                order_id, self._view.place.hub, items_by_order[order_id], self._now()
            )
            await self._objects.create_leftover(leftover)
            logger.warning("objects without an order found", extra={"order": order_id})
        return len(strays)


def _leftover(order_id: str, hub: str, items: tuple[Item, ...], now: datetime) -> Leftover:
    """A Leftover without a tenant: nobody knows any more whose the order was."""
    return Leftover(
        id=order_id,
        metadata=Metadata(name=order_id, creator="system", creation_timestamp=now),
        spec=LeftoverSpec(order=order_id, hub=hub),
        status=LeftoverStatus(items=items, next_look=now, message=_WHY),
    )

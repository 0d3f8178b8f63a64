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
from boatyard.orderbook.kube.sweep import delete_orphaned_claims, read_hub_records
from boatyard.orderbook.kube.view import HubView
from boatyard.resources.hubs.owned_items import OwnedObjects, list_owned_objects, to_leaving_items
from boatyard.resources.orders.drivers import HubDrivers

logger = logging.getLogger(__name__)

# So many orders may have ended unnoticed at once. If more are missing they did not end: the hub was restored to an
# older state, or its orders are looked for in the wrong place, and a person should look before anything is released.
MOST_ORPHANED_ORDERS = 3
_LEFTOVER_MESSAGE = "found outside although no order of the hub knows of it"


@dataclass(frozen=True)
class SweepResult:
    claims: int  # deleted
    orders: int  # for which a Leftover was written
    orphaned_orders: int  # orders known only from objects outside


class OrphanSweeper:
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
        self._objects = HubObjects(client, view.order_settings)
        self._namespace = namespace
        self._drivers = drivers
        self._returning_orders = awaited
        self._check_leadership = check
        self._now = now
        self._suspects: frozenset[str] = frozenset()  # of the sweep before

    async def sweep(self) -> SweepResult:
        """Lists what is outside, then the hub's orders, so that the order of everything found is seen.

        What is released between the two lists looks ownerless; therefore only what two sweeps in a row find counts.
        """
        outside = await self._list_owned_objects()
        books = await read_hub_records(
            self._client,
            self._view.order_settings,
            self._namespace,
            read_all=bool(outside.by_order),
        )
        items_by_order = {
            order_id: items
            for order_id, owned in outside.by_order.items()
            if not books.has_order(order_id) and (items := to_leaving_items(owned))
        }
        leftover_count = await self._write_leftovers(items_by_order) if outside.complete else 0
        claim_count = await delete_orphaned_claims(
            *(self._client, self._view, self._namespace, books),
            check=self._check_leadership,
            # Their objects may still be outside, and must not be handed to another order meanwhile.
            is_protected=lambda order_id: (
                order_id in items_by_order or not (outside.complete or books.has_order(order_id))
            ),
        )
        return SweepResult(
            claims=claim_count, orders=leftover_count, orphaned_orders=len(items_by_order)
        )

    async def _list_owned_objects(self) -> OwnedObjects:
        try:
            return await list_owned_objects(await self._drivers())
        except BoatyardError as error:  # no such driver: the orders say so
            logger.warning("objects outside not listed", extra={"why": str(error)})
            return OwnedObjects(by_order={}, complete=False)

    async def _write_leftovers(self, items_by_order: Mapping[str, tuple[Item, ...]]) -> int:
        """Writes a Leftover for each order that the previous sweep found too. Returns how many."""
        strays = sorted(self._suspects & items_by_order.keys() - frozenset(self._returning_orders))
        self._suspects = frozenset(items_by_order)
        if len(strays) > MOST_ORPHANED_ORDERS:
            logger.error(
                "orders missing on the hub are too many; what they hold is left alone",
                extra={"orders": ", ".join(strays)},
            )
            return 0
        for order_id in strays:
            self._check_leadership()
            leftover = _leftover(
                order_id, self._view.order_settings.hub, items_by_order[order_id], self._now()
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
        status=LeftoverStatus(items=items, next_look=now, message=_LEFTOVER_MESSAGE),
    )

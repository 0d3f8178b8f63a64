"""Orders that disappeared from the hub before they ended: somebody took their finalizers off. Run beside the work.

What such an order still holds outside is written into a Leftover, which releases it. Nothing is done for an order of
ours whose deletion nobody requested: the service places it again, and the new order finds everything by its keys.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from boatyard.model.backoff import Backoff
from boatyard.model.errors import BoatyardError, LeaseLost, Refused
from boatyard.model.generated.boatyard import Leftover, OrderPhase
from boatyard.orderbook.kube.mapping import from_kube
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.orderbook.kube.objects import HubObjects
from boatyard.orderbook.kube.view import HubView
from boatyard.resources.orders import plan, rules

logger = logging.getLogger(__name__)

BACKOFF = Backoff(first=2.0, longest=60.0)
_MAX_CONCURRENT_WRITES = 8
_LEFTOVER_MESSAGE = "its order was removed from the hub by hand before everything was released"


class LostOrderRecovery:
    """Writes Leftovers for orders that disappear from `view` after this object is created."""

    def __init__(
        self,
        view: HubView,
        objects: HubObjects,
        *,
        check: Callable[[], None],
        now: Callable[[], datetime],
    ) -> None:
        self._objects = objects
        self._check_leadership = check
        self._now = now
        self.returning_orders: set[str] = set()
        """Orders that disappeared although nobody requested their deletion: the service places them again."""
        self._write_slots = asyncio.Semaphore(_MAX_CONCURRENT_WRITES)
        self._deleted_objects: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        view.on_gone = self._deleted_objects.put_nowait

    async def run(self) -> None:
        """Runs until cancelled. Raises LeaseLost, in an exception group, once another may lead.

        Each order has a task of its own: none waits until another is written.
        """
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(self._handle_deleted_object(await self._deleted_objects.get()))

    async def _handle_deleted_object(self, item: dict[str, Any]) -> None:
        name = item["metadata"]["name"]
        try:
            if not is_lost(item, self._objects.order_settings):
                if will_be_placed_again(item, self._objects.order_settings):
                    self.returning_orders.add(
                        from_kube.read_order_id(item, self._objects.order_settings)
                    )
                return
            leftover = make_leftover(item, self._objects.order_settings, self._now())
        except Refused as error:  # the sweep finds what it left outside
            logger.error("lost order cannot be read", extra={"order": name, "why": str(error)})
            return
        for pause in BACKOFF.pauses():
            if await self._try_to_write_leftover(item, leftover):
                break
            await asyncio.sleep(pause)
        logger.warning("order was removed by hand", extra={"order": name})

    async def _try_to_write_leftover(self, item: dict[str, Any], leftover: Leftover | None) -> bool:
        async with self._write_slots:
            self._check_leadership()
            try:
                if leftover is not None:
                    await self._objects.create_leftover(leftover)
                self._check_leadership()
                await self._objects.delete_credentials(item)  # nobody else can find them any more
                await self._objects.delete_inputs(item)
            except LeaseLost:
                raise
            except BoatyardError as error:
                logger.warning("leftover not written", extra={"why": str(error)})
                return False
        return True


def is_lost(item: dict[str, Any], order_settings: HubOrderSettings) -> bool:
    """Whether an order that disappeared had not ended, and the service does not place it again."""
    order = from_kube.to_order(item, order_settings)
    return (
        not will_be_placed_again(item, order_settings) and order.status.phase != OrderPhase.DELETED
    )


def will_be_placed_again(item: dict[str, Any], order_settings: HubOrderSettings) -> bool:
    """Whether the service places the order again: it is the service's, and its deletion was not requested."""
    extension = (item.get("spec") or {}).get("boatyard") or {}
    return from_kube.read_order_id(item, order_settings) != item["metadata"][
        "uid"
    ] and not extension.get("deletedAt")


def make_leftover(
    item: dict[str, Any], order_settings: HubOrderSettings, now: datetime
) -> Leftover | None:
    """The Leftover for what a disappeared order still holds outside; None when it holds nothing."""
    order = from_kube.to_order(item, order_settings)
    if not order.status.items:
        return None
    metadata = msgspec.structs.replace(order.metadata, deletion_timestamp=now)
    order = msgspec.structs.replace(order, metadata=metadata)
    # It may have disappeared before its deletion was planned: everything recorded must be released.
    _, leftover = rules.abandon(order, plan.replan(order, {}, ()), now)
    status = msgspec.structs.replace(leftover.status, message=_LEFTOVER_MESSAGE)
    return msgspec.structs.replace(leftover, status=status)

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

from boatyard.model.errors import BoatyardError, LeaseLost, Refused
from boatyard.model.generated.boatyard import Leftover, OrderPhase
from boatyard.orderbook.kube.mapping import from_kube
from boatyard.orderbook.kube.mapping.from_kube import Place
from boatyard.orderbook.kube.objects import HubObjects
from boatyard.orderbook.kube.view import HubView
from boatyard.resources.orders import plan, rules

logger = logging.getLogger(__name__)

FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 60.0
_AT_ONCE = 8
_WHY = "its order was removed from the hub by hand before everything was released"


class Rescue:
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
        self._check = check
        self._now = now
        self.awaited: set[str] = set()
        """Orders that disappeared although nobody requested their deletion: the service places them again."""
        self._seats = asyncio.Semaphore(_AT_ONCE)
        self._gone: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        view.on_gone = self._gone.put_nowait

    async def run(self) -> None:
        """Runs until cancelled. Raises LeaseLost, in an exception group, once another may lead.

        Each order has a task of its own: none waits until another is written.
        """
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(self._keep(await self._gone.get()))

    async def _keep(self, item: dict[str, Any]) -> None:
        name = item["metadata"]["name"]
        try:
            if not is_lost(item, self._objects.place):
                if comes_again(item, self._objects.place):
                    self.awaited.add(from_kube.order_id(item, self._objects.place))
                return
            leftover = left_by(item, self._objects.place, self._now())
        except Refused as error:  # the sweep finds what it left outside
            logger.error("lost order cannot be read", extra={"order": name, "why": str(error)})
            return
        pause = FIRST_PAUSE
        while not await self._kept(item, leftover):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        logger.warning("order was removed by hand", extra={"order": name})

    async def _kept(self, item: dict[str, Any], leftover: Leftover | None) -> bool:
        async with self._seats:
            self._check()
            try:
                if leftover is not None:
                    await self._objects.create_leftover(leftover)
                self._check()
                await self._objects.delete_credentials(item)  # nobody else can find them any more
                await self._objects.delete_inputs(item)
            except LeaseLost:
                raise
            except BoatyardError as error:
                logger.warning("leftover not written", extra={"why": str(error)})
                return False
        return True


def is_lost(item: dict[str, Any], place: Place) -> bool:
    """Whether an order that disappeared had not ended, and the service does not place it again."""
    order = from_kube.to_order(item, place)
    return not comes_again(item, place) and order.status.phase != OrderPhase.DELETED


def comes_again(item: dict[str, Any], place: Place) -> bool:
    """Whether the service places the order again: it is the service's, and its deletion was not requested."""
    extension = (item.get("spec") or {}).get("boatyard") or {}
    return from_kube.order_id(item, place) != item["metadata"]["uid"] and not extension.get(
        "deletedAt"
    )


def left_by(item: dict[str, Any], place: Place, now: datetime) -> Leftover | None:
    """The Leftover for what a disappeared order still holds outside; None when it holds nothing."""
    order = from_kube.to_order(item, place)
    if not order.status.items:
        return None
    metadata = msgspec.structs.replace(order.metadata, deletion_timestamp=now)
    order = msgspec.structs.replace(order, metadata=metadata)
    # It may have disappeared before its deletion was planned: everything recorded must be released.
    _, leftover = rules.abandon(order, plan.replan(order, {}, ()), now)
    status = msgspec.structs.replace(leftover.status, message=_WHY)
    return msgspec.structs.replace(leftover, status=status)

"""Orders that went from the hub before they had ended: somebody took their finalizers off. Run beside the work.

What such an order still held outside stands in a Leftover from then on, and is released by it. An order of ours whose
deletion nobody asked for is left alone: the service places it again, and the new one finds everything by its keys.
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
    """Hears of orders that go from the moment it is made."""

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
        """Orders that went although nobody had asked for their end: the service places them again."""
        self._seats = asyncio.Semaphore(_AT_ONCE)
        self._gone: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        view.on_gone = self._gone.put_nowait

    async def run(self) -> None:
        """Until cancelled; LeaseLost, in a group, once another may lead. None waits for another to be written."""
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
        except Refused as error:  # what it has left outside is found by looking there
            logger.error("a lost order cannot be read", extra={"order": name, "why": str(error)})
            return
        pause = FIRST_PAUSE
        while not await self._kept(item, leftover):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        logger.warning("an order was removed by hand", extra={"order": name})

    async def _kept(self, item: dict[str, Any], leftover: Leftover | None) -> bool:
        async with self._seats:
            self._check()
            try:
                if leftover is not None:
                    await self._objects.create_leftover(leftover)
                self._check()
                await self._objects.delete_credentials(item)  # nobody else knows of them any more
                await self._objects.delete_inputs(item)
            except LeaseLost:
                raise
            except BoatyardError as error:
                logger.warning("leftover not written", extra={"why": str(error)})
                return False
        return True


def is_lost(item: dict[str, Any], place: Place) -> bool:
    """Whether an order that is gone had not ended and does not come again."""
    order = from_kube.to_order(item, place)
    return not comes_again(item, place) and order.status.phase != OrderPhase.DELETED


def comes_again(item: dict[str, Any], place: Place) -> bool:
    """Whether the service, which has not asked for its end, places it anew."""
    extension = (item.get("spec") or {}).get("boatyard") or {}
    return from_kube.order_id(item, place) != item["metadata"]["uid"] and not extension.get(
        "deletedAt"
    )


def left_by(item: dict[str, Any], place: Place, now: datetime) -> Leftover | None:
    """What an order that is gone has left outside; None when there is nothing."""
    order = from_kube.to_order(item, place)
    if not order.status.items:
        return None
    metadata = msgspec.structs.replace(order.metadata, deletion_timestamp=now)
    order = msgspec.structs.replace(order, metadata=metadata)
    # It may have gone before its deletion was planned: everything recorded is to go.
    _, leftover = rules.abandon(order, plan.replan(order, {}, ()), now)
    status = msgspec.structs.replace(leftover.status, message=_WHY)
    return msgspec.structs.replace(leftover, status=status)

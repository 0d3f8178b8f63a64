"""Tries again to release what a deletion left behind. Called by the engine, with growing delays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.changes import Archive, Change, Note, Replace, Unclaim, Unreserve, Wake
from boatyard.model.generated.boatyard import Item, Leftover, Order, OrderSpec, OrderStatus, Step
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.port import OrderBook
from boatyard.resources.clusters.ending import leftover_owner
from boatyard.resources.orders import progress
from boatyard.resources.orders.acting import work
from boatyard.resources.orders.reconciler import DriversFor
from boatyard.resources.orders.steps.context import Context
from boatyard.resources.orders.steps.telling import NoStories, Stories
from boatyard.resources.reconciling import Result, Turn

_FIRST_LOOK = 30.0
_ENDING_LOOK = 1.0
_LONGEST_LOOK = 3600.0


class LeftoverReconciler:
    def __init__(
        self,
        *,
        book_for: Callable[[Turn], OrderBook],
        drivers_for: DriversFor,
        stories: Stories | None = None,
    ) -> None:
        self._book_for = book_for
        self._drivers_for = drivers_for
        self._stories = stories or NoStories()

    async def reconcile(self, turn: Turn) -> Result:
        book = self._book_for(turn)
        leftover = await book.leftover(turn.id)
        if leftover is None:
            return Result()
        order = _as_order(leftover, turn.now)
        context = Context(
            order=order,
            drivers=await self._drivers_for(leftover.spec.hub),
            book=book,
            now=turn.now,
            items={item.key: item for item in leftover.status.items},
            stories=self._stories,
        )
        attempts, unfinished = await work(context, turn)
        items = tuple(context.items.values())
        steps = progress.advance(
            leftover.status.steps,
            items=items,
            attempts=attempts,
            deleting=True,
            order_id=leftover.id,
            now=turn.now,
        )
        # While the order exists, the end of its cluster may still reserve capacity for this leftover.
        finished = not items and await book.get(leftover.spec.order) is None
        return _written(
            leftover, items, steps, finished=finished, unfinished=unfinished, now=turn.now
        )

    async def poisoned(self, turn: Turn) -> Result:
        return Result(look_again=turn.now + timedelta(seconds=_LONGEST_LOOK))


def _as_order(leftover: Leftover, now: datetime) -> Order:
    """The leftover as a deleted order: steps take orders, and this much of one is enough to release its items."""
    return Order(
        id=leftover.spec.order,
        metadata=Metadata(tenant=leftover.metadata.tenant, deletion_timestamp=now),
        spec=OrderSpec(hub=leftover.spec.hub, cluster_name=leftover.spec.cluster_name),
        status=OrderStatus(
            items=leftover.status.items, steps=progress.reset(leftover.status.steps, now)
        ),
    )


def _written(
    leftover: Leftover,
    items: tuple[Item, ...],
    steps: tuple[Step, ...],
    *,
    finished: bool,
    unfinished: bool,
    now: datetime,
) -> Result:
    remaining = {item.key for item in items}
    released_items = [item for item in leftover.status.items if item.key not in remaining]
    changes: list[Change] = [
        Unclaim(f"{leftover.spec.order}/{item.key}") for item in released_items
    ]
    hub = leftover.spec.hub
    if finished:
        empty = msgspec.structs.replace(
            leftover, status=msgspec.structs.replace(leftover.status, items=(), steps=())
        )
        changes += [
            Unreserve(leftover_owner(leftover.id)),
            Archive(empty, note=Note("Released", "Everything left is released")),
            Wake("capacity", now),
        ]
        return Result(changes=changes, hub=hub)
    tries = 0 if released_items else leftover.status.tries + 1
    delay = (
        0.0
        if unfinished
        else _ENDING_LOOK
        if not items
        else min(_LONGEST_LOOK, _FIRST_LOOK * 2.0 ** min(tries, 16))
    )
    look_again = now + timedelta(seconds=delay)
    status = msgspec.structs.replace(
        leftover.status, items=items, steps=steps, tries=tries, next_look=look_again
    )
    note = (
        Note("Released", f"Released {', '.join(item.key for item in released_items)}")
        if released_items
        else None
    )
    changes.append(Replace(msgspec.structs.replace(leftover, status=status), note=note))
    return Result(changes=changes, look_again=look_again, hub=hub)

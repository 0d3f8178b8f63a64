"""Tries again to release what a deletion left behind. Called by the engine, with growing delays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.changes import Change, EventNote, Replace, Unclaim
from boatyard.model.backoff import Backoff
from boatyard.model.generated.boatyard import Item, Leftover, Order, OrderSpec, OrderStatus, Step
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.port import OrderBook
from boatyard.resources.leftovers.ending import end_leftover
from boatyard.resources.orders import progress
from boatyard.resources.orders.item_execution import try_ready_items
from boatyard.resources.orders.reconciler import DriversFor
from boatyard.resources.orders.steps.context import StepContext
from boatyard.resources.orders.steps.run_logs import NoRunLogSink, RunLogSink
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult

_BACKOFF = Backoff(first=30.0, longest=3600.0)
_ENDING_DELAY_SECONDS = 1.0


class LeftoverReconciler:
    def __init__(
        self,
        *,
        book_for: Callable[[ReconcilePass], OrderBook],
        drivers_for: DriversFor,
        run_logs: RunLogSink | None = None,
    ) -> None:
        self._book_for = book_for
        self._drivers_for = drivers_for
        self._run_logs = run_logs or NoRunLogSink()

    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        book = self._book_for(reconcile_pass)
        leftover = await book.get_leftover(reconcile_pass.id)
        if leftover is None:
            return ReconcileResult()
        order = _to_deleted_order(leftover, reconcile_pass.now)
        context = StepContext(
            order=order,
            drivers=await self._drivers_for(leftover.spec.hub),
            book=book,
            now=reconcile_pass.now,
            items={item.key: item for item in leftover.status.items},
            run_logs=self._run_logs,
        )
        attempts, unfinished = await try_ready_items(context, reconcile_pass)
        items = tuple(context.items.values())
        steps = progress.advance(
            leftover.status.steps,
            items=items,
            attempts=attempts,
            deleting=True,
            order_id=leftover.id,
            now=reconcile_pass.now,
        )
        # While the order exists, the end of its cluster may still reserve capacity for this leftover.
        finished = not items and await book.get(leftover.spec.order) is None
        return _make_result(
            leftover, items, steps, finished=finished, unfinished=unfinished, now=reconcile_pass.now
        )

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        return ReconcileResult(look_again=reconcile_pass.now + timedelta(seconds=_BACKOFF.longest))


def _to_deleted_order(leftover: Leftover, now: datetime) -> Order:
    """The leftover as a deleted order: steps take orders, and this much of one is enough to release its items."""
    return Order(
        id=leftover.spec.order,
        metadata=Metadata(tenant=leftover.metadata.tenant, deletion_timestamp=now),
        spec=OrderSpec(hub=leftover.spec.hub, cluster_name=leftover.spec.cluster_name),
        status=OrderStatus(
            items=leftover.status.items, steps=progress.reset(leftover.status.steps, now)
        ),
    )


def _make_result(
    leftover: Leftover,
    items: tuple[Item, ...],
    steps: tuple[Step, ...],
    *,
    finished: bool,
    unfinished: bool,
    now: datetime,
) -> ReconcileResult:
    remaining = {item.key for item in items}
    released_items = [item for item in leftover.status.items if item.key not in remaining]
    changes: list[Change] = [
        Unclaim(f"{leftover.spec.order}/{item.key}") for item in released_items
    ]
    hub = leftover.spec.hub
    if finished:
        return ReconcileResult(changes=[*changes, *end_leftover(leftover, now)], hub=hub)
    tries = 0 if released_items else leftover.status.tries + 1
    delay = 0.0 if unfinished else _ENDING_DELAY_SECONDS if not items else _BACKOFF.pause(tries + 1)
    look_again = now + timedelta(seconds=delay)
    status = msgspec.structs.replace(
        leftover.status, items=items, steps=steps, tries=tries, next_look=look_again
    )
    note = (
        EventNote("Released", f"Released {', '.join(item.key for item in released_items)}")
        if released_items
        else None
    )
    changes.append(Replace(msgspec.structs.replace(leftover, status=status), note=note))
    return ReconcileResult(changes=changes, look_again=look_again, hub=hub)

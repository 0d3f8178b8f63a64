"""Ensures and releases an order's items within one pass. Called by the reconcilers of orders and of leftovers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from boatyard.model.generated.boatyard import Item
from boatyard.model.outcome import Done
from boatyard.orderbook.port import list_requested_steps
from boatyard.resources.orders import plan, progress, rules
from boatyard.resources.orders.attempts import Attempt, run_attempt
from boatyard.resources.orders.steps import ENSURE_ACTIONS, RELEASE_ACTIONS
from boatyard.resources.orders.steps.context import StepContext
from boatyard.resources.reconciler import ReconcilePass

TRY_SECONDS = 30.0
_PASS_SECONDS = 0.5  # then the pass ends and its progress is written, so that people see it
_MAX_CONCURRENT_ITEMS = 16


async def try_ready_items(
    context: StepContext, reconcile_pass: ReconcilePass
) -> tuple[list[Attempt], bool]:
    """Tries all items that are ready, in waves, until none is ready or the pass has lasted long enough.

    Returns the attempts, and whether more could have been done. `context.items` is updated.
    """
    started = time.monotonic()
    steps = {step.name: step for step in context.order.status.steps}
    attempts: list[Attempt] = []
    requested_steps = list_requested_steps(context.order)
    waiting_keys: set[str] = set()  # items that were tried in this pass and are not done
    while True:
        ready = [
            (item, released)
            for released, items in (
                (True, plan.ready_to_remove(context.items.values())),
                (False, plan.ready_to_add(context.items.values(), requested_steps)),
            )
            for item in items
            if item.key not in waiting_keys
            and progress.can_try_step(steps.get(item.step), reconcile_pass.now)
        ]
        if not ready:
            return attempts, False
        if attempts and time.monotonic() - started > _PASS_SECONDS:
            return attempts, True
        for try_result in await _try_items(context, ready, reconcile_pass):
            attempts.append(try_result)
            confirmed = rules.apply_attempt(try_result.item, try_result)
            if not isinstance(try_result.result, Done):
                waiting_keys.add(try_result.item.key)
            elif confirmed is None:
                del context.items[try_result.item.key]
            else:
                context.items[try_result.item.key] = confirmed


async def _try_items(
    context: StepContext, ready: Sequence[tuple[Item, bool]], reconcile_pass: ReconcilePass
) -> Sequence[Attempt]:
    """Tries all items concurrently, a bounded number at a time. None starts once the lease may be lost."""
    semaphore = asyncio.Semaphore(_MAX_CONCURRENT_ITEMS)

    async def try_bounded(item: Item, released: bool) -> Attempt:
        async with semaphore:
            reconcile_pass.check_lease()
            act = (RELEASE_ACTIONS if released else ENSURE_ACTIONS)[item.kind](context, item)
            return await run_attempt(
                item,
                released=released,
                act=act,
                order_id=context.order.id,
                seconds=TRY_SECONDS,
            )

    if len(ready) == 1:
        return [await try_bounded(*ready[0])]
    # When one finds the lease lost, the others under way are awaited: no effect outlives its pass.
    answers = await asyncio.gather(
        *(try_bounded(item, released) for item, released in ready), return_exceptions=True
    )
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if isinstance(answer, Attempt)]

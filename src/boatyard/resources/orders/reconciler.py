"""Carries out one order on its hub: observe → plan → act → absorb. Called by the engine when the order is due."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.changes import Change, Due, Insert, Note, Replace, Unclaim
from boatyard.model import hub_names
from boatyard.model.errors import BoatyardError, NotFound
from boatyard.model.generated.boatyard import (
    Item,
    ItemState,
    Order,
    OrderPhase,
    OrderStatus,
    StepState,
)
from boatyard.model.generated.osac import ClusterRest
from boatyard.model.outcome import Done, Waiting
from boatyard.orderbook.port import OrderBook, retries, unreadable
from boatyard.platforms.port import API_ANSWERS, Access, ClusterSeen
from boatyard.resources.orders import plan, resting, rules
from boatyard.resources.orders.acting import TRY_SECONDS, work
from boatyard.resources.orders.attempts import Attempt, Failed, Fault, attempt
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.renewing import dated, is_due
from boatyard.resources.orders.road import ASK_ACCESS_AT
from boatyard.resources.orders.steps.context import Context
from boatyard.resources.orders.steps.telling import NoStories, Stories
from boatyard.resources.reconciling import Result, Turn

DriversFor = Callable[[str], Awaitable[HubDrivers]]

UNREADABLE = "Unreadable"  # reason of an order whose spec cannot be read
# The item that questions to the platform are recorded for.
_CONTROL_PLANE = Item(key="cluster", kind="cluster", step="install")


class OrderReconciler:
    """`book_for` returns the order book under the lease of one pass; `drivers_for` the drivers of a hub by id."""

    def __init__(
        self,
        *,
        book_for: Callable[[Turn], OrderBook],
        drivers_for: DriversFor,
        freeze_for: timedelta = resting.FREEZE_FOR,
        stories: Stories | None = None,
    ) -> None:
        self._book_for = book_for
        self._drivers_for = drivers_for
        self._freeze_for = freeze_for
        self._stories = stories or NoStories()

    async def reconcile(self, turn: Turn) -> Result:
        book = self._book_for(turn)
        order = await book.get(turn.id)
        if order is None or order.status.phase == OrderPhase.DELETED:
            return Result()
        retry_count = retries(order)
        if retry_count > order.status.retried:
            return _retried(order, retry_count, turn.now)
        if unreadable(order) and not _is_leaving(order):
            return _not_understood(order, unreadable(order), turn.now)
        if _is_leaving(order) and plan.needs_planning(order):
            return _plan_leaving(order, turn.now)
        try:
            drivers = await self._drivers_for(order.spec.hub)
        except BoatyardError as error:
            return _out_of_reach(order, error, turn.now)
        if _is_manual(order) and not _is_leaving(order):
            return await _observe(self._context(order, book, drivers, turn))
        if plan.needs_planning(order):
            return await self._plan(order, drivers, turn)
        if not _is_leaving(order) and resting.should_stop(order, self._freeze_for, turn.now):
            return _stop(order, turn.now)
        return await self._act(order, book, drivers, turn)

    async def poisoned(self, turn: Turn) -> Result:
        order = await self._book_for(turn).get(turn.id)
        if order is None:
            return Result()
        update = rules.quarantined(order, turn.now)
        note = Note("SetAside", "Set aside: workers died while working on it")
        return _written(order, update.status, look_again=update.look_again, now=turn.now, note=note)

    async def _plan(self, order: Order, drivers: HubDrivers, turn: Turn) -> Result:
        """Records the desired items before any of them is created: after a crash we know what may exist."""
        leaving: dict[str, Sequence[str]] = {}

        async def choose() -> Done:
            for shrinking in plan.shrinking(order):
                leaving[shrinking.node_set] = await drivers.platform.choose_leaving(
                    f"{order.id}/cluster", shrinking.node_set, shrinking.slots, shrinking.count
                )
            return Done()

        platform_attempt = await attempt(
            _CONTROL_PLANE,
            released=False,
            act=choose(),
            order_id=order.id,
            seconds=TRY_SECONDS,
        )
        if not isinstance(platform_attempt.answer, Done):
            return _not_planned(order, platform_attempt, turn.now)
        items = plan.replan(
            order,
            leaving,
            drivers.checks.names(),
            on_hosts=drivers.platform.needs_hosts(order.spec.platform_settings),
        )
        status = rules.planned(order, items, turn.now)
        note = _plan_note(order, leaving)
        return _written(order, status, look_again=turn.now, now=turn.now, note=note)

    async def _act(self, order: Order, book: OrderBook, drivers: HubDrivers, turn: Turn) -> Result:
        context = self._context(order, book, drivers, turn)
        attempts, unfinished = await work(context, turn)
        items = tuple(context.items.values())
        deleting = order.metadata.deletion_timestamp is not None
        if deleting and items and _is_late(order, turn.now):
            return _abandoned(order, items, turn.now)
        observation, access = None, None
        if not deleting and _has_control_plane(items):
            observation, access = await _look(context, items)
        elif not deleting and _answers_early(order, attempts):
            access = await _ask_access(context)
        update = rules.absorb(
            order,
            items=items,
            attempts=attempts,
            observation=observation,
            access=access,
            unfinished=unfinished,
            now=turn.now,
        )
        return _written(
            order,
            update.status,
            look_again=update.look_again,
            now=turn.now,
            freed=update.freed,
        )

    def _context(self, order: Order, book: OrderBook, drivers: HubDrivers, turn: Turn) -> Context:
        return Context(
            order=order,
            drivers=drivers,
            book=book,
            now=turn.now,
            items={item.key: item for item in order.status.items},
            stories=self._stories,
        )


async def _observe(context: Context) -> Result:
    """For an order under manual management: reads the cluster's state and changes nothing outside."""
    order, items, now = context.order, context.order.status.items, context.now
    observation, access = await _look(context, items) if _has_control_plane(items) else (None, None)
    update = rules.absorb(
        order,
        items=items,
        attempts=(),
        observation=observation,
        access=access,
        unfinished=False,
        now=now,
    )
    look_again = now + timedelta(seconds=rules.STEADY_LOOK)
    return _written(order, update.status, look_again=look_again, now=now)


async def _look(
    context: Context, items: Sequence[Item]
) -> tuple[ClusterSeen | None, Access | None]:
    """The cluster's state as the platform reports it, and new credentials when they are needed or due."""
    platform, key = context.drivers.platform, context.key("cluster")
    wants_access = plan.wants_access(context.order, items)
    # A hibernated cluster renews no certificates.
    renews = plan.rest_of(context.order) == ClusterRest.AWAKE
    observations: list[ClusterSeen] = []
    accesses: list[Access] = []

    async def observe() -> Done:
        observations.append(await platform.observe(key))
        if wants_access:
            with contextlib.suppress(NotFound):  # not yet; the next pass asks again
                accesses.append(dated(await platform.access(key), context.now))
        elif renews and is_due(context.order.status.facts.get(ASK_ACCESS_AT, ""), context.now):
            with contextlib.suppress(BoatyardError):  # ours stay valid for a while
                accesses.append(dated(await platform.access(key), context.now))
        return Done()

    platform_attempt = await attempt(
        _CONTROL_PLANE,
        released=False,
        act=observe(),
        order_id=context.order.id,
        seconds=TRY_SECONDS,
    )
    if plan.is_settled(items) and not isinstance(platform_attempt.answer, Done):
        return None, None  # not ready before credentials that may have changed are known
    return (observations[0] if observations else None), (accesses[0] if accesses else None)


def _answers_early(order: Order, attempts: Sequence[Attempt]) -> bool:
    """Whether the cluster's API answers already, while the cluster is still being installed."""
    return not order.status.credentials.kubeconfig and any(
        attempt.item.kind == "cluster"
        and isinstance(attempt.answer, Waiting)
        and attempt.answer.reason == API_ANSWERS
        for attempt in attempts
    )


async def _ask_access(context: Context) -> Access | None:
    accesses: list[Access] = []

    async def ask() -> Done:
        access = await context.drivers.platform.access(context.key("cluster"))
        accesses.append(dated(access, context.now))
        return Done()

    await attempt(
        _CONTROL_PLANE,
        released=False,
        act=ask(),
        order_id=context.order.id,
        seconds=TRY_SECONDS,
    )
    return accesses[0] if accesses else None


def _retried(order: Order, retry_count: int, now: datetime) -> Result:
    status = rules.retry(order, now, retry_count=retry_count).status
    note = Note("Retried", "Retry requested")
    return _written(order, status, look_again=now, now=now, note=note)


def _is_manual(order: Order) -> bool:
    return order.metadata.annotations.get(hub_names.MANAGEMENT_STATE) == hub_names.MANUAL


def _stop(order: Order, now: datetime) -> Result:
    """Turns a long freeze into a stop. Recorded before it is done, like every plan."""
    note = Note("Stopped", "Frozen for long; stopped now, nothing of it is lost")
    return _written(order, resting.stopping(order, now), look_again=now, now=now, note=note)


def _plan_leaving(order: Order, now: datetime) -> Result:
    """Plans the release of all recorded items. Needs no driver."""
    status = rules.planned(order, plan.replan(order, {}, ()), now)
    return _written(order, status, look_again=now, now=now, note=_plan_note(order, {}))


def _out_of_reach(order: Order, error: BoatyardError, now: datetime) -> Result:
    """The hub's drivers are not available: the current step says so, and a deletion still ends in time."""
    if _is_leaving(order) and _is_late(order, now):
        return _abandoned(order, order.status.items, now)
    failed = Failed(Fault.UNAVAILABLE, getattr(error, "reason", "Unavailable"), str(error))
    return _not_planned(order, _attempt_now(order, failed), now)


def _not_understood(order: Order, why: str, now: datetime) -> Result:
    """Fails an order whose spec cannot be read. It keeps its items and is planned again once the spec is readable."""
    reported = any(
        step.state == StepState.FAILED and (step.reason, step.message) == (UNREADABLE, why)
        for step in order.status.steps
    )
    if reported:
        look_again = now + timedelta(seconds=rules.STUCK_LOOK)
        return Result(look_again=look_again, hub=order.spec.hub)
    update = rules.absorb(
        order,
        items=order.status.items,
        attempts=[_attempt_now(order, Failed(Fault.REFUSED, UNREADABLE, why))],
        observation=None,
        access=None,
        unfinished=False,
        now=now,
    )
    status = msgspec.structs.replace(update.status, observed_generation=0)
    note = Note("Failed", why)
    return _written(order, status, look_again=update.look_again, now=now, note=note)


def _attempt_now(order: Order, failed: Failed) -> Attempt:
    """A failure of the whole order, as an attempt of its current step."""
    final_states = (StepState.DONE, StepState.RELEASED)
    step_name = next(
        (step.name for step in order.status.steps if step.state not in final_states), "install"
    )
    return Attempt(item=Item(key="hub", kind="hub", step=step_name), released=False, answer=failed)


def _is_leaving(order: Order) -> bool:
    return order.metadata.deletion_timestamp is not None


def _not_planned(order: Order, attempt: Attempt, now: datetime) -> Result:
    """The platform could not choose which nodes leave: nothing is planned, and the install step says why."""
    update = rules.absorb(
        order,
        items=order.status.items,
        attempts=[attempt],
        observation=None,
        access=None,
        unfinished=False,
        now=now,
    )
    return _written(order, update.status, look_again=update.look_again, now=now)


def _has_control_plane(items: Sequence[Item]) -> bool:
    return any(item.kind == "cluster" and item.state == ItemState.PRESENT for item in items)


def _is_late(order: Order, now: datetime) -> bool:
    return order.spec.delete_by is not None and now >= order.spec.delete_by


def _abandoned(order: Order, items: tuple[Item, ...], now: datetime) -> Result:
    remaining = {item.key for item in items}
    freed = tuple(item.key for item in order.status.items if item.key not in remaining)
    status, leftover = rules.abandon(order, items, now)
    note = Note(
        "Abandoned", f"{len(items)} things could not be released in time and are kept aside"
    )
    result = _written(order, status, look_again=None, now=now, freed=freed, note=note)
    leftover_changes: list[Change] = [
        Insert(leftover, note=note),
        Due("Leftover", leftover.id, now, tenant=leftover.metadata.tenant, hub=order.spec.hub),
    ]
    return dataclasses.replace(result, changes=(*result.changes, *leftover_changes))


def _written(
    order: Order,
    status: OrderStatus,
    *,
    look_again: datetime | None,
    now: datetime,
    freed: Sequence[str] = (),
    note: Note | None = None,
) -> Result:
    """One write: the order if its status changed, its freed claims, and its cluster made due."""
    changes: list[Change] = [Unclaim(f"{order.id}/{key}") for key in freed]
    if status != order.status:
        changes.append(Replace(msgspec.structs.replace(order, status=status), note=note))
        if rules.shown_to_cluster(status) != rules.shown_to_cluster(order.status):
            changes.append(
                Due("Cluster", order.id, now, tenant=order.metadata.tenant, hub=order.spec.hub)
            )
    return Result(changes=changes, look_again=look_again, hub=order.spec.hub)


def _plan_note(order: Order, leaving: Mapping[str, Sequence[str]]) -> Note:
    if order.metadata.deletion_timestamp is not None:
        return Note("Deleting", "Taking everything back")
    leaving_slots = sorted(slot for slots in leaving.values() for slot in slots)
    if leaving_slots:
        return Note("Planned", f"Planned; leaving: {', '.join(leaving_slots)}")
    return Note("Planned", "Planned")

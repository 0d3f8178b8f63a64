"""Carries out one order on its hub: observe → plan → act → absorb. Called by the engine when the order is due."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.changes import Change, Due, EventNote, Replace, Unclaim
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
from boatyard.orderbook.mirror import begin_leftover
from boatyard.orderbook.port import OrderBook, count_requested_retries, get_unreadable_reason
from boatyard.platforms.port import API_ANSWERS, ClusterAccess, ObservedCluster
from boatyard.resources.orders import hibernation, plan, rules
from boatyard.resources.orders.attempts import Attempt, AttemptFailure, AttemptFault, run_attempt
from boatyard.resources.orders.credential_renewal import is_renewal_due, with_renewal_time
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.orders.item_execution import TRY_SECONDS, try_ready_items
from boatyard.resources.orders.item_graph import RENEWAL_TIME_FACT
from boatyard.resources.orders.steps.context import StepContext
from boatyard.resources.orders.steps.run_logs import NoRunLogSink, RunLogSink
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult

DriversFor = Callable[[str], Awaitable[HubDrivers]]

UNREADABLE = "Unreadable"  # reason of an order whose spec cannot be read
# The item that questions to the platform are recorded for.
_CONTROL_PLANE = Item(key="cluster", kind="cluster", step="install")


class OrderReconciler:
    """`book_for` returns the order book under the lease of one pass; `drivers_for` the drivers of a hub by id."""

    def __init__(
        self,
        *,
        book_for: Callable[[ReconcilePass], OrderBook],
        drivers_for: DriversFor,
        freeze_for: timedelta = hibernation.LONGEST_FREEZE,
        run_logs: RunLogSink | None = None,
    ) -> None:
        self._book_for = book_for
        self._drivers_for = drivers_for
        self._freeze_for = freeze_for
        self._run_logs = run_logs or NoRunLogSink()

    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        book = self._book_for(reconcile_pass)
        order = await book.get(reconcile_pass.id)
        if order is None or order.status.phase == OrderPhase.DELETED:
            return ReconcileResult()
        retry_count = count_requested_retries(order)
        if retry_count > order.status.retried:
            return _apply_retry(order, retry_count, reconcile_pass.now)
        if get_unreadable_reason(order) and not _is_being_deleted(order):
            return _fail_unreadable_order(order, get_unreadable_reason(order), reconcile_pass.now)
        if _is_being_deleted(order) and plan.needs_planning(order):
            return _plan_deletion(order, reconcile_pass.now)
        try:
            drivers = await self._drivers_for(order.spec.hub)
        except BoatyardError as error:
            return _report_unavailable_drivers(order, error, reconcile_pass.now)
        if _is_manual(order) and not _is_being_deleted(order):
            return await _reconcile_manual_order(
                self._context(order, book, drivers, reconcile_pass)
            )
        if plan.needs_planning(order):
            return await self._plan(order, drivers, reconcile_pass)
        if not _is_being_deleted(order) and hibernation.should_stop(
            order, self._freeze_for, reconcile_pass.now
        ):
            return _stop_frozen_cluster(order, reconcile_pass.now)
        return await self._act(order, book, drivers, reconcile_pass)

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        order = await self._book_for(reconcile_pass).get(reconcile_pass.id)
        if order is None:
            return ReconcileResult()
        update = rules.quarantine(order, reconcile_pass.now)
        note = EventNote("SetAside", "Set aside: workers died while working on it")
        return _make_result(
            order, update.status, look_again=update.look_again, now=reconcile_pass.now, note=note
        )

    async def _plan(
        self, order: Order, drivers: HubDrivers, reconcile_pass: ReconcilePass
    ) -> ReconcileResult:
        """Records the desired items before any of them is created: after a crash we know what may exist."""
        leaving: dict[str, Sequence[str]] = {}

        async def choose() -> Done:
            for shrinking in plan.list_node_set_reductions(order):
                leaving[shrinking.node_set] = await drivers.platform.choose_leaving(
                    f"{order.id}/cluster", shrinking.node_set, shrinking.slots, shrinking.count
                )
            return Done()

        platform_attempt = await run_attempt(
            _CONTROL_PLANE,
            released=False,
            act=choose(),
            order_id=order.id,
            seconds=TRY_SECONDS,
        )
        if not isinstance(platform_attempt.result, Done):
            return _report_failed_planning(order, platform_attempt, reconcile_pass.now)
        items = plan.replan(
            order,
            leaving,
            drivers.checks.list_names(),
            on_hosts=drivers.platform.needs_hosts(order.spec.platform_settings),
        )
        status = rules.make_planned_status(order, items, reconcile_pass.now)
        note = _plan_note(order, leaving)
        return _make_result(
            order, status, look_again=reconcile_pass.now, now=reconcile_pass.now, note=note
        )

    async def _act(
        self, order: Order, book: OrderBook, drivers: HubDrivers, reconcile_pass: ReconcilePass
    ) -> ReconcileResult:
        context = self._context(order, book, drivers, reconcile_pass)
        attempts, unfinished = await try_ready_items(context, reconcile_pass)
        items = tuple(context.items.values())
        deleting = order.metadata.deletion_timestamp is not None
        if deleting and items and _is_past_deadline(order, reconcile_pass.now):
            return _abandon(order, items, reconcile_pass.now)
        observation, access = None, None
        if not deleting and _has_control_plane(items):
            observation, access = await _observe_cluster(context, items)
        elif not deleting and _is_api_answering_early(order, attempts):
            access = await _fetch_access(context)
        update = rules.absorb(
            order,
            items=items,
            attempts=attempts,
            observation=observation,
            access=access,
            unfinished=unfinished,
            now=reconcile_pass.now,
        )
        return _make_result(
            order,
            update.status,
            look_again=update.look_again,
            now=reconcile_pass.now,
            freed=update.freed_keys,
        )

    def _context(
        self, order: Order, book: OrderBook, drivers: HubDrivers, reconcile_pass: ReconcilePass
    ) -> StepContext:
        return StepContext(
            order=order,
            drivers=drivers,
            book=book,
            now=reconcile_pass.now,
            items={item.key: item for item in order.status.items},
            run_logs=self._run_logs,
        )


async def _reconcile_manual_order(context: StepContext) -> ReconcileResult:
    """For an order under manual management: reads the cluster's state and changes nothing outside."""
    order, items, now = context.order, context.order.status.items, context.now
    observation, access = (
        await _observe_cluster(context, items) if _has_control_plane(items) else (None, None)
    )
    update = rules.absorb(
        order,
        items=items,
        attempts=(),
        observation=observation,
        access=access,
        unfinished=False,
        now=now,
    )
    look_again = now + timedelta(seconds=rules.STEADY_INTERVAL_SECONDS)
    return _make_result(order, update.status, look_again=look_again, now=now)


async def _observe_cluster(
    context: StepContext, items: Sequence[Item]
) -> tuple[ObservedCluster | None, ClusterAccess | None]:
    """The cluster's state as the platform reports it, and new credentials when they are needed or due."""
    platform, key = context.drivers.platform, context.key("cluster")
    wants_access = plan.needs_credentials(context.order, items)
    # A hibernated cluster renews no certificates.
    renews = plan.get_desired_rest(context.order) == ClusterRest.AWAKE
    observations: list[ObservedCluster] = []
    accesses: list[ClusterAccess] = []

    async def observe() -> Done:
        observations.append(await platform.observe(key))
        if wants_access:
            with contextlib.suppress(NotFound):  # not yet; the next pass asks again
                accesses.append(with_renewal_time(await platform.access(key), context.now))
        elif renews and is_renewal_due(
            context.order.status.facts.get(RENEWAL_TIME_FACT, ""), context.now
        ):
            with contextlib.suppress(BoatyardError):  # ours stay valid for a while
                accesses.append(with_renewal_time(await platform.access(key), context.now))
        return Done()

    platform_attempt = await run_attempt(
        _CONTROL_PLANE,
        released=False,
        act=observe(),
        order_id=context.order.id,
        seconds=TRY_SECONDS,
    )
    if plan.is_settled(items) and not isinstance(platform_attempt.result, Done):
        return None, None  # not ready before credentials that may have changed are known
    return (observations[0] if observations else None), (accesses[0] if accesses else None)


def _is_api_answering_early(order: Order, attempts: Sequence[Attempt]) -> bool:
    """Whether the cluster's API answers already, while the cluster is still being installed."""
    return not order.status.credentials.kubeconfig and any(
        attempt.item.kind == "cluster"
        and isinstance(attempt.result, Waiting)
        and attempt.result.reason == API_ANSWERS
        for attempt in attempts
    )


async def _fetch_access(context: StepContext) -> ClusterAccess | None:
    accesses: list[ClusterAccess] = []

    async def ask() -> Done:
        access = await context.drivers.platform.access(context.key("cluster"))
        accesses.append(with_renewal_time(access, context.now))
        return Done()

    await run_attempt(
        _CONTROL_PLANE,
        released=False,
        act=ask(),
        order_id=context.order.id,
        seconds=TRY_SECONDS,
    )
    return accesses[0] if accesses else None


def _apply_retry(order: Order, retry_count: int, now: datetime) -> ReconcileResult:
    status = rules.retry(order, now, retry_count=retry_count).status
    note = EventNote("Retried", "Retry requested")
    return _make_result(order, status, look_again=now, now=now, note=note)


def _is_manual(order: Order) -> bool:
    return order.metadata.annotations.get(hub_names.MANAGEMENT_STATE) == hub_names.MANUAL


def _stop_frozen_cluster(order: Order, now: datetime) -> ReconcileResult:
    """Turns a long freeze into a stop. Recorded before it is done, like every plan."""
    note = EventNote("Stopped", "Frozen for long; stopped now, nothing of it is lost")
    return _make_result(
        order, hibernation.plan_stop(order, now), look_again=now, now=now, note=note
    )


def _plan_deletion(order: Order, now: datetime) -> ReconcileResult:
    """Plans the release of all recorded items. Needs no driver."""
    status = rules.make_planned_status(order, plan.replan(order, {}, ()), now)
    return _make_result(order, status, look_again=now, now=now, note=_plan_note(order, {}))


def _report_unavailable_drivers(
    order: Order, error: BoatyardError, now: datetime
) -> ReconcileResult:
    """The hub's drivers are not available: the current step says so, and a deletion still ends in time."""
    if _is_being_deleted(order) and _is_past_deadline(order, now):
        return _abandon(order, order.status.items, now)
    failed = AttemptFailure(
        AttemptFault.UNAVAILABLE, getattr(error, "reason", "Unavailable"), str(error)
    )
    return _report_failed_planning(order, _make_failed_attempt(order, failed), now)


def _fail_unreadable_order(order: Order, why: str, now: datetime) -> ReconcileResult:
    """Fails an order whose spec cannot be read. It keeps its items and is planned again once the spec is readable."""
    reported = any(
        step.state == StepState.FAILED and (step.reason, step.message) == (UNREADABLE, why)
        for step in order.status.steps
    )
    if reported:
        look_again = now + timedelta(seconds=rules.STUCK_INTERVAL_SECONDS)
        return ReconcileResult(look_again=look_again, hub=order.spec.hub)
    update = rules.absorb(
        order,
        items=order.status.items,
        attempts=[
            _make_failed_attempt(order, AttemptFailure(AttemptFault.REFUSED, UNREADABLE, why))
        ],
        observation=None,
        access=None,
        unfinished=False,
        now=now,
    )
    status = msgspec.structs.replace(update.status, observed_generation=0)
    note = EventNote("Failed", why)
    return _make_result(order, status, look_again=update.look_again, now=now, note=note)


def _make_failed_attempt(order: Order, failed: AttemptFailure) -> Attempt:
    """A failure of the whole order, as an attempt of its current step."""
    final_states = (StepState.DONE, StepState.RELEASED)
    step_name = next(
        (step.name for step in order.status.steps if step.state not in final_states), "install"
    )
    return Attempt(item=Item(key="hub", kind="hub", step=step_name), released=False, result=failed)


def _is_being_deleted(order: Order) -> bool:
    return order.metadata.deletion_timestamp is not None


def _report_failed_planning(order: Order, attempt: Attempt, now: datetime) -> ReconcileResult:
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
    return _make_result(order, update.status, look_again=update.look_again, now=now)


def _has_control_plane(items: Sequence[Item]) -> bool:
    return any(item.kind == "cluster" and item.state == ItemState.PRESENT for item in items)


def _is_past_deadline(order: Order, now: datetime) -> bool:
    return order.spec.delete_by is not None and now >= order.spec.delete_by


def _abandon(order: Order, items: tuple[Item, ...], now: datetime) -> ReconcileResult:
    remaining = {item.key for item in items}
    freed = tuple(item.key for item in order.status.items if item.key not in remaining)
    status, leftover = rules.abandon(order, items, now)
    note = EventNote(
        "Abandoned", f"{len(items)} things could not be released in time and are kept aside"
    )
    result = _make_result(order, status, look_again=None, now=now, freed=freed, note=note)
    changes = (*result.changes, *begin_leftover(leftover, note, now))
    return dataclasses.replace(result, changes=changes)


def _make_result(
    order: Order,
    status: OrderStatus,
    *,
    look_again: datetime | None,
    now: datetime,
    freed: Sequence[str] = (),
    note: EventNote | None = None,
) -> ReconcileResult:
    """One write: the order if its status changed, its freed claims, and its cluster made due."""
    changes: list[Change] = [Unclaim(f"{order.id}/{key}") for key in freed]
    if status != order.status:
        changes.append(Replace(msgspec.structs.replace(order, status=status), note=note))
        if rules.select_cluster_fields(status) != rules.select_cluster_fields(order.status):
            changes.append(
                Due("Cluster", order.id, now, tenant=order.metadata.tenant, hub=order.spec.hub)
            )
    return ReconcileResult(changes=changes, look_again=look_again, hub=order.spec.hub)


def _plan_note(order: Order, leaving: Mapping[str, Sequence[str]]) -> EventNote:
    if order.metadata.deletion_timestamp is not None:
        return EventNote("Deleting", "Taking everything back")
    leaving_slots = sorted(slot for slots in leaving.values() for slot in slots)
    if leaving_slots:
        return EventNote("Planned", f"Planned; leaving: {', '.join(leaving_slots)}")
    return EventNote("Planned", "Planned")

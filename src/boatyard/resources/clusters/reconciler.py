"""Places a cluster on a hub, puts its order there, and copies the order's status back. Called by the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.changes import (
    Archive,
    Change,
    EventNote,
    Replace,
    Require,
    Reserve,
    Unreserve,
    WakeWaiting,
)
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Exhausted, Unavailable
from boatyard.model.generated.boatyard import Backup, Order, OrderPhase, OrderSpec
from boatyard.model.generated.osac import (
    Cluster,
    ClusterConditionType,
    ClusterRest,
    ClusterState,
    ClusterStatus,
    ClusterTemplate,
    ClusterVersion,
    ConditionStatus,
    Hub,
    Placement,
)
from boatyard.model.reasons import PlacementReason
from boatyard.orderbook.mirror import make_leftover_copy_changes
from boatyard.orderbook.port import OrderBook
from boatyard.resources.clusters import deletion, placement, status
from boatyard.resources.clusters.placement import HubUsage, NotPlaced
from boatyard.resources.orders import rules
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult

BookFor = Callable[[ReconcilePass, str], Awaitable[OrderBook]]  # the order book of a hub by id

CAPACITY_WAKE = "capacity"  # a Wake of this name makes clusters due that wait for capacity
_SLOW_INTERVAL_SECONDS = 300.0
_GRACE_PERIOD = timedelta(minutes=2)  # for a hub that ends it in time and reports it late


class ClusterReconciler:
    def __init__(self, *, ledger: Ledger, book_for: BookFor, delete_within: timedelta) -> None:
        self._ledger = ledger
        self._book_for = book_for
        self._delete_within = delete_within

    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        cluster = await self._ledger.documents.get(Cluster, reconcile_pass.id)
        if cluster is None:
            return ReconcileResult()
        if cluster.metadata.deletion_timestamp is not None:
            return await self._delete(cluster, reconcile_pass)
        if not cluster.status.hub:
            return await self._place(cluster, reconcile_pass)
        return await self._sync_with_order(cluster, reconcile_pass)

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        return ReconcileResult(
            look_again=reconcile_pass.now + timedelta(seconds=_SLOW_INTERVAL_SECONDS)
        )

    async def _place(self, cluster: Cluster, reconcile_pass: ReconcilePass) -> ReconcileResult:
        """Chooses a hub and reserves capacity on it in the same transaction. The next pass creates the order."""
        views = await self._list_hub_usage()
        decision = placement.place(cluster, views, backup_on=await self._backup_hub(cluster))
        if isinstance(decision, NotPlaced):
            return _wait_for_capacity(cluster, decision, reconcile_pass.now)
        hub = decision.hub
        new_placement = Placement(
            hub=hub.id,
            decided_at=reconcile_pass.now,
            reason=decision.reason,
            candidates=decision.candidates,
        )
        new_status = msgspec.structs.replace(
            cluster.status,
            hub=hub.id,
            placement=new_placement,
            state=ClusterState.PROGRESSING,
            state_transition_time=cluster.status.state_transition_time or reconcile_pass.now,
        )
        changes: list[Change] = [
            Reserve(
                placement.get_capacity_pool(hub.id, resource),
                owner=cluster.id,
                amount=amount,
                capacity=placement.get_capacity(hub, resource),
            )
            for resource, amount in placement.get_required_amounts(cluster).items()
        ]
        changes.append(Require("Hub", hub.id))  # nobody removes it at the same moment
        changes.append(
            _make_status_change(cluster, new_status, EventNote("Placed", _format_placement(hub)))
        )
        return ReconcileResult(changes=changes, look_again=reconcile_pass.now, hub=hub.id)

    async def _backup_hub(self, cluster: Cluster) -> str:
        """The hub that stores the backup a new cluster is created from; empty without a backup."""
        if not cluster.spec.restore.backup:
            return ""
        backup = await self._ledger.documents.get(Backup, cluster.spec.restore.backup)
        return backup.status.hub if backup is not None else ""

    async def _list_hub_usage(self) -> list[HubUsage]:
        hubs = (await self._ledger.documents.list(Hub, limit=1000, with_total=False)).items
        reserved = await self._ledger.claims.sum_reserved_by_pool()
        return [
            HubUsage(
                hub=hub,
                reserved={
                    resource: reserved.get(placement.get_capacity_pool(hub.id, resource), 0)
                    for resource in {*placement.get_capacities(hub), placement.CLUSTERS_RESOURCE}
                },
            )
            for hub in hubs
        ]

    async def _sync_with_order(
        self, cluster: Cluster, reconcile_pass: ReconcilePass
    ) -> ReconcileResult:
        """Updates the order from the cluster's spec, and the cluster's status from the order."""
        book = await self._book_for(reconcile_pass, cluster.status.hub)
        order = await book.get(cluster.id)
        version = await self._version(cluster)
        settings = (
            order.spec.platform_settings if order else await self._read_platform_settings(cluster)
        )
        desired_spec = status.to_order_spec(cluster, version, settings)
        if order is None or order.spec.generation != desired_spec.generation:
            return await self._write_order(cluster, desired_spec, book, reconcile_pass)
        new_status = status.status_from_order(cluster, order, reconcile_pass.now)
        return ReconcileResult(
            changes=self._make_status_changes(cluster, new_status, reconcile_pass.now),
            look_again=reconcile_pass.now + timedelta(seconds=_SLOW_INTERVAL_SECONDS),
            hub=cluster.status.hub,
        )

    async def _write_order(
        self,
        cluster: Cluster,
        desired_spec: OrderSpec,
        book: OrderBook,
        reconcile_pass: ReconcilePass,
    ) -> ReconcileResult:
        """Reserves capacity, then writes the order. The order's first progress makes the cluster due again."""
        if desired_spec.generation > 1:  # the first generation was reserved at placement
            reservations = await self._make_grown_reservations(cluster)
            try:
                await self._ledger.commit(
                    reservations, lease=reconcile_pass.lease, now=reconcile_pass.now
                )
            except Exhausted:
                return _wait_to_grow(cluster, reconcile_pass.now)
        await book.put(
            cluster.id, tenant=cluster.metadata.tenant, spec=desired_spec, now=reconcile_pass.now
        )
        return ReconcileResult(
            look_again=reconcile_pass.now + timedelta(seconds=_SLOW_INTERVAL_SECONDS),
            hub=cluster.status.hub,
        )

    def _make_status_changes(
        self, cluster: Cluster, new_status: ClusterStatus, now: datetime
    ) -> Sequence[Change]:
        if new_status == cluster.status:
            return ()
        changes: list[Change] = []
        settled = (
            new_status.state == ClusterState.READY
            and new_status.observed_generation == cluster.metadata.generation
            and new_status.observed_generation > 1  # the first generation frees nothing
        )
        # The generation too: a change done within one pass was never PROGRESSING here.
        before = (cluster.status.state, cluster.status.observed_generation)
        if settled and before != (new_status.state, new_status.observed_generation):
            changes += self._make_final_reservations(cluster)
            changes.append(WakeWaiting(CAPACITY_WAKE, now))
        changes.append(_make_status_change(cluster, new_status, _state_note(cluster, new_status)))
        return changes

    def _make_final_reservations(self, cluster: Cluster) -> list[Change]:
        """After a change is done, reserves exactly what is in use: frees what a scale down no longer needs."""
        hub = cluster.status.hub
        return [
            Unreserve(cluster.id),  # also of host types that are no longer used
            *(
                Reserve(
                    placement.get_capacity_pool(hub, resource),
                    owner=cluster.id,
                    amount=amount,
                    capacity=placement.UNBOUNDED,
                )
                for resource, amount in placement.get_required_amounts(cluster).items()
            ),
        ]

    async def _make_grown_reservations(self, cluster: Cluster) -> list[Change]:
        """Reservations that must grow. A smaller spec frees nothing yet: the nodes still exist."""
        hub = await self._ledger.documents.get(Hub, cluster.status.hub)
        if hub is None:
            return []
        reserved = await self._ledger.claims.list_reservations(cluster.id)
        return [
            Reserve(
                placement.get_capacity_pool(hub.id, resource),
                owner=cluster.id,
                amount=amount,
                capacity=placement.get_capacity(hub, resource),
            )
            for resource, amount in placement.get_required_amounts(cluster).items()
            if amount > reserved.get(placement.get_capacity_pool(hub.id, resource), 0)
        ]

    async def _read_platform_settings(self, cluster: Cluster) -> Mapping[str, str]:
        """The template's settings for the platform. Read once: a cluster keeps those it was ordered with."""
        template = await self._ledger.documents.get(ClusterTemplate, cluster.spec.template.id)
        return template.platform_settings if template is not None else {}

    async def _version(self, cluster: Cluster) -> ClusterVersion | None:
        if not cluster.spec.version.id:
            return None
        return await self._ledger.documents.get(ClusterVersion, cluster.spec.version.id)

    async def _delete(self, cluster: Cluster, reconcile_pass: ReconcilePass) -> ReconcileResult:
        """Requests the deletion of the order, and archives the cluster with a receipt once the order has ended."""
        if not cluster.status.hub:
            note = EventNote("Deleted", "Deleted before anything was made")
            return ReconcileResult(
                changes=[Unreserve(cluster.id), _make_archive_change(cluster, note)]
            )
        try:
            book = await self._book_for(reconcile_pass, cluster.status.hub)
            order = await book.get(cluster.id)
        except Unavailable:
            if not self._is_past_deadline(cluster, reconcile_pass.now):
                raise
            return await self._abandon(cluster, reconcile_pass)
        if order is None:
            order_copy = await self._ledger.documents.get(Order, cluster.id)
            if order_copy is not None:
                return await self._delete_lost_order(cluster, order_copy, book, reconcile_pass)
            await book.forget(cluster.id, tenant=cluster.metadata.tenant, now=reconcile_pass.now)
            note = EventNote("Deleted", "Deleted; its hub holds nothing of it")
            return ReconcileResult(
                changes=[
                    Unreserve(cluster.id),
                    _make_archive_change(cluster, note),
                    WakeWaiting(CAPACITY_WAKE, reconcile_pass.now),
                ]
            )
        if order.status.phase == OrderPhase.DELETED:
            return await self._finish_deletion(cluster, order, book, reconcile_pass)
        if order.metadata.deletion_timestamp is None and not await self._is_still_finding_items(
            cluster, order, reconcile_pass
        ):
            await book.request_delete(
                cluster.id,
                delete_by=reconcile_pass.now + self._delete_within,
                now=reconcile_pass.now,
            )
        new_status = status.status_from_order(cluster, order, reconcile_pass.now)
        changes = (
            [] if new_status == cluster.status else [_make_status_change(cluster, new_status, None)]
        )
        return ReconcileResult(
            changes=changes,
            look_again=reconcile_pass.now + timedelta(seconds=_SLOW_INTERVAL_SECONDS),
            hub=cluster.status.hub,
        )

    async def _delete_lost_order(
        self, cluster: Cluster, order_copy: Order, book: OrderBook, reconcile_pass: ReconcilePass
    ) -> ReconcileResult:
        """Handles an order that its hub lost before it was deleted; its items still exist outside.

        If the hub's operator noticed, they are in a Leftover. Otherwise the order is created again, and deleted once
        it has found its items by their keys: an order without recorded items would release nothing.
        """
        if await book.get_leftover(cluster.id) is not None:
            return await self._abandon(cluster, reconcile_pass)
        version = await self._version(cluster)
        spec = status.to_order_spec(cluster, version, order_copy.spec.platform_settings)
        await book.put(
            cluster.id, tenant=cluster.metadata.tenant, spec=spec, now=reconcile_pass.now
        )
        return ReconcileResult(
            look_again=reconcile_pass.now + timedelta(seconds=_SLOW_INTERVAL_SECONDS),
            hub=cluster.status.hub,
        )

    async def _is_still_finding_items(
        self, cluster: Cluster, order: Order, reconcile_pass: ReconcilePass
    ) -> bool:
        """Whether a lost order that was created again is still finding its items. False once the deletion is late."""
        if not deletion.was_created_after_deletion(cluster, order) or self._is_past_deadline(
            cluster, reconcile_pass.now
        ):
            return False
        return await self._ledger.documents.get_archived(Order, cluster.id, sealed=True) is not None

    async def _finish_deletion(
        self, cluster: Cluster, order: Order, book: OrderBook, reconcile_pass: ReconcilePass
    ) -> ReconcileResult:
        """Archives the cluster after its order has ended. Leftover hosts stay reserved until they are released."""
        leftover_reservations = deletion.reserve_leftover_hosts(cluster, order)
        if leftover_reservations:
            changes: list[Change] = [Unreserve(cluster.id), *leftover_reservations]
            await self._ledger.commit(changes, lease=reconcile_pass.lease, now=reconcile_pass.now)
        await book.forget(cluster.id, tenant=cluster.metadata.tenant, now=reconcile_pass.now)
        return ReconcileResult(
            changes=[
                Unreserve(cluster.id),
                _make_archive_change(cluster, deletion.make_receipt_note(order)),
                WakeWaiting(CAPACITY_WAKE, reconcile_pass.now),
            ]
        )

    def _is_past_deadline(self, cluster: Cluster, now: datetime) -> bool:
        """Whether the time that a deletion may take is over, plus a grace period."""
        deletion_time = cluster.metadata.deletion_timestamp
        return (
            deletion_time is not None and now >= deletion_time + self._delete_within + _GRACE_PERIOD
        )

    async def _abandon(self, cluster: Cluster, reconcile_pass: ReconcilePass) -> ReconcileResult:
        """Ends the deletion without the hub. The items last seen become a Leftover, released when the hub is back."""
        order = await self._ledger.documents.get(
            Order, cluster.id
        ) or deletion.make_unmirrored_order(cluster, reconcile_pass.now)
        final_status, leftover = rules.abandon(order, order.status.items, reconcile_pass.now)
        order = msgspec.structs.replace(order, status=final_status)
        changes: list[Change] = [
            Unreserve(cluster.id),
            *deletion.reserve_leftover_hosts(cluster, order),
            *make_leftover_copy_changes(leftover, reconcile_pass.now),
        ]
        if order.metadata.creation_timestamp is not None:  # else the ledger has no copy of it
            changes.append(Archive(order))
        changes += [
            _make_archive_change(cluster, deletion.make_receipt_note(order)),
            WakeWaiting(CAPACITY_WAKE, reconcile_pass.now),
        ]
        return ReconcileResult(changes=changes)


def _make_status_change(
    cluster: Cluster, new_status: ClusterStatus, note: EventNote | None
) -> Change:
    return Replace(msgspec.structs.replace(cluster, status=new_status), note=note)


def _make_archive_change(cluster: Cluster, note: EventNote) -> Change:
    metadata = msgspec.structs.replace(cluster.metadata, finalizers=())
    return Archive(msgspec.structs.replace(cluster, metadata=metadata), note=note)


def _wait_for_capacity(cluster: Cluster, decision: NotPlaced, now: datetime) -> ReconcileResult:
    """The cluster waits, with every hub's reason, and is due again when capacity changes."""
    old = cluster.status.placement
    same = (old.reason, old.candidates) == (decision.reason, decision.candidates)
    new_placement = (
        old
        if same
        else Placement(decided_at=now, reason=decision.reason, candidates=decision.candidates)
    )
    new_status = status.make_waiting_status(
        cluster, new_placement, reason=decision.reason, message=decision.message, now=now
    )
    changes = (
        []
        if new_status == cluster.status
        else [
            _make_status_change(cluster, new_status, EventNote(decision.reason, decision.message))
        ]
    )
    return ReconcileResult(
        changes=changes,
        look_again=now + timedelta(seconds=_SLOW_INTERVAL_SECONDS),
        waiting_for=CAPACITY_WAKE,
    )


def _wait_to_grow(cluster: Cluster, now: datetime) -> ReconcileResult:
    message = "the hub has no room for the nodes added; the cluster stays as it is until there is"
    new_status = status.make_waiting_status(
        cluster,
        cluster.status.placement,
        reason=PlacementReason.NO_CAPACITY,
        message=message,
        now=now,
    )
    changes = (
        []
        if new_status == cluster.status
        else [
            _make_status_change(
                cluster, new_status, EventNote(PlacementReason.NO_CAPACITY, message)
            )
        ]
    )
    return ReconcileResult(
        changes=changes,
        look_again=now + timedelta(seconds=_SLOW_INTERVAL_SECONDS),
        hub=cluster.status.hub,
        waiting_for=CAPACITY_WAKE,
    )


def _format_placement(hub: Hub) -> str:
    """Text for tenants: they may know the zone, not the hub."""
    return f"Placed in zone {hub.spec.zone}" if hub.spec.zone else "Placed"


def _state_note(cluster: Cluster, new_status: ClusterStatus) -> EventNote | None:
    if new_status.restored != cluster.status.restored:
        return EventNote("Restored", "Its objects are those of the backup now")
    if new_status.state == cluster.status.state:
        deeper = new_status.rest == ClusterRest.STOPPED != cluster.status.rest
        return (
            EventNote("Stopped", "Frozen for long; stopped now, nothing is lost")
            if deeper
            else None
        )
    state = new_status.state.name
    why = next(
        (
            condition.message
            for condition in new_status.conditions
            if condition.type in _EXPLAINED_CONDITIONS and condition.status == ConditionStatus.TRUE
        ),
        "",
    )
    text = f"Cluster is {state.lower()}"
    return EventNote(state.capitalize(), f"{text}: {why}" if why else text)


_EXPLAINED_CONDITIONS = (ClusterConditionType.FAILED, ClusterConditionType.DEGRADED)

"""Places a cluster on a hub, puts its order there, and copies the order's status back. Called by the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.changes import (
    Archive,
    Change,
    Note,
    Replace,
    Require,
    Reserve,
    Unreserve,
    Wake,
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
from boatyard.orderbook.mirror import follow_leftover
from boatyard.orderbook.port import OrderBook
from boatyard.resources.clusters import ending, placement, status
from boatyard.resources.clusters.placement import HubView, NotPlaced
from boatyard.resources.orders import rules
from boatyard.resources.reconciling import Result, Turn

BookFor = Callable[[Turn, str], Awaitable[OrderBook]]  # the order book of a hub by id

CAPACITY = "capacity"  # a Wake of this name makes clusters due that wait for capacity
_SLOW_LOOK = 300.0
_GRACE = timedelta(minutes=2)  # for a hub that ends it in time and reports it late


class ClusterReconciler:
    def __init__(self, *, ledger: Ledger, book_for: BookFor, delete_within: timedelta) -> None:
        self._ledger = ledger
        self._book_for = book_for
        self._delete_within = delete_within

    async def reconcile(self, turn: Turn) -> Result:
        cluster = await self._ledger.documents.get(Cluster, turn.id)
        if cluster is None:
            return Result()
        if cluster.metadata.deletion_timestamp is not None:
            return await self._delete(cluster, turn)
        if not cluster.status.hub:
            return await self._place(cluster, turn)
        return await self._follow(cluster, turn)

    async def poisoned(self, turn: Turn) -> Result:
        return Result(look_again=turn.now + timedelta(seconds=_SLOW_LOOK))

    async def _place(self, cluster: Cluster, turn: Turn) -> Result:
        """Chooses a hub and reserves capacity on it in the same transaction. The next pass creates the order."""
        views = await self._views()
        decision = placement.place(cluster, views, backup_on=await self._backup_hub(cluster))
        if isinstance(decision, NotPlaced):
            return _no_room(cluster, decision, turn.now)
        hub = decision.hub
        new_placement = Placement(
            hub=hub.id,
            decided_at=turn.now,
            reason=decision.reason,
            candidates=decision.candidates,
        )
        new_status = msgspec.structs.replace(
            cluster.status,
            hub=hub.id,
            placement=new_placement,
            state=ClusterState.PROGRESSING,
            state_transition_time=cluster.status.state_transition_time or turn.now,
        )
        changes: list[Change] = [
            Reserve(
                placement.pool(hub.id, resource),
                owner=cluster.id,
                amount=amount,
                capacity=placement.capacity(hub, resource),
            )
            for resource, amount in placement.amounts(cluster).items()
        ]
        changes.append(Require("Hub", hub.id))  # nobody removes it at the same moment
        changes.append(_replaced(cluster, new_status, Note("Placed", _placed_words(hub))))
        return Result(changes=changes, look_again=turn.now, hub=hub.id)

    async def _backup_hub(self, cluster: Cluster) -> str:
        """The hub that stores the backup a new cluster is created from; empty without a backup."""
        if not cluster.spec.restore.backup:
            return ""
        backup = await self._ledger.documents.get(Backup, cluster.spec.restore.backup)
        return backup.status.hub if backup is not None else ""

    async def _views(self) -> list[HubView]:
        hubs = (await self._ledger.documents.list(Hub, limit=1000, with_total=False)).items
        reserved = await self._ledger.claims.reserved_by_pool()
        return [
            HubView(
                hub=hub,
                reserved={
                    resource: reserved.get(placement.pool(hub.id, resource), 0)
                    for resource in {*placement.offers(hub), placement.CLUSTERS}
                },
            )
            for hub in hubs
        ]

    async def _follow(self, cluster: Cluster, turn: Turn) -> Result:
        """Updates the order from the cluster's spec, and the cluster's status from the order."""
        book = await self._book_for(turn, cluster.status.hub)
        order = await book.get(cluster.id)
        version = await self._version(cluster)
        settings = order.spec.platform_settings if order else await self._settings(cluster)
        desired_spec = status.order_spec(cluster, version, settings)
        if order is None or order.spec.generation != desired_spec.generation:
            return await self._hand_over(cluster, desired_spec, book, turn)
        new_status = status.from_order(cluster, order, turn.now)
        return Result(
            changes=self._shown(cluster, new_status, turn.now),
            look_again=turn.now + timedelta(seconds=_SLOW_LOOK),
            hub=cluster.status.hub,
        )

    async def _hand_over(
        self, cluster: Cluster, desired_spec: OrderSpec, book: OrderBook, turn: Turn
    ) -> Result:
        """Reserves capacity, then writes the order. The order's first progress makes the cluster due again."""
        if desired_spec.generation > 1:  # the first generation was reserved at placement
            reservations = await self._reservations(cluster)
            try:
                await self._ledger.commit(reservations, lease=turn.lease, now=turn.now)
            except Exhausted:
                return _cannot_grow(cluster, turn.now)
        await book.put(cluster.id, tenant=cluster.metadata.tenant, spec=desired_spec, now=turn.now)
        return Result(look_again=turn.now + timedelta(seconds=_SLOW_LOOK), hub=cluster.status.hub)

    def _shown(
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
            changes += self._settled_reservations(cluster)
            changes.append(Wake(CAPACITY, now))
        changes.append(_replaced(cluster, new_status, _state_note(cluster, new_status)))
        return changes

    def _settled_reservations(self, cluster: Cluster) -> list[Change]:
        """After a change is done, reserves exactly what is in use: frees what a scale down no longer needs."""
        hub = cluster.status.hub
        return [
            Unreserve(cluster.id),  # also of host types that are no longer used
            *(
                Reserve(
                    placement.pool(hub, resource),
                    owner=cluster.id,
                    amount=amount,
                    capacity=placement.UNBOUNDED,
                )
                for resource, amount in placement.amounts(cluster).items()
            ),
        ]

    async def _reservations(self, cluster: Cluster) -> list[Change]:
        """Reservations that must grow. A smaller spec frees nothing yet: the nodes still exist."""
        hub = await self._ledger.documents.get(Hub, cluster.status.hub)
        if hub is None:
            return []
        reserved = await self._ledger.claims.reservations(cluster.id)
        return [
            Reserve(
                placement.pool(hub.id, resource),
                owner=cluster.id,
                amount=amount,
                capacity=placement.capacity(hub, resource),
            )
            for resource, amount in placement.amounts(cluster).items()
            if amount > reserved.get(placement.pool(hub.id, resource), 0)
        ]

    async def _settings(self, cluster: Cluster) -> Mapping[str, str]:
        """The template's settings for the platform. Read once: a cluster keeps those it was ordered with."""
        template = await self._ledger.documents.get(ClusterTemplate, cluster.spec.template.id)
        return template.platform_settings if template is not None else {}

    async def _version(self, cluster: Cluster) -> ClusterVersion | None:
        if not cluster.spec.version.id:
            return None
        return await self._ledger.documents.get(ClusterVersion, cluster.spec.version.id)

    async def _delete(self, cluster: Cluster, turn: Turn) -> Result:
        """Requests the deletion of the order, and archives the cluster with a receipt once the order has ended."""
        if not cluster.status.hub:
            note = Note("Deleted", "Deleted before anything was made")
            return Result(changes=[Unreserve(cluster.id), _archived(cluster, note)])
        try:
            book = await self._book_for(turn, cluster.status.hub)
            order = await book.get(cluster.id)
        except Unavailable:
            if not self._is_late(cluster, turn.now):
                raise
            return await self._abandon(cluster, turn)
        if order is None:
            order_copy = await self._ledger.documents.get(Order, cluster.id)
            if order_copy is not None:
                return await self._end_lost(cluster, order_copy, book, turn)
            await book.forget(cluster.id, tenant=cluster.metadata.tenant, now=turn.now)
            note = Note("Deleted", "Deleted; its hub holds nothing of it")
            return Result(
                changes=[Unreserve(cluster.id), _archived(cluster, note), Wake(CAPACITY, turn.now)]
            )
        if order.status.phase == OrderPhase.DELETED:
            return await self._end(cluster, order, book, turn)
        if order.metadata.deletion_timestamp is None and not await self._still_finds(
            cluster, order, turn
        ):
            await book.request_delete(
                cluster.id, delete_by=turn.now + self._delete_within, now=turn.now
            )
        new_status = status.from_order(cluster, order, turn.now)
        changes = [] if new_status == cluster.status else [_replaced(cluster, new_status, None)]
        return Result(
            changes=changes,
            look_again=turn.now + timedelta(seconds=_SLOW_LOOK),
            hub=cluster.status.hub,
        )

    async def _end_lost(
        self, cluster: Cluster, order_copy: Order, book: OrderBook, turn: Turn
    ) -> Result:
        """Handles an order that its hub lost before it was deleted; its items still exist outside.

        If the hub's operator noticed, they are in a Leftover. Otherwise the order is created again, and deleted once
        it has found its items by their keys: an order without recorded items would release nothing.
        """
        if await book.leftover(cluster.id) is not None:
            return await self._abandon(cluster, turn)
        version = await self._version(cluster)
        spec = status.order_spec(cluster, version, order_copy.spec.platform_settings)
        await book.put(cluster.id, tenant=cluster.metadata.tenant, spec=spec, now=turn.now)
        return Result(look_again=turn.now + timedelta(seconds=_SLOW_LOOK), hub=cluster.status.hub)

    async def _still_finds(self, cluster: Cluster, order: Order, turn: Turn) -> bool:
        """Whether a lost order that was created again is still finding its items. False once the deletion is late."""
        if not ending.was_placed_late(cluster, order) or self._is_late(cluster, turn.now):
            return False
        return await self._ledger.documents.archived(Order, cluster.id, sealed=True) is not None

    async def _end(self, cluster: Cluster, order: Order, book: OrderBook, turn: Turn) -> Result:
        """Archives the cluster after its order has ended. Leftover hosts stay reserved until they are released."""
        leftover_reservations = ending.kept_room(cluster, order)
        if leftover_reservations:
            changes: list[Change] = [Unreserve(cluster.id), *leftover_reservations]
            await self._ledger.commit(changes, lease=turn.lease, now=turn.now)
        await book.forget(cluster.id, tenant=cluster.metadata.tenant, now=turn.now)
        return Result(
            changes=[
                Unreserve(cluster.id),
                _archived(cluster, ending.receipt_note(order)),
                Wake(CAPACITY, turn.now),
            ]
        )

    def _is_late(self, cluster: Cluster, now: datetime) -> bool:
        """Whether the time that a deletion may take is over, plus a grace period."""
        deletion_time = cluster.metadata.deletion_timestamp
        return deletion_time is not None and now >= deletion_time + self._delete_within + _GRACE

    async def _abandon(self, cluster: Cluster, turn: Turn) -> Result:
        """Ends the deletion without the hub. The items last seen become a Leftover, released when the hub is back."""
        order = await self._ledger.documents.get(Order, cluster.id) or ending.unseen(
            cluster, turn.now
        )
        final_status, leftover = rules.abandon(order, order.status.items, turn.now)
        order = msgspec.structs.replace(order, status=final_status)
        changes: list[Change] = [
            Unreserve(cluster.id),
            *ending.kept_room(cluster, order),
            *follow_leftover(leftover, turn.now),
        ]
        if order.metadata.creation_timestamp is not None:  # else the ledger has no copy of it
            changes.append(Archive(order))
        changes += [_archived(cluster, ending.receipt_note(order)), Wake(CAPACITY, turn.now)]
        return Result(changes=changes)


def _replaced(cluster: Cluster, new_status: ClusterStatus, note: Note | None) -> Change:
    return Replace(msgspec.structs.replace(cluster, status=new_status), note=note)


def _archived(cluster: Cluster, note: Note) -> Change:
    metadata = msgspec.structs.replace(cluster.metadata, finalizers=())
    return Archive(msgspec.structs.replace(cluster, metadata=metadata), note=note)


def _no_room(cluster: Cluster, decision: NotPlaced, now: datetime) -> Result:
    """The cluster waits, with every hub's reason, and is due again when capacity changes."""
    old = cluster.status.placement
    same = (old.reason, old.candidates) == (decision.reason, decision.candidates)
    new_placement = (
        old
        if same
        else Placement(decided_at=now, reason=decision.reason, candidates=decision.candidates)
    )
    new_status = status.waiting(
        cluster, new_placement, reason=decision.reason, message=decision.message, now=now
    )
    changes = (
        []
        if new_status == cluster.status
        else [_replaced(cluster, new_status, Note(decision.reason, decision.message))]
    )
    return Result(
        changes=changes,
        look_again=now + timedelta(seconds=_SLOW_LOOK),
        waiting_for=CAPACITY,
    )


def _cannot_grow(cluster: Cluster, now: datetime) -> Result:
    message = "the hub has no room for the nodes added; the cluster stays as it is until there is"
    new_status = status.waiting(
        cluster, cluster.status.placement, reason="NoCapacity", message=message, now=now
    )
    changes = (
        []
        if new_status == cluster.status
        else [_replaced(cluster, new_status, Note("NoCapacity", message))]
    )
    return Result(
        changes=changes,
        look_again=now + timedelta(seconds=_SLOW_LOOK),
        hub=cluster.status.hub,
        waiting_for=CAPACITY,
    )


def _placed_words(hub: Hub) -> str:
    """Text for tenants: they may know the zone, not the hub."""
    return f"Placed in zone {hub.spec.zone}" if hub.spec.zone else "Placed"


def _state_note(cluster: Cluster, new_status: ClusterStatus) -> Note | None:
    if new_status.restored != cluster.status.restored:
        return Note("Restored", "Its objects are those of the backup now")
    if new_status.state == cluster.status.state:
        deeper = new_status.rest == ClusterRest.STOPPED != cluster.status.rest
        return Note("Stopped", "Frozen for long; stopped now, nothing is lost") if deeper else None
    state = new_status.state.name
    why = next(
        (
            condition.message
            for condition in new_status.conditions
            if condition.type in _TELLING and condition.status == ConditionStatus.TRUE
        ),
        "",
    )
    text = f"Cluster is {state.lower()}"
    return Note(state.capitalize(), f"{text}: {why}" if why else text)


_TELLING = (ClusterConditionType.FAILED, ClusterConditionType.DEGRADED)

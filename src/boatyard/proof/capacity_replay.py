"""I2: what is promised on a hub never exceeds its capacity, now and at every event of the log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from boatyard.model.generated.boatyard import Leftover, Order, OrderPhase
from boatyard.model.generated.osac import Cluster, Hub
from boatyard.proof.evidence import Evidence, LoggedEvent
from boatyard.resources.clusters import placement

_DELETED_EVENT = 3


def find_over_capacity(evidence: Evidence) -> Iterator[str]:
    """Every event after which more was promised than the hub had, and every pool that is overbooked now."""
    replay = _Replay()
    for event in evidence.events:
        yield from replay.apply_event(event)
    yield from _check_pools(evidence, replay.largest_capacity)


def _check_pools(evidence: Evidence, largest: Mapping[tuple[str, str], int]) -> Iterator[str]:
    reserved_totals: Counter[str] = Counter()
    for pool, _, amount in evidence.reservations:
        reserved_totals[pool] += amount
    for pool in sorted({*reserved_totals, *evidence.pools}):
        if reserved_totals[pool] != evidence.pools.get(pool, 0):
            yield f"{pool}: {reserved_totals[pool]} are reserved, {evidence.pools.get(pool, 0)} are counted"
    for hub in evidence.list_documents(Hub):
        for resource in {*placement.get_capacities(hub), placement.CLUSTERS_RESOURCE}:
            # An operator may reduce the capacity below what is reserved; that is no breach of ours.
            capacity = max(
                placement.get_capacity(hub, resource), largest.get((hub.id, resource), 0)
            )
            used = reserved_totals[placement.get_capacity_pool(hub.id, resource)]
            if used > capacity:
                yield f"{used} {resource} are reserved on hub {hub.id}, which has {capacity}"


class _Replay:
    """Follows the promises on each hub from event to event.

    A promise is counted from the latest and dropped at the earliest moment that the log shows, because
    transactions of different objects may be numbered in another order than they waited for each other.
    """

    def __init__(self) -> None:
        self.largest_capacity: dict[tuple[str, str], int] = {}
        self._hubs: dict[str, Hub] = {}
        self._placed: set[str] = set()
        self._host_types: dict[tuple[str, str], str] = {}
        self._promised: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)  # hub, owner, what

    def apply_event(self, event: LoggedEvent) -> Iterator[str]:
        match event.kind:
            case "Hub":
                self._apply_hub(event)
            case "Cluster":
                yield from self._apply_cluster(event)
            case "Order":
                yield from self._apply_order(event)
            case "Leftover":
                yield from self._apply_leftover(event)

    def _apply_hub(self, event: LoggedEvent) -> None:
        hub = event.decode(Hub)
        self._hubs[hub.id] = hub
        for resource in {*placement.get_capacities(hub), placement.CLUSTERS_RESOURCE}:
            pool_key = hub.id, resource
            capacity = placement.get_capacity(hub, resource)
            self.largest_capacity[pool_key] = max(self.largest_capacity.get(pool_key, 0), capacity)

    def _apply_cluster(self, event: LoggedEvent) -> Iterator[str]:
        cluster = event.decode(Cluster)
        hub = cluster.status.hub
        if event.event_type == _DELETED_EVENT:
            self._placed.discard(cluster.id)
            self._drop(hub, cluster.id)
        elif hub and cluster.id not in self._placed:
            self._placed.add(cluster.id)
            yield from self._promise(
                hub, cluster.id, placement.get_required_amounts(cluster), event
            )

    def _apply_order(self, event: LoggedEvent) -> Iterator[str]:
        order = event.decode(Order)
        if event.event_type == _DELETED_EVENT or order.status.phase == OrderPhase.DELETED:
            self._drop(order.spec.hub, order.id)
            return
        amounts = {placement.CLUSTERS_RESOURCE: 1}
        for name, node_set in order.spec.node_sets.items():
            self._host_types[order.id, name] = node_set.host_type
            amounts[node_set.host_type] = amounts.get(node_set.host_type, 0) + node_set.size
        yield from self._promise(order.spec.hub, order.id, amounts, event)

    def _apply_leftover(self, event: LoggedEvent) -> Iterator[str]:
        leftover = event.decode(Leftover)
        owner = f"leftover {leftover.id}"
        if event.event_type == _DELETED_EVENT:
            self._drop(leftover.spec.hub, owner)
            return
        amounts: dict[str, int] = {}
        for item in leftover.status.items:
            host_type = self._host_types.get((leftover.spec.order, item.node_set))
            if item.kind == "host" and host_type:
                amounts[host_type] = amounts.get(host_type, 0) + 1
        yield from self._promise(leftover.spec.hub, owner, amounts, event)

    def _promise(
        self, hub_id: str, owner: str, amounts: Mapping[str, int], event: LoggedEvent
    ) -> Iterator[str]:
        previous = self._promised[hub_id].get(owner, {})
        self._promised[hub_id][owner] = dict(amounts)
        hub = self._hubs.get(hub_id)
        if hub is None:
            return
        for resource, amount in amounts.items():
            total = sum(
                owner_amounts.get(resource, 0) for owner_amounts in self._promised[hub_id].values()
            )
            capacity = placement.get_capacity(hub, resource)
            if amount > previous.get(resource, 0) and total > capacity:
                yield (
                    f"event {event.seq}: with {owner}, {total} {resource} were promised "
                    f"on hub {hub_id}, which had {capacity}"
                )

    def _drop(self, hub_id: str, owner: str) -> None:
        self._promised[hub_id].pop(owner, None)

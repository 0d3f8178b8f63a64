"""Which hub carries out a new cluster. Pure; called by the cluster reconciler, once per look at an unplaced cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from boatyard.model.generated.osac import Cluster, Hub, HubState, PlacementCandidate
from boatyard.model.reasons import PlacementReason
from boatyard.resources.hubs.settings import is_kubernetes

CLUSTERS_RESOURCE = "clusters"  # the pool that bounds how many clusters a hub takes
UNBOUNDED = 2**31 - 1
PLATFORM_LABEL = "platform"  # label of hubs that only take orders which ask for that platform


@dataclass(frozen=True)
class HubUsage:
    """A hub and what is reserved on it: host type (or "clusters") → count."""

    hub: Hub
    reserved: Mapping[str, int]


@dataclass(frozen=True)
class Placed:
    hub: Hub
    candidates: tuple[PlacementCandidate, ...]
    reason: str


@dataclass(frozen=True)
class NotPlaced:
    candidates: tuple[PlacementCandidate, ...]
    reason: PlacementReason
    message: str


@dataclass(frozen=True)
class Misfit:
    """Why a cluster does not fit on one hub."""

    reason: PlacementReason
    message: str  # for operators


# For tenants: without names of hubs and counts. The first reason that any hub has is the one told.
_MESSAGES = {
    PlacementReason.NO_CAPACITY: "no hub has enough free capacity now",
    PlacementReason.NO_HEALTHY_HUB: "no hub that fits is taking orders now",
    PlacementReason.NO_MATCHING_HUB: (
        "no hub offers the template in the zone and with the labels asked for"
    ),
}


def place(cluster: Cluster, hubs: Sequence[HubUsage], *, backup_on: str = "") -> Placed | NotPlaced:
    """The emptiest healthy hub where everything asked for fits. Ties go to the smaller id.

    `backup_on` is the hub that keeps the backup the cluster is made from: it goes nowhere else.
    """
    judgements = [
        (view, _misfit(cluster, view, backup_on), _compute_free_share(cluster, view))
        for view in hubs
    ]
    candidates = tuple(
        PlacementCandidate(
            hub=view.hub.id,
            fits=misfit is None,
            score=round(room, 4) if misfit is None else 0.0,
            reason=f"{room:.0%} of its hosts stay free" if misfit is None else misfit.message,
        )
        for view, misfit, room in sorted(judgements, key=lambda judgement: judgement[0].hub.id)
    )
    fitting = [(view, room) for view, misfit, room in judgements if misfit is None]
    if not fitting:
        reasons = {misfit.reason for _, misfit, _ in judgements if misfit is not None}
        return NotPlaced(candidates, *_summarize_obstacles(reasons))
    view, _ = min(fitting, key=lambda judgement: (-judgement[1], judgement[0].hub.id))
    return Placed(
        hub=view.hub,
        candidates=candidates,
        reason=f"the emptiest of {len(fitting)} hubs where it fits",
    )


def get_required_amounts(cluster: Cluster) -> dict[str, int]:
    """The capacity that the cluster needs: hosts per type, and one cluster."""
    counts = {CLUSTERS_RESOURCE: 1}
    for node_set in cluster.spec.node_sets.values():
        host_type = node_set.host_type.id
        counts[host_type] = counts.get(host_type, 0) + node_set.size
    return counts


def get_capacity_pool(hub_id: str, resource: str) -> str:
    """The pool in which the ledger counts the reservations of a resource on a hub."""
    return f"{hub_id}/capacity/{resource}"


def get_capacities(hub: Hub) -> Mapping[str, int]:
    """The hub's capacity per host type, and of "clusters" where that is bounded.

    Capacity set by an operator wins over discovered capacity. Host types are replaced as a whole, because a type
    that the operator left out is not to be offered; the number of clusters is replaced by itself.
    """
    status_capacity, spec_capacity = dict(hub.status.capacity), dict(hub.spec.capacity)
    clusters = spec_capacity.pop(CLUSTERS_RESOURCE, status_capacity.pop(CLUSTERS_RESOURCE, None))
    status_capacity.pop(CLUSTERS_RESOURCE, None)
    hosts = spec_capacity or status_capacity
    return hosts if clusters is None else {**hosts, CLUSTERS_RESOURCE: clusters}


def get_capacity(hub: Hub, resource: str) -> int:
    """How much of a resource the hub has. Clusters are unbounded unless the hub says otherwise."""
    return get_capacities(hub).get(resource, UNBOUNDED if resource == CLUSTERS_RESOURCE else 0)


def _misfit(cluster: Cluster, view: HubUsage, backup_on: str) -> Misfit | None:
    hub = view.hub
    if backup_on and hub.id != backup_on:
        return _no_match("does not keep the backup")
    if hub.metadata.deletion_timestamp is not None:
        return _no_match("is being removed")
    if hub.spec.cordoned:
        return Misfit(PlacementReason.NO_HEALTHY_HUB, "is cordoned")
    if hub.status.state != HubState.READY:
        return Misfit(PlacementReason.NO_HEALTHY_HUB, "is not healthy")
    if hub.spec.templates and cluster.spec.template.id not in hub.spec.templates:
        return _no_match("does not offer the template")
    if cluster.spec.template_phases and is_kubernetes(hub):
        return _no_match("runs no roles of templates")
    if cluster.spec.zone and cluster.spec.zone != hub.spec.zone:
        return _no_match(f"is not in zone {cluster.spec.zone!r}")
    return _find_label_obstacle(cluster, hub) or _find_capacity_obstacle(cluster, view)


def _no_match(message: str) -> Misfit:
    return Misfit(PlacementReason.NO_MATCHING_HUB, message)


def _find_label_obstacle(cluster: Cluster, hub: Hub) -> Misfit | None:
    labels, hub_labels = cluster.spec.hub_labels, hub.spec.labels
    if PLATFORM_LABEL in hub_labels and PLATFORM_LABEL not in labels and not hub.spec.templates:
        return _no_match("is for orders that ask for its platform")
    for key, value in sorted(labels.items()):
        if hub_labels.get(key) != value:
            return _no_match(f"lacks the label {key}={value}")
    return None


def _find_capacity_obstacle(cluster: Cluster, view: HubUsage) -> Misfit | None:
    for resource, amount in sorted(get_required_amounts(cluster).items()):
        free = get_capacity(view.hub, resource) - view.reserved.get(resource, 0)
        if amount > free:
            noun = "clusters" if resource == CLUSTERS_RESOURCE else f"hosts of type {resource!r}"
            message = f"has {max(free, 0)} free {noun}, {amount} are needed"
            return Misfit(PlacementReason.NO_CAPACITY, message)
    return None


def _compute_free_share(cluster: Cluster, view: HubUsage) -> float:
    """The smallest share of any host type asked for that stays free when the cluster is placed here."""
    shares = []
    for resource, amount in get_required_amounts(cluster).items():
        total = get_capacity(view.hub, resource)
        if resource != CLUSTERS_RESOURCE and total > 0:
            shares.append((total - view.reserved.get(resource, 0) - amount) / total)
    return min(shares, default=0.0)


def _summarize_obstacles(reasons: Set[PlacementReason]) -> tuple[PlacementReason, str]:
    """Reason and message of a cluster that fits nowhere."""
    for reason, message in _MESSAGES.items():
        if reason in reasons:
            return reason, message
    return PlacementReason.NO_HUB, "no hub is registered yet"

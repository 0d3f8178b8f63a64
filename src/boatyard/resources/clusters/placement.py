"""Which hub carries out a new cluster. Pure; called by the cluster reconciler, once per look at an unplaced cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boatyard.model.generated.osac import Cluster, Hub, HubState, PlacementCandidate
from boatyard.resources.hubs.settings import is_kubernetes

CLUSTERS = "clusters"  # the pool that bounds how many clusters a hub takes
UNBOUNDED = 2**31 - 1
PLATFORM = "platform"  # label of hubs that only take orders which ask for that platform


@dataclass(frozen=True)
class HubView:
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
    reason: str
    message: str


def place(cluster: Cluster, hubs: Sequence[HubView], *, backup_on: str = "") -> Placed | NotPlaced:
    """The emptiest healthy hub where everything asked for fits. Ties go to the smaller id.

    `backup_on` is the hub that keeps the backup the cluster is made from: it goes nowhere else.
    """
    judgements = [
        (view, _why_not(cluster, view, backup_on), _room_left(cluster, view)) for view in hubs
    ]
    candidates = tuple(
        PlacementCandidate(
            hub=view.hub.id,
            fits=not why,
            score=round(room, 4) if not why else 0.0,
            reason=why or f"{room:.0%} of its hosts stay free",
        )
        for view, why, room in sorted(judgements, key=lambda judgement: judgement[0].hub.id)
    )
    fitting = [(view, room) for view, why, room in judgements if not why]
    if not fitting:
        return NotPlaced(candidates, *_summary([why for _, why, _ in judgements]))
    view, _ = min(fitting, key=lambda judgement: (-judgement[1], judgement[0].hub.id))
    return Placed(
        hub=view.hub,
        candidates=candidates,
        reason=f"the emptiest of {len(fitting)} hubs where it fits",
    )


def amounts(cluster: Cluster) -> dict[str, int]:
    """The capacity that the cluster needs: hosts per type, and one cluster."""
    counts = {CLUSTERS: 1}
    for node_set in cluster.spec.node_sets.values():
        host_type = node_set.host_type.id
        counts[host_type] = counts.get(host_type, 0) + node_set.size
    return counts


def pool(hub_id: str, resource: str) -> str:
    """The pool in which the ledger counts the reservations of a resource on a hub."""
    return f"{hub_id}/capacity/{resource}"


def offers(hub: Hub) -> Mapping[str, int]:
    """The hub's capacity per host type, and of "clusters" where that is bounded.

    Capacity set by an operator wins over discovered capacity. Host types are replaced as a whole, because a type
    that the operator left out is not to be offered; the number of clusters is replaced by itself.
    """
    status_capacity, spec_capacity = dict(hub.status.capacity), dict(hub.spec.capacity)
    clusters = spec_capacity.pop(CLUSTERS, status_capacity.pop(CLUSTERS, None))
    status_capacity.pop(CLUSTERS, None)
    hosts = spec_capacity or status_capacity
    return hosts if clusters is None else {**hosts, CLUSTERS: clusters}


def capacity(hub: Hub, resource: str) -> int:
    """How much of a resource the hub has. Clusters are unbounded unless the hub says otherwise."""
    return offers(hub).get(resource, UNBOUNDED if resource == CLUSTERS else 0)


def _why_not(cluster: Cluster, view: HubView, backup_on: str) -> str:
    hub = view.hub
    if backup_on and hub.id != backup_on:
        return "does not keep the backup"
    if hub.metadata.deletion_timestamp is not None:
        return "is being removed"
    if hub.spec.cordoned:
        return "is cordoned"
    if hub.status.state != HubState.READY:
        return "is not healthy"
    if hub.spec.templates and cluster.spec.template.id not in hub.spec.templates:
        return "does not offer the template"
    if cluster.spec.template_phases and is_kubernetes(hub):
        return "runs no roles of templates"
    if cluster.spec.zone and cluster.spec.zone != hub.spec.zone:
        return f"is not in zone {cluster.spec.zone!r}"
    return _wrong_labels(cluster, hub) or _too_little(cluster, view)


def _wrong_labels(cluster: Cluster, hub: Hub) -> str:
    labels, hub_labels = cluster.spec.hub_labels, hub.spec.labels
    if PLATFORM in hub_labels and PLATFORM not in labels and not hub.spec.templates:
        return "is for orders that ask for its platform"
    for key, value in sorted(labels.items()):
        if hub_labels.get(key) != value:
            return f"lacks the label {key}={value}"
    return ""


def _too_little(cluster: Cluster, view: HubView) -> str:
    for resource, amount in sorted(amounts(cluster).items()):
        free = capacity(view.hub, resource) - view.reserved.get(resource, 0)
        if amount > free:
            noun = "clusters" if resource == CLUSTERS else f"hosts of type {resource!r}"
            return f"has {max(free, 0)} free {noun}, {amount} are needed"
    return ""


def _room_left(cluster: Cluster, view: HubView) -> float:
    """The smallest share of any host type asked for that stays free when the cluster is placed here."""
    shares = []
    for resource, amount in amounts(cluster).items():
        total = capacity(view.hub, resource)
        if resource != CLUSTERS and total > 0:
            shares.append((total - view.reserved.get(resource, 0) - amount) / total)
    return min(shares, default=0.0)


def _summary(reasons: Sequence[str]) -> tuple[str, str]:
    """Reason and message of a cluster that fits nowhere, for the tenant: without names of hubs and counts."""
    if not reasons:
        return "NoHub", "no hub is registered yet"
    if any("are needed" in why for why in reasons):
        return "NoCapacity", "no hub has enough free capacity now"
    if any("healthy" in why or "cordoned" in why for why in reasons):
        return "NoHealthyHub", "no hub that fits is taking orders now"
    return "NoMatchingHub", "no hub offers the template in the zone and with the labels asked for"

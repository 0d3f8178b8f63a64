"""Agents, the hosts of the Agent platform: claimed by labels, released by removing them. Called by `nodes`.

The label `boatyard.io/joins` lets a node pool take the host. It is removed first when the host leaves, so that no
pool takes it again. The other labels say which node owns the host; they stay until it is observed unbound.
"""

from __future__ import annotations

from boatyard.model import hub_names
from boatyard.model.errors import Refused
from boatyard.model.outcome import Waiting
from boatyard.platforms.drivers.hosted.hub import Hub
from boatyard.platforms.drivers.hosted.kinds import (
    AGENT_TAKEN,
    AGENTS,
    Manifest,
    Seen,
    annotations_of,
    at,
    is_leaving,
    labels_of,
    name_of,
    namespace_of,
)
from boatyard.platforms.drivers.hosted.reading import conditions_of
from boatyard.platforms.drivers.hosted.rendering import JOINS, Place, covers
from boatyard.platforms.port import NodeWanted

LOOK_AGAIN = 3.0
_OURS = (
    hub_names.ORDER,
    hub_names.ORDER_UUID,
    hub_names.NODE_SET,
    hub_names.SLOT,
    hub_names.KEY,
    hub_names.HUB,
)


async def find(hub: Hub, namespace: str, host: str) -> Manifest | Waiting:
    """Returns the Agent of a host: the one with its name, otherwise the one whose host name or id matches."""
    named = await hub.get(AGENTS, host, namespace) if hub_names.is_label(host) else None
    candidates = [named] if named is not None else []
    if not candidates:
        candidates = [agent for agent in await hub.all(AGENTS, namespace) if host in _hosts(agent)]
    if len(candidates) > 1:
        names = ", ".join(sorted(name_of(agent) for agent in candidates))
        raise Refused(f"several agents say that they are host {host}: {names}", reason="NoAgent")
    if not candidates or is_leaving(candidates[0]):
        return Waiting("The host has not reported to the hub yet.", LOOK_AGAIN, "NoAgent")
    return candidates[0]


def _hosts(agent: Seen) -> set[str]:
    return {
        annotations_of(agent).get(hub_names.HOST_UUID, ""),
        str(at(agent, "spec", "hostname") or ""),
        str(at(agent, "status", "inventory", "hostname") or ""),
    } - {""}


def is_bound(agent: Seen) -> bool:
    """Whether a cluster holds the host. Any of the three signs is enough."""
    reference = at(agent, "spec", "clusterDeploymentName", "name")
    return (
        bool(reference)
        or AGENT_TAKEN in labels_of(agent)
        or ("Bound" in conditions_of(agent) and conditions_of(agent)["Bound"].true)
    )


def is_ours(agent: Seen, key: str) -> bool:
    """Whether the Agent carries this node's key. The annotation decides; without it, the label."""
    annotation = annotations_of(agent).get(hub_names.KEY)
    if annotation is not None:
        return annotation == key
    return labels_of(agent).get(hub_names.KEY) == hub_names.label_value(key)


def check_free(agent: Seen, key: str, place: Place) -> None:
    """Refused when the host belongs to another node, order or cluster."""
    if is_ours(agent, key):
        return
    others = annotations_of(agent).get(hub_names.KEY) or labels_of(agent).get(hub_names.KEY)
    another_order = labels_of(agent).get(hub_names.ORDER, place.order) != place.order
    if others or another_order or is_bound(agent):
        where = f"{namespace_of(agent)}/{name_of(agent)}"
        raise Refused(f"agent {where} is in use under another key", reason="HeldByAnother")


async def claim(
    hub: Hub, agent: Manifest, key: str, place: Place, pool: str, node: NodeWanted
) -> Manifest:
    """Labels the host as this node's and lets the pool take it. Conflict when it has changed since it was read."""
    check_free(agent, key, place)
    patch = {
        "metadata": {
            "labels": {
                hub_names.HUB: hub_names.label_value(place.hub),
                hub_names.ORDER: place.order,
                hub_names.ORDER_UUID: hub_names.label_value(place.cluster_id),
                hub_names.KEY: hub_names.label_value(key),
                hub_names.NODE_SET: hub_names.label_value(node.node_set),
                hub_names.SLOT: hub_names.label_value(node.slot),
                JOINS: pool,
            },
            "annotations": {hub_names.KEY: key, hub_names.CLUSTER: place.cluster_id},
        },
        "spec": {"approved": True},
    }
    if covers(agent, patch):
        return agent
    return await hub.change(AGENTS, agent, patch)


async def keep_from_joining(hub: Hub, agent: Manifest) -> Manifest:
    """Removes the label by which a node pool takes the host. Returns the Agent as the API server has it then."""
    if JOINS not in labels_of(agent):
        return agent
    return await hub.change(AGENTS, agent, {"metadata": {"labels": {JOINS: None}}})


async def give_back(hub: Hub, agent: Manifest, key: str) -> Waiting | None:
    """Removes our labels from a host that no cluster holds; Waiting while one does. Labels of others stay."""
    if not is_ours(agent, key):
        return None
    agent = await keep_from_joining(hub, agent)
    if is_bound(agent):
        return Waiting("The host is being released.", LOOK_AGAIN, "Unbinding")
    metadata = {
        "labels": dict.fromkeys((*_OURS, JOINS)),
        "annotations": dict.fromkeys((hub_names.KEY, hub_names.CLUSTER)),
    }
    await hub.change(AGENTS, agent, {"metadata": metadata})
    return None

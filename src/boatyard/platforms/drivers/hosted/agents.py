"""Agents, the hosts of the Agent platform: claimed by labels, released by removing them. Called by `nodes`.

The label `boatyard.io/joins` lets a node pool take the host. It is removed first when the host leaves, so that no
pool takes it again. The other labels say which node owns the host; they stay until it is observed unbound.
"""

from __future__ import annotations

from boatyard.model import hub_names
from boatyard.model.errors import Refused
from boatyard.model.outcome import Waiting
from boatyard.platforms.drivers.hosted.cluster_manifests import (
    JOIN_LABEL,
    ClusterLocation,
    contains_manifest,
)
from boatyard.platforms.drivers.hosted.hub_api import HubApi
from boatyard.platforms.drivers.hosted.hypershift_status import conditions_of
from boatyard.platforms.drivers.hosted.kinds import (
    AGENT_MACHINE_LABEL,
    AGENTS,
    Manifest,
    ObservedObject,
    annotations_of,
    get_path,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
)
from boatyard.platforms.port import DesiredNode

LOOK_AGAIN = 3.0
_OWNER_LABELS = (
    hub_names.ORDER,
    hub_names.ORDER_UUID,
    hub_names.NODE_SET,
    hub_names.SLOT,
    hub_names.KEY,
    hub_names.HUB,
)


async def find(hub: HubApi, namespace: str, host: str) -> Manifest | Waiting:
    """Returns the Agent of a host: the one with its name, otherwise the one whose host name or id matches."""
    named = await hub.get(AGENTS, host, namespace) if hub_names.is_label(host) else None
    candidates = [named] if named is not None else []
    if not candidates:
        candidates = [
            agent for agent in await hub.list_objects(AGENTS, namespace) if host in _hosts(agent)
        ]
    if len(candidates) > 1:
        names = ", ".join(sorted(name_of(agent) for agent in candidates))
        raise Refused(f"several agents say that they are host {host}: {names}", reason="NoAgent")
    if not candidates or is_being_deleted(candidates[0]):
        return Waiting("The host has not reported to the hub yet.", LOOK_AGAIN, "NoAgent")
    return candidates[0]


def _hosts(agent: ObservedObject) -> set[str]:
    return {
        annotations_of(agent).get(hub_names.HOST_UUID, ""),
        str(get_path(agent, "spec", "hostname") or ""),
        str(get_path(agent, "status", "inventory", "hostname") or ""),
    } - {""}


def is_bound(agent: ObservedObject) -> bool:
    """Whether a cluster holds the host. Any of the three signs is enough."""
    reference = get_path(agent, "spec", "clusterDeploymentName", "name")
    return (
        bool(reference)
        or AGENT_MACHINE_LABEL in labels_of(agent)
        or ("Bound" in conditions_of(agent) and conditions_of(agent)["Bound"].is_true)
    )


def is_ours(agent: ObservedObject, key: str) -> bool:
    """Whether the Agent carries this node's key. The annotation decides; without it, the label."""
    annotation = annotations_of(agent).get(hub_names.KEY)
    if annotation is not None:
        return annotation == key
    return labels_of(agent).get(hub_names.KEY) == hub_names.label_value(key)


def check_free(agent: ObservedObject, key: str, location: ClusterLocation) -> None:
    """Refused when the host belongs to another node, order or cluster."""
    if is_ours(agent, key):
        return
    others = annotations_of(agent).get(hub_names.KEY) or labels_of(agent).get(hub_names.KEY)
    another_order = labels_of(agent).get(hub_names.ORDER, location.order) != location.order
    if others or another_order or is_bound(agent):
        where = f"{namespace_of(agent)}/{name_of(agent)}"
        raise Refused(f"agent {where} is in use under another key", reason="HeldByAnother")


async def claim(
    hub: HubApi, agent: Manifest, key: str, location: ClusterLocation, pool: str, node: DesiredNode
) -> Manifest:
    """Labels the host as this node's and lets the pool take it. Conflict when it has changed since it was read."""
    check_free(agent, key, location)
    patch = {
        "metadata": {
            "labels": {
                hub_names.HUB: hub_names.label_value(location.hub),
                hub_names.ORDER: location.order,
                hub_names.ORDER_UUID: hub_names.label_value(location.cluster_id),
                hub_names.KEY: hub_names.label_value(key),
                hub_names.NODE_SET: hub_names.label_value(node.node_set),
                hub_names.SLOT: hub_names.label_value(node.slot),
                JOIN_LABEL: pool,
            },
            "annotations": {hub_names.KEY: key, hub_names.CLUSTER: location.cluster_id},
        },
        "spec": {"approved": True},
    }
    if contains_manifest(agent, patch):
        return agent
    return await hub.patch_object(AGENTS, agent, patch)


async def remove_join_label(hub: HubApi, agent: Manifest) -> Manifest:
    """Removes the label by which a node pool takes the host. Returns the Agent as the API server has it then."""
    if JOIN_LABEL not in labels_of(agent):
        return agent
    return await hub.patch_object(AGENTS, agent, {"metadata": {"labels": {JOIN_LABEL: None}}})


async def release_agent(hub: HubApi, agent: Manifest, key: str) -> Waiting | None:
    """Removes our labels from a host that no cluster holds; Waiting while one does. Labels of others stay."""
    if not is_ours(agent, key):
        return None
    agent = await remove_join_label(hub, agent)
    if is_bound(agent):
        return Waiting("The host is being released.", LOOK_AGAIN, "Unbinding")
    metadata = {
        "labels": dict.fromkeys((*_OWNER_LABELS, JOIN_LABEL)),
        "annotations": dict.fromkeys((hub_names.KEY, hub_names.CLUSTER)),
    }
    await hub.patch_object(AGENTS, agent, {"metadata": metadata})
    return None

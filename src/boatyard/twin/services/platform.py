"""Hosted clusters: control planes that install in stages, and hosts that join them as nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.twin.hub import Thing
from boatyard.twin.services.access import make_access
from boatyard.twin.services.backups import ensure_backup, read_backup_contents, release_backup
from boatyard.twin.services.control_planes import (
    ClusterFields,
    current_version,
    describe_stage,
    is_available,
)
from boatyard.twin.services.verb_context import (
    LONGEST_WAIT_SECONDS,
    SHORTEST_WAIT_SECONDS,
    Verb,
    VerbContext,
    make_list_owned_verb,
    make_look_verb,
    ping,
)

KINDS = ("cluster", "node")
INSTALL_STAGE_COUNT = 3


class NodeFields(NamedTuple):
    """What `extra` holds for a node; its name is its host, its ref the cluster's key."""

    slot: str
    node_set: str
    address: str
    host_type: str = ""


def ensure_cluster(
    context: VerbContext,
    key: str,
    name: str,
    version: str,
    api_name: str,
    api_address: str,
    ingress_name: str,
    ingress_address: str,
    rest: str = "",
    restore: str = "",
    backup_key: str = "",
    release_image: str = "",
    pod_cidr: str = "",
    service_cidr: str = "",
    machine_cidr: str = "",
    gateway: str = "",
    ssh_public_key: str = "",
    pull_secret: str = "",
    parameters: str = "",
    settings: str = "",
    host_types: str = "",
) -> Outcome:
    """Makes the cluster, or changes it to these fields. Callers pass secrets as digests only.

    `restore` is the id of a request: each new one replaces the cluster's objects by the backup's.
    """
    context.count_call("cluster", key)
    context.refuse_by_behaviour("cluster", key, name)
    if context.hub.layout.versions and version not in context.hub.layout.versions:
        raise Refused(f"this platform does not offer version {version}", reason="NoSuchVersion")
    desired_fields = {
        "target": version,
        "api_name": api_name,
        "api_address": api_address,
        "ingress_name": ingress_name,
        "ingress_address": ingress_address,
        "release_image": release_image,
        "pod_cidr": pod_cidr,
        "service_cidr": service_cidr,
        "machine_cidr": machine_cidr,
        "gateway": gateway,
        "ssh_public_key": ssh_public_key,
        "pull_secret": pull_secret,
        "parameters": parameters,
        "settings": settings,
        "host_types": host_types,
    }
    cluster = context.find("cluster", key)
    if cluster is None:
        cluster = context.make("cluster", key, name, extra=ClusterFields("", **desired_fields))
    if cluster.gone_at:
        return context.wait_until("The cluster is still being removed.", cluster.gone_at)
    current_fields = ClusterFields(*cluster.extra)
    new_fields = current_fields._replace(**desired_fields)
    operations = []
    if current_fields.target != version:
        _refuse_failing_upgrade(context, cluster, version)
        operations.append("upgrade")
    if restore and current_fields.restored != restore:
        new_fields = new_fields._replace(
            contents=read_backup_contents(context, backup_key), restored=restore
        )
        operations.append("restore")
    if current_fields.rest != rest:
        new_fields = new_fields._replace(rest=rest)
        operations.append("rest" if rest else "resume")
    if operations:
        new_fields = new_fields._replace(
            version=current_version(context, cluster), doing=operations[-1]
        )
        ready_at = max(context.finish_time(delay, key) for delay in operations)
        if not new_fields.version:
            ready_at = max(ready_at, cluster.ready_at)  # it is still being installed
        cluster = context.replace(cluster, name=name, extra=new_fields, ready_at=ready_at)
    elif (cluster.name, current_fields) != (name, new_fields):
        cluster = context.replace(cluster, name=name, extra=new_fields)
    answer = context.to_outcome(
        cluster, describe_stage(context, cluster), {"version": version}, named=name
    )
    if isinstance(answer, Waiting) and answer.reason == "Waiting":
        stage_seconds = (cluster.ready_at - cluster.made_at) / INSTALL_STAGE_COUNT
        return context.wait_until(
            answer.why,
            min(cluster.ready_at, context.now + max(stage_seconds, SHORTEST_WAIT_SECONDS)),
        )
    return answer


def _refuse_failing_upgrade(context: VerbContext, cluster: Thing, version: str) -> None:
    """Refuses a new version when the mood says so: the cluster stays at its old version."""
    running = current_version(context, cluster)
    if (
        running
        and version != running
        and context.find_behaviour("upgrade", cluster.key, cluster.name) == "refused"
    ):
        raise Refused(
            f"version {version} did not come up; the cluster runs {running} again",
            reason="UpgradeFailed",
        )


def release_cluster(context: VerbContext, key: str) -> Outcome:
    context.count_call("cluster", key)
    cluster = context.find("cluster", key)
    if cluster is None:
        return Done()
    nodes = context.hub.list_dependents("node", key).values()
    if nodes and context.find_behaviour("cluster", key, cluster.name) != "kept":
        # Nodes that are being drained go by themselves; the caller has to release the others.
        gone_at = [node.gone_at or math.inf for node in nodes]
        waiting = context.wait_until("The cluster still has nodes.", max(gone_at))
        return Waiting(waiting.why, waiting.look_again, reason="HasNodes")
    return context.release(cluster, "The control plane is being removed.", named=cluster.name)


def ensure_node(
    context: VerbContext,
    key: str,
    cluster_key: str,
    slot: str,
    node_set: str,
    host: str,
    address: str,
    host_type: str = "",
) -> Outcome:
    context.count_call("node", key)
    cluster = context.find("cluster", cluster_key)
    if cluster is None or cluster.gone_at:
        raise Unavailable("the cluster to join is not there", reason="NoCluster")
    if ClusterFields(*cluster.extra).rest:
        raise Unavailable("the cluster to join rests", reason="ClusterRests")
    context.refuse_by_behaviour("node", key, cluster.name)
    context.hub.get_host(host)
    holder = context.hub.things_by_name["node"].get(host)
    if holder is not None and holder.key != key:
        raise Refused("the host is a node under another key", reason="HeldByAnother")
    _refuse_other_key(context, key, cluster_key, slot)
    node = context.find("node", key)
    fields = NodeFields(slot, node_set, address, host_type)
    if node is not None and node.gone_at:
        return context.wait_until("A node is still being drained.", node.gone_at)
    if node is None:
        node = context.make("node", key, host, ref=cluster_key, extra=fields)
    elif (node.name, node.ref) != (host, cluster_key):
        ready_at = context.finish_time("node", key)
        node = context.replace(node, name=host, ref=cluster_key, extra=fields, ready_at=ready_at)
    elif tuple(node.extra) != fields:
        node = context.replace(node, extra=fields)
    trouble = find_node_problem(context, node)
    if trouble and node.ready_at <= context.now:
        return Waiting(trouble, LONGEST_WAIT_SECONDS, reason="HostDoesNotAnswer")
    return context.to_outcome(node, "A node is joining.", {}, named=cluster.name)


def release_node(
    context: VerbContext, key: str, cluster_key: str, slot: str, drain: bool = True
) -> Outcome:
    """Drains and removes a node. Without `drain` it goes at once, even while it is being drained."""
    context.count_call("node", key)
    _refuse_other_key(context, key, cluster_key, slot)
    cluster = context.find("cluster", cluster_key)
    named = cluster.name if cluster else ""
    node = context.find("node", key)
    if node is not None and not drain and context.find_behaviour("node", key, named) != "kept":
        context.state.remove(node, context.now)
        return Done()
    return context.release(node, "A node is being drained.", named=named)


def choose_leaving_nodes(
    context: VerbContext, cluster_key: str, node_set: str, slots: Sequence[str], count: int
) -> list[str]:
    nodes = {
        NodeFields(*node.extra).slot: node
        for node in context.hub.list_dependents("node", cluster_key).values()
    }

    def leaves_first(slot: str) -> tuple[int, float, int, str]:
        node = nodes.get(slot)
        number = slot.rpartition("-")[2]
        youngest = (-int(number) if number.isdigit() else 0, slot)
        if node is None or node.ready_at > context.now:
            return 0, 0.0, *youngest
        return (1 if find_node_problem(context, node) else 2), -node.made_at, *youngest

    return sorted(slots, key=leaves_first)[: max(count, 0)]


def observe_cluster(context: VerbContext, cluster_key: str) -> dict[str, Any]:
    cluster = context.find("cluster", cluster_key)
    if cluster is None:
        return {"exists": False}
    rest = ClusterFields(*cluster.extra).rest
    nodes = [
        observe_node(context, node, asleep=bool(rest))
        for node in context.hub.list_dependents("node", cluster_key).values()
    ]
    available = is_available(context, cluster)
    lost = any(node["joined"] and not node["ready"] for node in nodes)
    message = "Some nodes are not ready." if lost and not rest else ""
    if cluster.ready_at > context.now:
        message = describe_stage(context, cluster)
    if cluster.gone_at:
        available, message = False, "The control plane is being removed."
    return {
        "exists": True,
        "available": available,
        "degraded": available and lost,
        "version": current_version(context, cluster),
        "message": message,
        "rest": rest,
        "contents": ClusterFields(*cluster.extra).contents,
        "nodes": sorted(nodes, key=lambda node: (len(node["slot"]), node["slot"])),
    }


def observe_node(context: VerbContext, node: Thing, *, asleep: bool = False) -> dict[str, Any]:
    fields = NodeFields(*node.extra)
    joined = node.ready_at <= context.now
    message = find_node_problem(context, node) if joined else "The node is joining."
    if asleep:
        message = "The node rests with its cluster."
    if node.gone_at:
        message = "The node is being drained."
    return {
        "slot": fields.slot,
        "node_set": fields.node_set,
        "joined": joined,
        "ready": not message,
        "message": message,
    }


def get_access(context: VerbContext, cluster_key: str) -> dict[str, str]:
    cluster = context.find("cluster", cluster_key)
    if cluster is None or cluster.gone_at or not is_available(context, cluster):
        raise NotFound("there is no access to the cluster yet")
    fields = ClusterFields(*cluster.extra)
    return make_access(
        cluster.name, fields.api_name, fields.ingress_name, seed=f"{cluster_key} {cluster.made_at}"
    )


def find_node_problem(context: VerbContext, node: Thing) -> str:
    """Why the node's host cannot run it now; empty when all is well."""
    flags = context.hub.hosts[node.name].flags
    if "broken" in flags or "off" in flags:
        return "The node's host does not answer."
    if "unready" in flags:
        return "The node reports that it is not ready."
    hold = context.find("host", node.name)
    if hold is None or hold.gone_at or context.find("port", node.name) is None:
        return "The node's host is not on the cluster's network."
    return ""


def _refuse_other_key(context: VerbContext, key: str, cluster_key: str, slot: str) -> None:
    for node in context.hub.list_dependents("node", cluster_key).values():
        if node.extra[0] == slot and node.key != key:
            raise Refused(f"node {slot} belongs to another key", reason="HeldByAnother")


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "list_owned": make_list_owned_verb(KINDS),
    "look": make_look_verb((*KINDS, "backup")),
    "ensure_cluster": ensure_cluster,
    "release_cluster": release_cluster,
    "ensure_node": ensure_node,
    "release_node": release_node,
    "choose_leaving": choose_leaving_nodes,
    "observe": observe_cluster,
    "access": get_access,
    "ensure_backup": ensure_backup,
    "release_backup": release_backup,
}

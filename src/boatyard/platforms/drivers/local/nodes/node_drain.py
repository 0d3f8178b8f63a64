"""Removes a node from a cluster: cordon, evict, delete. Called by the keeper, also for real nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import LEASES, NODES, PODS
from boatyard.model.errors import Conflict, NotFound
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.drivers.local.nodes.objects import (
    LEASE_NAMESPACE,
    LEAVING_ANNOTATION,
    parse_time,
)
from boatyard.platforms.drivers.local.nodes.spec import NodeState, wall_clock

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_CALL_SECONDS = 3.0  # after that a call starts nothing new
_LONGEST_GRACE = 30  # seconds a pod may take to stop once the deadline has passed


async def drain_node(
    client: KubeClient,
    node_name: str,
    *,
    now: datetime | None = None,
    deadline_passed: bool = False,
) -> Outcome:
    """Does the next part of removing the node. Done when the node, its pods and its lease are gone.

    May be called any number of times; a node that is gone is Done. Each call takes a few seconds at most. A disruption
    budget is waited for (reason `DisruptionBudget`) until the caller says that the deadline has passed: then pods
    are deleted, and pods kept by finalizers are left to the cluster. Pods of DaemonSets and mirror pods are removed
    with the node. A node that does not answer cannot stop its pods: they are removed when their grace is over.
    """
    now = now or wall_clock()
    end = asyncio.get_running_loop().time() + _CALL_SECONDS
    try:
        node = await client.get(NODES, node_name)
    except NotFound:
        return await _delete_leftovers(client, node_name)
    if not (
        _is_cordoned(node) and LEAVING_ANNOTATION in (node["metadata"].get("annotations") or {})
    ):
        mark = {
            "metadata": {"annotations": {LEAVING_ANNOTATION: "true"}},
            "spec": {"unschedulable": True},
        }
        node = await client.merge_patch(NODES, node_name, mark)
    force = deadline_passed or not _is_ready(node)
    blocked = remaining = 0
    for pod in await _pods_on(client, node_name):
        if _stays(pod) or (force and _is_held_by_finalizers(pod)):
            continue
        remaining += 1
        if asyncio.get_running_loop().time() < end:
            is_blocked = await _evict_or_delete(
                client, pod, now=now, force=force, deadline_passed=deadline_passed
            )
            blocked += is_blocked
    if blocked:
        return Waiting(
            "A disruption budget keeps pods on a node.", look_again=2.0, reason="DisruptionBudget"
        )
    if remaining:
        return Waiting("Pods are leaving a node.", look_again=0.5, reason="Draining")
    try:
        await client.delete(NODES, node_name, uid=node["metadata"]["uid"])
    except Conflict:
        return Waiting("A node is being removed.", look_again=0.5, reason="Draining")
    return await _delete_leftovers(client, node_name)


async def _evict_or_delete(
    client: KubeClient, pod: Mapping[str, Any], *, now: datetime, force: bool, deadline_passed: bool
) -> bool:
    """Evicts or deletes the pod. True when a disruption budget keeps it."""
    metadata = pod["metadata"]
    name, namespace, uid = metadata["name"], metadata["namespace"], metadata["uid"]
    try:
        if not metadata.get("deletionTimestamp"):
            if not deadline_passed:
                return not await client.evict(name, namespace)
            pod_grace = pod["spec"].get("terminationGracePeriodSeconds")
            grace = _LONGEST_GRACE if pod_grace is None else min(pod_grace, _LONGEST_GRACE)
            await client.delete(PODS, name, namespace, grace=grace, uid=uid)
            return False
        seconds_left = parse_time(metadata["deletionTimestamp"]) - now.timestamp()
        if force and seconds_left <= 0:
            await client.delete(PODS, name, namespace, grace=0, uid=uid)
        elif deadline_passed and seconds_left > _LONGEST_GRACE:
            await client.delete(PODS, name, namespace, grace=_LONGEST_GRACE, uid=uid)
    except (NotFound, Conflict):
        return False  # the pod is gone; another may have its name
    return False


async def _delete_leftovers(client: KubeClient, node_name: str) -> Outcome:
    """Removes the pods and the lease of a node that is gone. Its pods are deleted without grace: nobody stops them."""
    for pod in await _pods_on(client, node_name):
        if _is_held_by_finalizers(pod):
            continue
        metadata = pod["metadata"]
        try:
            await client.delete(
                PODS, metadata["name"], metadata["namespace"], grace=0, uid=metadata["uid"]
            )
        except Conflict:
            continue
    await client.delete(LEASES, node_name, LEASE_NAMESPACE)
    return Done()


async def _pods_on(client: KubeClient, node_name: str) -> Sequence[dict[str, Any]]:
    return (await client.list(PODS, fields=f"spec.nodeName={node_name}")).items


def _is_cordoned(node: Mapping[str, Any]) -> bool:
    return bool(node["spec"].get("unschedulable"))


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def _stays(pod: Mapping[str, Any]) -> bool:
    """Whether the pod belongs to the node itself and would be recreated at once."""
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or ()
    if any(owner.get("controller") and owner["kind"] == "DaemonSet" for owner in owners):
        return True
    return MIRROR_ANNOTATION in (metadata.get("annotations") or {})


def _is_held_by_finalizers(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has stopped and only finalizers keep its object."""
    metadata = pod["metadata"]
    return (
        bool(metadata.get("deletionTimestamp")) and metadata.get("deletionGracePeriodSeconds") == 0
    )


@dataclass(frozen=True)
class Candidate:
    """A node that might leave when its node set shrinks."""

    state: NodeState
    made_at: float


def choose_leaving(
    slots: Sequence[str], count: int, candidates: Mapping[str, Candidate]
) -> list[str]:
    """Returns the slots that leave first: unknown or never joined, then not ready, then the youngest."""

    def leaves_first(slot: str) -> tuple[int, float, int, str]:
        number = slot.rpartition("-")[2]
        youngest = -int(number) if number.isdigit() else 0
        candidate = candidates.get(slot)
        if candidate is None or not candidate.state.joined:
            return 0, 0.0, youngest, slot
        return (2 if candidate.state.ready else 1), -candidate.made_at, youngest, slot

    return sorted(slots, key=leaves_first)[: max(count, 0)]

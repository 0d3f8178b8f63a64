"""Runs the pods of all simulated nodes of one cluster, as decided by `pods`. Called by the agent."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.informer import Informer, split_key
from boatyard.kube.kinds import PODS
from boatyard.platforms.drivers.local.nodes.addresses import Addresses
from boatyard.platforms.drivers.local.nodes.kept import Kept
from boatyard.platforms.drivers.local.nodes.pods import (
    Ground,
    Later,
    Pod,
    Remove,
    Write,
    next_move,
    see_pod,
)
from boatyard.platforms.drivers.local.nodes.standing import Standing

logger = logging.getLogger(__name__)

_NO_ADDRESS_SECONDS = 5.0


class PodWork:
    """All pods bound to nodes, in little memory: one informer per cluster, however many nodes it has."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.informer = Informer(
            client,
            PODS,
            fields="spec.nodeName!=",
            shape=_shape,
            streaming=True,
            longest_pause=2.0,
        )
        self._addresses = Addresses()
        self._placed: dict[str, tuple[str, str]] = {}  # by key: node and uid
        self._on: dict[str, set[str]] = {}  # by node: keys
        self._written: dict[str, int] = {}  # by key: the version our last write made

    def on(self, node: str) -> frozenset[str]:
        return frozenset(self._on.get(node, ()))

    def saw(self, key: str) -> None:
        """Takes in the present state of a pod from the informer."""
        pod = self._get(key)
        before = self._placed.get(key)
        now = None if pod is None else (pod.spec.node_name, pod.metadata.uid)
        if before is not None and before != now:
            self._forget(key, *before)
        if pod is None or now is None:
            return
        self._placed[key] = now
        self._on.setdefault(now[0], set()).add(key)
        if pod.finished:
            self._addresses.give_back(now[1])
        elif pod.status.pod_ip and not pod.spec.host_network:
            self._addresses.note(pod.status.pod_ip, now[1])

    def node_of(self, key: str) -> str:
        return self._placed.get(key, ("", ""))[0]

    async def handle(self, key: str, node: Kept, now: datetime) -> float | None:
        """Does the next action for a pod of the node. Returns the seconds until the next one, if it is due by time."""
        pod = self._get(key)
        if pod is None or node.seen is None or not node.standing.lives:
            return None
        if int(pod.metadata.resource_version) < self._written.get(key, 0):
            return None  # the informer has not seen our last write yet
        self._written.pop(key, None)
        ground = Ground(node.spec.ip, node.began_at, starts=node.standing is Standing.UP)
        address = self._address(pod, node)
        if not address:
            return _NO_ADDRESS_SECONDS
        match next_move(pod, ground, address, now):
            case Write(status):
                await self._write(key, pod, status)
            case Remove():
                namespace, name = split_key(key)
                uid = pod.metadata.uid
                await self._client.delete(PODS, name, namespace, grace=0, uid=uid)
            case Later(at):
                return max(at - now.timestamp(), 0.0)
        return None

    async def _write(self, key: str, pod: Pod, status: dict[str, Any]) -> None:
        namespace, name = split_key(key)
        # A merge patch replaces whole lists: with the version, nothing that others added meanwhile is lost.
        patch = {"metadata": {"resourceVersion": pod.metadata.resource_version}, "status": status}
        response = await self._client.merge_patch(
            PODS, name, patch, namespace, subresource="status"
        )
        self._written[key] = int(response["metadata"]["resourceVersion"])

    def _address(self, pod: Pod, node: Kept) -> str:
        if pod.spec.host_network:
            return node.spec.ip
        if pod.finished or pod.metadata.deletion_timestamp:
            return pod.status.pod_ip or "none"
        return self._addresses.give(node.spec.pod_cidr, node.spec.name, pod.metadata.uid)

    def _get(self, key: str) -> Pod | None:
        item = self.informer.get(key)
        return None if item is None else item["pod"]

    def _forget(self, key: str, node: str, uid: str) -> None:
        del self._placed[key]
        self._written.pop(key, None)
        self._addresses.give_back(uid)
        keys = self._on[node]
        keys.discard(key)
        if not keys:
            del self._on[node]


def _shape(item: Mapping[str, Any]) -> dict[str, Any]:
    metadata = item["metadata"]
    identity = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    return {"metadata": identity, "pod": see_pod(item)}

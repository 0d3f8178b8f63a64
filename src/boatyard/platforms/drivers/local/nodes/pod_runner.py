"""Runs the pods of all simulated nodes of one cluster, as decided by `pods`. Called by the agent."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.informer import Informer, split_key
from boatyard.kube.kinds import PODS
from boatyard.platforms.drivers.local.nodes.node_health import NodeHealth
from boatyard.platforms.drivers.local.nodes.pod_addresses import PodAddresses
from boatyard.platforms.drivers.local.nodes.pods import (
    DeletePod,
    Pod,
    PodNodeState,
    WaitUntil,
    WriteStatus,
    choose_next_action,
    parse_pod,
)
from boatyard.platforms.drivers.local.nodes.simulated_node import SimulatedNode

logger = logging.getLogger(__name__)

_NO_ADDRESS_SECONDS = 5.0


class PodRunner:
    """All pods bound to nodes, in little memory: one informer per cluster, however many nodes it has."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.informer = Informer(
            client,
            PODS,
            fields="spec.nodeName!=",
            shape=_summarize,
            streaming=True,
            longest_pause=2.0,
        )
        self._addresses = PodAddresses()
        self._node_and_uid: dict[str, tuple[str, str]] = {}  # by key: node and uid
        self._keys_by_node: dict[str, set[str]] = {}  # by node: keys
        self._written_versions: dict[str, int] = {}  # by key: the version our last write made

    def list_pods_on(self, node: str) -> frozenset[str]:
        return frozenset(self._keys_by_node.get(node, ()))

    def take_in(self, key: str) -> None:
        """Takes in the present state of a pod from the informer."""
        pod = self._get(key)
        before = self._node_and_uid.get(key)
        now = None if pod is None else (pod.spec.node_name, pod.metadata.uid)
        if before is not None and before != now:
            self._forget(key, *before)
        if pod is None or now is None:
            return
        self._node_and_uid[key] = now
        self._keys_by_node.setdefault(now[0], set()).add(key)
        if pod.is_finished:
            self._addresses.release(now[1])
        elif pod.status.pod_ip and not pod.spec.host_network:
            self._addresses.record(pod.status.pod_ip, now[1])

    def node_of(self, key: str) -> str:
        return self._node_and_uid.get(key, ("", ""))[0]

    async def handle_pod(self, key: str, node: SimulatedNode, now: datetime) -> float | None:
        """Does the next action for a pod of the node. Returns the seconds until the next one, if it is due by time."""
        pod = self._get(key)
        if pod is None or node.summary is None or not node.health.is_kubelet_running:
            return None
        if int(pod.metadata.resource_version) < self._written_versions.get(key, 0):
            return None  # the informer has not seen our last write yet
        self._written_versions.pop(key, None)
        ground = PodNodeState(
            node.spec.ip, node.boot_started_at, starts_pods=node.health is NodeHealth.UP
        )
        address = self._choose_address(pod, node)
        if not address:
            return _NO_ADDRESS_SECONDS
        match choose_next_action(pod, ground, address, now):
            case WriteStatus(status):
                await self._write_status(key, pod, status)
            case DeletePod():
                namespace, name = split_key(key)
                uid = pod.metadata.uid
                await self._client.delete(PODS, name, namespace, grace=0, uid=uid)
            case WaitUntil(at):
                return max(at - now.timestamp(), 0.0)
        return None

    async def _write_status(self, key: str, pod: Pod, status: dict[str, Any]) -> None:
        namespace, name = split_key(key)
        # A merge patch replaces whole lists: with the version, nothing that others added meanwhile is lost.
        patch = {"metadata": {"resourceVersion": pod.metadata.resource_version}, "status": status}
        response = await self._client.merge_patch(
            PODS, name, patch, namespace, subresource="status"
        )
        self._written_versions[key] = int(response["metadata"]["resourceVersion"])

    def _choose_address(self, pod: Pod, node: SimulatedNode) -> str:
        if pod.spec.host_network:
            return node.spec.ip
        if pod.is_finished or pod.metadata.deletion_timestamp:
            return pod.status.pod_ip or "none"
        return self._addresses.allocate(node.spec.pod_cidr, node.spec.name, pod.metadata.uid)

    def _get(self, key: str) -> Pod | None:
        item = self.informer.get(key)
        return None if item is None else item["pod"]

    def _forget(self, key: str, node: str, uid: str) -> None:
        del self._node_and_uid[key]
        self._written_versions.pop(key, None)
        self._addresses.release(uid)
        keys = self._keys_by_node[node]
        keys.discard(key)
        if not keys:
            del self._keys_by_node[node]


def _summarize(item: Mapping[str, Any]) -> dict[str, Any]:
    metadata = item["metadata"]
    identity = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    return {"metadata": identity, "pod": parse_pod(item)}

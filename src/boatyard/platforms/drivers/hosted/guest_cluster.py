"""Nodes of the None platform, which join by other means and are read in the hosted cluster. Called by the driver.

HyperShift creates no machines there. Somebody boots the host with the cluster's ignition and approves its
certificate; this module waits for the node, and drains and removes it when it leaves.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence

from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig, read_kubeconfig
from boatyard.kube.kinds import NODES, PODS
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Waiting
from boatyard.platforms.drivers.hosted import hypershift_status
from boatyard.platforms.drivers.hosted.cluster_manifests import ClusterLocation
from boatyard.platforms.drivers.hosted.hub_api import HubApi
from boatyard.platforms.drivers.hosted.kinds import (
    Manifest,
    ObservedObject,
    annotations_of,
    get_path,
    labels_of,
    metadata_of,
    name_of,
    namespace_of,
)
from boatyard.platforms.drivers.hosted.machines import PoolMachine
from boatyard.platforms.drivers.hosted.slots import Slot, node_set_of, read_slots

LOOK_AGAIN = 5.0
REQUEST_SECONDS = 5.0
RETRY_SECONDS = 8.0
_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"

Connect = Callable[[KubeConfig], KubeClient]


def connect(config: KubeConfig) -> KubeClient:
    return KubeClient(config, timeout=REQUEST_SECONDS, patience=RETRY_SECONDS)


class GuestClients:
    """Cached clients of hosted clusters. A client is replaced when its cluster's kubeconfig changes."""

    def __init__(self, hub: HubApi, connect: Connect = connect) -> None:
        self._hub = hub
        self._connect = connect
        self._clients: dict[str, tuple[str, KubeClient]] = {}

    async def get_client(self, location: ClusterLocation, cluster: ObservedObject) -> KubeClient:
        """Returns a client. Unavailable while there is no kubeconfig, or it refers to programs or files."""
        name = hypershift_status.secret_name(cluster, "kubeconfig")
        data = await self._hub.read_secret(name, location.namespace) if name else None
        text = b64decode((data or {}).get("kubeconfig", ""))
        if not text:
            raise Unavailable("the hosted cluster has no kubeconfig yet", reason="NoAccess")
        digest = hashlib.sha256(text).hexdigest()
        cached = self._clients.get(location.key)
        if cached is not None and cached[0] == digest:
            return cached[1]
        client = self._connect(_config(text))
        self._clients[location.key] = digest, client
        if cached is not None:
            await cached[1].close()
        return client

    async def close_client(self, key: str) -> None:
        cached = self._clients.pop(key, None)
        if cached is not None:
            await cached[1].close()

    async def close(self) -> None:
        for key in list(self._clients):
            await self.close_client(key)


def _config(text: bytes) -> KubeConfig:
    try:
        config = read_kubeconfig(text)
    except Refused as error:
        raise Unavailable("the hosted cluster's kubeconfig is none", reason="NoAccess") from error
    files = (config.ca_file, config.certificate_file, config.key_file, config.token_file)
    if config.plugin is not None or any(files):  # they would be run or read with our permissions
        raise Unavailable("the hosted cluster's kubeconfig names a program", reason="NoAccess")
    return config


def find_node(nodes: Sequence[ObservedObject], slot: Slot) -> ObservedObject | None:
    """Returns the node of this slot's host, by name or by address."""
    for node in nodes:
        names = {name_of(node), labels_of(node).get("kubernetes.io/hostname", "")}
        addresses = {
            str(address.get("address")) for address in get_path(node, "status", "addresses") or ()
        }
        if slot.host in names or (slot.address and slot.address in addresses):
            return node
    return None


def is_ready(node: ObservedObject) -> bool:
    ready = hypershift_status.conditions_of(node).get("Ready")
    return ready is not None and ready.is_true


def as_machines(pool: ObservedObject, nodes: Sequence[ObservedObject]) -> Mapping[str, PoolMachine]:
    """Returns the nodes of a pool as machines, by slot, so that all platforms are handled alike."""
    machines: dict[str, PoolMachine] = {}
    for name, slot in read_slots(pool).items():
        node = find_node(nodes, slot)
        if node is None:
            continue
        machines[name] = PoolMachine(
            name=name_of(node),
            namespace="",
            uid="",
            resource_version="",
            pool=node_set_of(pool),
            agent="",
            node=name_of(node),
            ready=is_ready(node),
            created=str(metadata_of(node).get("creationTimestamp") or ""),
            leaving=False,
            delete_first=False,
            annotations={},
            slot=name,
            key=slot.key,
        )
    return machines


async def remove_node(client: KubeClient, slot: Slot, *, drain: bool) -> Waiting | None:
    """Does the next part of draining and removing the slot's node. None when there is no such node."""
    node = find_node((await client.list(NODES)).items, slot)
    if node is None:
        return None
    name = name_of(node)
    if drain:
        if not get_path(node, "spec", "unschedulable"):
            await client.merge_patch(NODES, name, {"spec": {"unschedulable": True}}, strict=True)
        leaving = await _list_pods_to_evict(client, name)
        for pod in leaving:
            await client.evict(name_of(pod), namespace_of(pod))
        if leaving:
            return Waiting("The node is being drained.", LOOK_AGAIN, "Draining")
    await client.delete(NODES, name)
    return Waiting("The node is being removed.", 1.0, "Leaving")


async def _list_pods_to_evict(client: KubeClient, node: str) -> list[Manifest]:
    """Lists the pods to evict; pods that belong to the node itself are removed with it."""
    pods = (await client.list(PODS, fields=f"spec.nodeName={node}")).items
    return [pod for pod in pods if not _stays_on_node(pod)]


def _stays_on_node(pod: ObservedObject) -> bool:
    owners = metadata_of(pod).get("ownerReferences") or ()
    finished = get_path(pod, "status", "phase") in ("Succeeded", "Failed")
    daemon = any(owner.get("kind") == "DaemonSet" for owner in owners)
    return finished or daemon or _MIRROR_ANNOTATION in annotations_of(pod)

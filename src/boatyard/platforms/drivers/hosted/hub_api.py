"""Reads and writes objects on a hub. Nothing is cached, so that no deletion is based on an old copy.

A read that fails raises; an empty result means that the API server has confirmed that there is nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import CONFIG_MAPS, NAMESPACES, SECRETS, KubeKind
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Unavailable
from boatyard.platforms.drivers.hosted.cluster_automation import ClusterAutomation
from boatyard.platforms.drivers.hosted.cluster_manifests import ClusterLocation, RenderedObject
from boatyard.platforms.drivers.hosted.kinds import (
    AGENTS,
    CLUSTER_API,
    CLUSTER_ORDERS,
    HOSTED_CLUSTERS,
    NODE_POOLS,
    SUPPORTED_VERSIONS,
    Manifest,
    ObservedObject,
    annotations_of,
    labels_of,
    make_machines_kind,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from boatyard.platforms.drivers.hosted.machines import PoolMachine, read_machine
from boatyard.platforms.drivers.hosted.versions import read_supported

# Namespace of clusters whose orders are not objects on this hub. No tenant has a namespace of this name.
NAMESPACE_WITHOUT_ORDERS = "boatyard"
HYPERSHIFT_NAMESPACE = "hypershift"
_DEFAULT_MACHINES_VERSION = (
    "v1beta1"  # the version that HyperShift installs, where the hub prefers none
)

_A = TypeVar("_A")
_B = TypeVar("_B")


class HubApi:
    """Access to one hub as one user. `client` is closed by its owner."""

    def __init__(
        self,
        client: KubeClient,
        settings: Mapping[str, str],
        hub_id: str,
        automation: ClusterAutomation | None = None,
    ) -> None:
        self.client = client
        self.settings = settings
        self.id = hub_id
        self.automation = automation  # automation that writes HostedClusters instead of us, if any
        self.prepared: dict[str, tuple[int, int, str]] = {}  # by key: prerequisites written last
        self._locations: dict[str, ClusterLocation] = {}
        self._machines_kind: KubeKind | None = None
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # --- where things are ----------------------------------------------------------------------

    async def find_location(self, key: str) -> ClusterLocation | None:
        """Returns where the cluster of this key is; None when nothing of it is on this hub.

        Finds it by the label of its namespace; without the label, by the name the namespace must have; and when
        its order is gone too, by its HostedCluster.
        """
        place = await self.locate(key)
        if key in self._locations:
            return place
        if await self.get(NAMESPACES, place.namespace) is not None:
            return self.remember_location(place)
        for cluster in await self.list_objects(
            HOSTED_CLUSTERS, labels={hub_names.KEY: hub_names.label_value(key)}
        ):
            stray = self._parse_location(key, {"metadata": {"name": namespace_of(cluster)}})
            if stray is not None and self._is_ours(key, cluster):
                return self.remember_location(stray)
        return None

    async def locate(self, key: str) -> ClusterLocation:
        """Returns where the cluster is, or should be. Its namespace may not exist yet."""
        cached = self._locations.get(key)
        if cached is not None:
            return cached
        order = hub_names.order_name(_cluster_id(key))
        marks = {hub_names.ORDER: order, hub_names.HUB: hub_names.label_value(self.id)}
        labelled, fallback = await await_both(
            self.list_objects(NAMESPACES, labels=marks), self._locate_by_order(key)
        )
        for namespace in labelled:
            place = self._parse_location(key, namespace)
            if place is not None:
                return self.remember_location(place)
        return fallback

    async def _locate_by_order(self, key: str) -> ClusterLocation:
        """Returns the place that follows from the cluster's ClusterOrder, which is found by its name."""
        cluster_id = _cluster_id(key)
        order = hub_names.order_name(cluster_id)
        namespace, tenant = self._namespace_without_order(), ""
        for cluster_order in await self._list_orders(order):
            # The name is only a hash: the annotation says which cluster the order is for.
            if annotations_of(cluster_order).get(hub_names.CLUSTER, cluster_id) == cluster_id:
                namespace = namespace_of(cluster_order)
                tenant = annotations_of(cluster_order).get(hub_names.TENANT, "")
        return ClusterLocation(
            key=key,
            cluster_id=cluster_id,
            order=order,
            order_namespace=namespace,
            namespace=hub_names.cluster_namespace(namespace, order),
            hub=self.id,
            tenant=tenant,
        )

    def forget_cluster(self, key: str) -> None:
        self._locations.pop(key, None)
        self.prepared.pop(key, None)

    def remember_location(self, location: ClusterLocation) -> ClusterLocation:
        """Remembers where a cluster is. Its namespace exists."""
        self._locations[location.key] = location
        return location

    def _is_ours(self, key: str, cluster: ObservedObject) -> bool:
        """Whether the object is ours. A missing label or annotation counts as ours, a different one does not."""
        hub = hub_names.label_value(self.id)
        return (
            annotations_of(cluster).get(hub_names.KEY, key) == key
            and labels_of(cluster).get(hub_names.HUB, hub) == hub
        )

    def _parse_location(self, key: str, namespace: ObservedObject) -> ClusterLocation | None:
        cluster_id = _cluster_id(key)
        order = hub_names.order_name(cluster_id)
        order_namespace = hub_names.order_namespace_of(name_of(namespace), order)
        stranger = annotations_of(namespace).get(hub_names.KEY, key) != key
        if stranger or not order_namespace or order_namespace.endswith(f"-{order}"):
            return None  # labelled by hand, or the control plane's own namespace
        return ClusterLocation(
            key=key,
            cluster_id=cluster_id,
            order=order,
            order_namespace=order_namespace,
            namespace=name_of(namespace),
            hub=self.id,
            tenant=annotations_of(namespace).get(hub_names.TENANT, ""),
        )

    async def _list_orders(self, order: str) -> list[Manifest]:
        try:
            listed = await self.client.list(CLUSTER_ORDERS, fields=f"metadata.name={order}")
        except NotFound:
            return []  # the hub has no such kind: its orders are in the ledger
        return listed.items

    def _namespace_without_order(self) -> str:
        chosen = self.settings.get("kube.namespace", "")
        return (
            hub_names.check_order_namespace(chosen, "kube.namespace")
            if chosen
            else NAMESPACE_WITHOUT_ORDERS
        )

    # --- looking -------------------------------------------------------------------------------

    async def get(self, kind: KubeKind, name: str, namespace: str = "") -> Manifest | None:
        """Returns the object; None when there is none. Unavailable when the hub does not know the kind."""
        # A list request tells a missing object (empty list) from a missing kind (404).
        try:
            listed = await self.client.list(kind, namespace, fields=f"metadata.name={name}")
        except NotFound:
            raise _missing_kind(kind) from None
        return listed.items[0] if listed.items else None

    async def list_objects(
        self, kind: KubeKind, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """Lists the objects of a kind. Unavailable when the hub does not know the kind."""
        selector = ",".join(f"{name}={value}" for name, value in (labels or {}).items())
        try:
            return (await self.client.list(kind, namespace, labels=selector)).items
        except NotFound:
            raise _missing_kind(kind) from None

    async def get_cluster(self, location: ClusterLocation) -> Manifest | None:
        return await self.get(HOSTED_CLUSTERS, location.order, location.namespace)

    async def get_order(self, location: ClusterLocation) -> Manifest | None:
        """Returns the cluster's ClusterOrder; None when there is none."""
        for cluster_order in await self._list_orders(location.order):
            cluster_id = annotations_of(cluster_order).get(hub_names.CLUSTER, location.cluster_id)
            if (
                namespace_of(cluster_order) == location.order_namespace
                and cluster_id == location.cluster_id
            ):
                return cluster_order
        return None

    async def list_pools(self, location: ClusterLocation) -> list[Manifest]:
        return await self.list_objects(NODE_POOLS, location.namespace)

    async def list_machines(self, location: ClusterLocation) -> list[PoolMachine]:
        kind = await self.get_machines_kind()
        return [
            read_machine(machine)
            for machine in await self.list_objects(kind, location.control_plane_namespace)
        ]

    async def list_agents_of(self, key: str, agent_ref: str = "") -> list[Manifest]:
        """Lists the Agents that carry this node's key, in all namespaces. Empty on a hub without Agents.

        Includes the Agent of `agent_ref` (<namespace>/<name>) even when its labels were removed.
        """
        agents = await self.list_agents({hub_names.KEY: hub_names.label_value(key)})
        namespace, _, name = agent_ref.partition("/")
        if not name or any(
            (namespace_of(candidate), name_of(candidate)) == (namespace, name)
            for candidate in agents
        ):
            return agents
        agent = await self.get(AGENTS, name, namespace)
        return agents if agent is None else [*agents, agent]

    async def list_agents(self, labels: Mapping[str, str]) -> list[Manifest]:
        """Lists Agents with these labels in all namespaces. Empty on a hub without Agents."""
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        try:
            return (await self.client.list(AGENTS, labels=selector)).items
        except NotFound:
            return []

    async def get_machines_kind(self) -> KubeKind:
        """Returns the kind of Machines in the version that this hub prefers."""
        if self._machines_kind is None:
            try:
                api_group = await self.client.call("GET", f"/apis/{CLUSTER_API}")
                version = api_group["preferredVersion"]["version"]
            except NotFound:
                raise _missing_kind(make_machines_kind(_DEFAULT_MACHINES_VERSION)) from None
            except (KeyError, TypeError):
                version = _DEFAULT_MACHINES_VERSION
            self._machines_kind = make_machines_kind(version)
        return self._machines_kind

    async def read_supported_versions(self) -> tuple[str, ...] | None:
        """Returns the minor versions that HyperShift publishes as supported; None when it publishes none."""
        try:
            config_map = await self.client.get(
                CONFIG_MAPS, SUPPORTED_VERSIONS, HYPERSHIFT_NAMESPACE
            )
        except NotFound:
            return None
        listed = (config_map.get("data") or {}).get(SUPPORTED_VERSIONS)
        return None if listed is None else read_supported(listed)

    async def read_secret(self, name: str, namespace: str) -> Mapping[str, str] | None:
        """Returns the data of a Secret, still base64; None when there is no such Secret."""
        try:
            secret = await self.client.get(SECRETS, name, namespace)
        except NotFound:
            return None
        return secret.get("data") or {}

    def get_lock(self, name: str) -> asyncio.Lock:
        """Returns the lock of this name, shared within this process. It is dropped with its last holder."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock

    # --- writing -------------------------------------------------------------------------------

    async def apply(self, rendered: RenderedObject) -> Manifest:
        metadata = rendered.manifest["metadata"]
        return await self.client.apply(
            rendered.kind,
            metadata["name"],
            rendered.manifest,
            metadata.get("namespace", ""),
            strict=True,
        )

    async def apply_all(self, rendered: Sequence[RenderedObject]) -> None:
        """Applies several objects concurrently."""
        if not rendered:
            return
        await await_both(self.apply(rendered[0]), self.apply_all(rendered[1:]))

    async def patch_object(
        self, kind: KubeKind, obj: ObservedObject, patch: Mapping[str, Any]
    ) -> Manifest:
        """Patches an object that was not created by us. Conflict when it has changed since it was read.

        A server-side apply would create a partial object if this one has been deleted meanwhile.
        """
        metadata = {**(patch.get("metadata") or {}), "resourceVersion": resource_version_of(obj)}
        guarded = {**patch, "metadata": metadata}
        return await self.client.merge_patch(
            kind, name_of(obj), guarded, namespace_of(obj), strict=True
        )

    async def delete(self, kind: KubeKind, obj: ObservedObject) -> None:
        """Deletes exactly this object, not a later one of the same name."""
        await self.client.delete(kind, name_of(obj), namespace_of(obj), uid=uid_of(obj))


async def await_both(first_call: Awaitable[_A], second_call: Awaitable[_B]) -> tuple[_A, _B]:
    """Awaits both calls concurrently, so that a verb stays within its time on a slow hub.

    Waits for both even when one fails: a cancelled request costs its connection.
    """
    first, second = await asyncio.gather(first_call, second_call, return_exceptions=True)
    if isinstance(first, BaseException):
        raise first
    if isinstance(second, BaseException):
        raise second
    return first, second


def _cluster_id(key: str) -> str:
    return key.partition("/")[0]


def _missing_kind(kind: KubeKind) -> Unavailable:
    return Unavailable(
        f"this hub has no {kind.plural}.{kind.group}; is HyperShift installed there?",
        reason="NoHyperShift",
    )

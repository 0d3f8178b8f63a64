"""The platform driver `hosted`: control planes by HyperShift on a Kubernetes hub, nodes on three of its platforms.

A cluster is found by its key: its namespace is labelled with it and named after it. A new namespace belongs to the
namespace of the cluster's ClusterOrder; on a hub without such orders, to one namespace for all (`kube.namespace`,
by default `boatyard`). Between calls the driver remembers only where clusters are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from boatyard.kube.client import KubeClient
from boatyard.kube.errors import to_order_error
from boatyard.kube.kinds import NAMESPACES, NODES, KubeKind
from boatyard.model import hub_names
from boatyard.model.errors import Conflict, NotFound, Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, OwnedObject, Waiting
from boatyard.platforms.drivers.hosted import (
    cluster_manifests,
    clusters,
    guest_cluster,
    hypershift_status,
    nodes,
    slots,
    teardown,
)
from boatyard.platforms.drivers.hosted.cluster_automation import ClusterAutomation
from boatyard.platforms.drivers.hosted.cluster_manifests import ClusterLocation
from boatyard.platforms.drivers.hosted.guest_cluster import GuestClients
from boatyard.platforms.drivers.hosted.hub_api import HubApi, await_both
from boatyard.platforms.drivers.hosted.kinds import (
    AGENTS,
    HOSTED_CLUSTERS,
    HYPERSHIFT,
    NODE_POOLS,
    Manifest,
    ObservedObject,
    annotations_of,
    is_being_deleted,
    name_of,
)
from boatyard.platforms.drivers.hosted.machines import PoolMachine
from boatyard.platforms.drivers.hosted.settings import (
    AGENT,
    KUBEVIRT,
    NONE,
    check_hub,
    resolve_platform,
    select_hosted_settings,
)
from boatyard.platforms.port import (
    ClusterAccess,
    DesiredCluster,
    DesiredNode,
    ObservedCluster,
    ObservedNode,
)

P = ParamSpec("P")
T = TypeVar("T")


def _refused_as_unavailable(
    verb: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Wraps a verb: a missing permission of ours becomes Unavailable, because the tenant cannot mend it."""

    @wraps(verb)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await verb(*args, **kwargs)
        except Refused as error:
            raise to_order_error(error) from error

    return wrapper


class HostedPlatform:
    """`client` is shared and closed by its owner; `settings` are the hub's.

    With a `workshop`, automation writes and deletes HostedClusters; the driver still does everything else.
    """

    def __init__(
        self,
        client: KubeClient,
        settings: Mapping[str, str],
        hub_id: str,
        *,
        connect: guest_cluster.Connect = guest_cluster.connect,
        automation: ClusterAutomation | None = None,
    ) -> None:
        self._hub = HubApi(client, settings, hub_id, automation)
        self._guest_clients = GuestClients(self._hub, connect)

    @_refused_as_unavailable
    async def check_ready(self) -> None:
        check_hub(self._hub.settings)
        try:
            await self._hub.client.call("GET", f"/apis/{HYPERSHIFT}/{HOSTED_CLUSTERS.version}")
        except NotFound:
            raise Unavailable(
                "HyperShift is not installed on this hub", reason="NoHyperShift"
            ) from None
        if self._hub.automation is not None:
            await self._hub.automation.check_ready()

    # --- clusters ------------------------------------------------------------------------------

    def needs_hosts(self, settings: Mapping[str, str]) -> bool:
        return resolve_platform(select_hosted_settings(settings), self._hub.settings) != KUBEVIRT

    @_refused_as_unavailable
    async def ensure_cluster(self, key: str, desired: DesiredCluster) -> Outcome:
        return await _map_conflicts(clusters.ensure(self._hub, key, desired))

    @_refused_as_unavailable
    async def release_cluster(self, key: str) -> Outcome:
        outcome = await _map_conflicts(teardown.release(self._hub, key))
        if isinstance(outcome, Done):
            await self._guest_clients.close_client(key)
        return outcome

    @_refused_as_unavailable
    async def observe(self, cluster_key: str) -> ObservedCluster:
        place, cluster = await self._find_cluster(cluster_key)
        if place is None or cluster is None:
            return ObservedCluster(exists=False)
        node_states: list[ObservedNode] = []
        joined: list[str] = []
        for pool, machines in await self._list_pools_with_machines(place, cluster):
            node_states += slots.to_observed_nodes(pool, machines)
            joined += slots.list_joined_slots(machines)
        return hypershift_status.to_observed_cluster(cluster, node_states, joined)

    @_refused_as_unavailable
    async def access(self, cluster_key: str) -> ClusterAccess:
        return await clusters.read_access(self._hub, cluster_key)

    # --- nodes ---------------------------------------------------------------------------------

    @_refused_as_unavailable
    async def ensure_node(self, key: str, cluster_key: str, node: DesiredNode) -> Outcome:
        place, cluster = await self._find_cluster(cluster_key)
        if place is None or cluster is None or is_being_deleted(cluster):
            raise Unavailable(f"there is no hosted cluster {cluster_key}", reason="NoCluster")
        if nodes.platform_of(cluster) == NONE:
            return await _map_conflicts(self._ensure_guest_node(place, cluster, key, node))
        return await _map_conflicts(nodes.ensure_machine(self._hub, place, cluster, key, node))

    @_refused_as_unavailable
    async def release_node(
        self, key: str, cluster_key: str, slot: str, *, drain: bool = True
    ) -> Outcome:
        place, cluster = await self._find_cluster(cluster_key)
        if place is None or cluster is None:
            return await _map_conflicts(nodes.release_agents(self._hub, key))
        if nodes.platform_of(cluster) == NONE:
            release = self._release_guest_node(place, cluster, key, slot, drain=drain)
        else:
            release = nodes.release_machine(self._hub, place, cluster, key, slot, drain=drain)
        return await _map_conflicts(release)

    @_refused_as_unavailable
    async def choose_leaving(
        self, cluster_key: str, node_set: str, slots_there: Sequence[str], count: int
    ) -> Sequence[str]:
        place, cluster = await self._find_cluster(cluster_key)
        machines: dict[str, PoolMachine] = {}
        if place is not None and cluster is not None:
            for pool, pool_machines in await self._list_pools_with_machines(place, cluster):
                if slots.node_set_of(pool) == node_set:
                    machines |= pool_machines
        return slots.choose_leaving(slots_there, count, machines)

    # --- backups -------------------------------------------------------------------------------

    async def ensure_backup(self, key: str, cluster_key: str, folder: str = "") -> Outcome:
        raise Refused("hosted clusters have no backups", reason="NoBackups")

    async def release_backup(self, key: str) -> Outcome:
        return Done()

    # --- all -----------------------------------------------------------------------------------

    @_refused_as_unavailable
    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        """Collects keys from all kinds of objects that carry one, in case some have lost theirs."""
        labels = {hub_names.HUB: hub_names.label_value(self._hub.id)}
        owned: dict[str, OwnedObject] = {}
        for kind, owned_kind in (
            (NAMESPACES, "cluster"),
            (HOSTED_CLUSTERS, "cluster"),
            (AGENTS, "node"),
        ):
            for obj in await self._list_labelled(kind, labels):
                key = annotations_of(obj).get(hub_names.KEY, "")
                owned.setdefault(key, OwnedObject(key, owned_kind, name_of(obj)))
        for pool in await self._list_labelled(NODE_POOLS, labels):
            key = annotations_of(pool).get(hub_names.KEY, "")
            owned.setdefault(key, OwnedObject(key, "cluster", name_of(pool)))
            for slot in slots.read_slots(pool).values():
                owned.setdefault(slot.key, OwnedObject(slot.key, "node", slot.slot))
        return [owned[key] for key in sorted(owned) if key and key.startswith(prefix)]

    async def close(self) -> None:
        await self._guest_clients.close()

    # --- below: helpers ------------------------------------------------------------------------

    async def _list_labelled(self, kind: KubeKind, labels: Mapping[str, str]) -> Sequence[Manifest]:
        if kind is AGENTS:
            return await self._hub.list_agents(labels)
        return await self._hub.list_objects(kind, labels=labels)

    async def _find_cluster(
        self, cluster_key: str
    ) -> tuple[ClusterLocation | None, Manifest | None]:
        """Returns the cluster's place and its HostedCluster; None for what is missing or has another key."""
        place = await self._hub.find_location(cluster_key)
        cluster = await self._hub.get_cluster(place) if place is not None else None
        if place is None or cluster is None or not cluster_manifests.belongs_to(place, cluster):
            return place, None
        return place, cluster

    async def _list_pools_with_machines(
        self, location: ClusterLocation, cluster: Manifest
    ) -> list[tuple[ObservedObject, Mapping[str, PoolMachine]]]:
        """Returns each pool of the cluster with the machines of its slots."""
        platform = nodes.platform_of(cluster)
        if platform == NONE:
            pools = self._select_own_pools(location, await self._hub.list_pools(location))
            guest_nodes = await self._list_guest_nodes(location, cluster) if pools else ()
            return [(pool, guest_cluster.as_machines(pool, guest_nodes)) for pool in pools]
        all_pools, machines = await await_both(
            self._hub.list_pools(location), self._hub.list_machines(location)
        )
        pools = self._select_own_pools(location, all_pools)
        return [
            (pool, slots.match_machines(pool, machines, agents=platform == AGENT)) for pool in pools
        ]

    def _select_own_pools(
        self, location: ClusterLocation, pools: Sequence[Manifest]
    ) -> list[Manifest]:
        return [pool for pool in pools if cluster_manifests.belongs_to(location, pool)]

    async def _list_guest_nodes(
        self, location: ClusterLocation, cluster: Manifest
    ) -> Sequence[Manifest]:
        try:
            client = await self._guest_clients.get_client(location, cluster)
            return (await client.list(NODES)).items
        except (Unavailable, Refused):
            return ()  # reported as not ready, because their state is unknown

    async def _ensure_guest_node(
        self, location: ClusterLocation, cluster: Manifest, key: str, node: DesiredNode
    ) -> Outcome:
        pools = await self._hub.list_pools(location)
        slots.check_free(pools, key, node)
        pool = await nodes.ensure_pool(self._hub, location, cluster, pools, node)
        slot = slots.Slot(node.slot, node.node_set, key, node.host, node.address)
        await nodes.record_slot(self._hub, pool, slot, counted=False)
        client = await self._guest_clients.get_client(location, cluster)
        guest_node = guest_cluster.find_node((await client.list(NODES)).items, slot)
        if guest_node is None:
            return Waiting(
                "The host has not joined yet.", guest_cluster.LOOK_AGAIN, "WorkersJoining"
            )
        if not guest_cluster.is_ready(guest_node):
            return Waiting("The node is not ready yet.", guest_cluster.LOOK_AGAIN, "WorkersJoining")
        return Done()

    async def _release_guest_node(
        self, location: ClusterLocation, cluster: Manifest, key: str, name: str, *, drain: bool
    ) -> Outcome:
        pool_and_slot = slots.find_slot(await self._hub.list_pools(location), name)
        if pool_and_slot is None:
            return Done()
        pool, slot = pool_and_slot
        if slot.key != key:
            raise Refused(f"node {name} is in use under another key", reason="HeldByAnother")
        try:
            client = await self._guest_clients.get_client(location, cluster)
            waiting = await guest_cluster.remove_node(client, slot, drain=drain)
        except Unavailable:
            if drain:
                raise
            waiting = None  # the whole cluster is being removed and may not answer any more
        if waiting is not None:
            return waiting
        await nodes.remove_slot(self._hub, pool, name)
        return Done()


async def _map_conflicts(action: Awaitable[Outcome]) -> Outcome:
    """Awaits an action. A conflict becomes Waiting and a missing object Unavailable: the next call reads again."""
    try:
        return await action
    except Conflict:
        return Waiting("The hub is being changed by others.", 0.5, "Busy")
    except NotFound as error:
        raise Unavailable(f"something is missing on the hub: {error}", reason="NotThere") from error

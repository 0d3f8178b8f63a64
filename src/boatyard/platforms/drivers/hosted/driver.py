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
from boatyard.kube.errors import about_an_order
from boatyard.kube.kinds import NAMESPACES, NODES, Kind
from boatyard.model import hub_names
from boatyard.model.errors import Conflict, NotFound, Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Owned, Waiting
from boatyard.platforms.drivers.hosted import (
    clusters,
    guest,
    nodes,
    reading,
    rendering,
    slots,
    teardown,
)
from boatyard.platforms.drivers.hosted.guest import Guests
from boatyard.platforms.drivers.hosted.hub import Hub, together
from boatyard.platforms.drivers.hosted.kinds import (
    AGENTS,
    HOSTED_CLUSTERS,
    HYPERSHIFT,
    NODE_POOLS,
    Manifest,
    Seen,
    annotations_of,
    is_leaving,
    name_of,
)
from boatyard.platforms.drivers.hosted.machines import Machine
from boatyard.platforms.drivers.hosted.rendering import Place
from boatyard.platforms.drivers.hosted.settings import (
    AGENT,
    KUBEVIRT,
    NONE,
    check_hub,
    named_platform,
    template_part,
)
from boatyard.platforms.drivers.hosted.workshop import Workshop
from boatyard.platforms.port import Access, ClusterSeen, ClusterWanted, NodeSeen, NodeWanted

P = ParamSpec("P")
T = TypeVar("T")


def _works_for_others(
    verb: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Wraps a verb: a missing permission of ours becomes Unavailable, because the tenant cannot mend it."""

    @wraps(verb)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await verb(*args, **kwargs)
        except Refused as error:
            raise about_an_order(error) from error

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
        connect: guest.Connect = guest.connect,
        workshop: Workshop | None = None,
    ) -> None:
        self._hub = Hub(client, settings, hub_id, workshop)
        self._guests = Guests(self._hub, connect)

    @_works_for_others
    async def check_ready(self) -> None:
        check_hub(self._hub.settings)
        try:
            await self._hub.client.call("GET", f"/apis/{HYPERSHIFT}/{HOSTED_CLUSTERS.version}")
        except NotFound:
            raise Unavailable(
                "HyperShift is not installed on this hub", reason="NoHyperShift"
            ) from None
        if self._hub.workshop is not None:
            await self._hub.workshop.check_ready()

    # --- clusters ------------------------------------------------------------------------------

    def needs_hosts(self, settings: Mapping[str, str]) -> bool:
        return named_platform(template_part(settings), self._hub.settings) != KUBEVIRT

    @_works_for_others
    async def ensure_cluster(self, key: str, desired: ClusterWanted) -> Outcome:
        return await _settled(clusters.ensure(self._hub, key, desired))

    @_works_for_others
    async def release_cluster(self, key: str) -> Outcome:
        outcome = await _settled(teardown.release(self._hub, key))
        if isinstance(outcome, Done):
            await self._guests.forget(key)
        return outcome

    @_works_for_others
    async def observe(self, cluster_key: str) -> ClusterSeen:
        place, cluster = await self._find(cluster_key)
        if place is None or cluster is None:
            return ClusterSeen(exists=False)
        node_states: list[NodeSeen] = []
        joined: list[str] = []
        for pool, machines in await self._nodes(place, cluster):
            node_states += slots.see_nodes(pool, machines)
            joined += slots.joined(machines)
        return reading.see(cluster, node_states, joined)

    @_works_for_others
    async def access(self, cluster_key: str) -> Access:
        return await clusters.access(self._hub, cluster_key)

    # --- nodes ---------------------------------------------------------------------------------

    @_works_for_others
    async def ensure_node(self, key: str, cluster_key: str, node: NodeWanted) -> Outcome:
        place, cluster = await self._find(cluster_key)
        if place is None or cluster is None or is_leaving(cluster):
            raise Unavailable(f"there is no hosted cluster {cluster_key}", reason="NoCluster")
        if nodes.platform_of(cluster) == NONE:
            return await _settled(self._ensure_guest_node(place, cluster, key, node))
        return await _settled(nodes.ensure_machine(self._hub, place, cluster, key, node))

    @_works_for_others
    async def release_node(
        self, key: str, cluster_key: str, slot: str, *, drain: bool = True
    ) -> Outcome:
        place, cluster = await self._find(cluster_key)
        if place is None or cluster is None:
            return await _settled(nodes.release_agents(self._hub, key))
        if nodes.platform_of(cluster) == NONE:
            release = self._release_guest_node(place, cluster, key, slot, drain=drain)
        else:
            release = nodes.release_machine(self._hub, place, cluster, key, slot, drain=drain)
        return await _settled(release)

    @_works_for_others
    async def choose_leaving(
        self, cluster_key: str, node_set: str, slots_there: Sequence[str], count: int
    ) -> Sequence[str]:
        place, cluster = await self._find(cluster_key)
        machines: dict[str, Machine] = {}
        if place is not None and cluster is not None:
            for pool, pool_machines in await self._nodes(place, cluster):
                if slots.node_set_of(pool) == node_set:
                    machines |= pool_machines
        return slots.choose_leaving(slots_there, count, machines)

    # --- backups -------------------------------------------------------------------------------

    async def ensure_backup(self, key: str, cluster_key: str, folder: str = "") -> Outcome:
        raise Refused("hosted clusters have no backups", reason="NoBackups")

    async def release_backup(self, key: str) -> Outcome:
        return Done()

    # --- all -----------------------------------------------------------------------------------

    @_works_for_others
    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        """Collects keys from all kinds of objects that carry one, in case some have lost theirs."""
        labels = {hub_names.HUB: hub_names.label_value(self._hub.id)}
        owned: dict[str, Owned] = {}
        for kind, owned_kind in (
            (NAMESPACES, "cluster"),
            (HOSTED_CLUSTERS, "cluster"),
            (AGENTS, "node"),
        ):
            for obj in await self._carrying(kind, labels):
                key = annotations_of(obj).get(hub_names.KEY, "")
                owned.setdefault(key, Owned(key, owned_kind, name_of(obj)))
        for pool in await self._carrying(NODE_POOLS, labels):
            key = annotations_of(pool).get(hub_names.KEY, "")
            owned.setdefault(key, Owned(key, "cluster", name_of(pool)))
            for slot in slots.read_slots(pool).values():
                owned.setdefault(slot.key, Owned(slot.key, "node", slot.slot))
        return [owned[key] for key in sorted(owned) if key and key.startswith(prefix)]

    async def close(self) -> None:
        await self._guests.close()

    # --- below: helpers ------------------------------------------------------------------------

    async def _carrying(self, kind: Kind, labels: Mapping[str, str]) -> Sequence[Manifest]:
        if kind is AGENTS:
            return await self._hub.agents_with(labels)
        return await self._hub.all(kind, labels=labels)

    async def _find(self, cluster_key: str) -> tuple[Place | None, Manifest | None]:
        """Returns the cluster's place and its HostedCluster; None for what is missing or has another key."""
        place = await self._hub.find(cluster_key)
        cluster = await self._hub.cluster(place) if place is not None else None
        if place is None or cluster is None or not rendering.is_of(place, cluster):
            return place, None
        return place, cluster

    async def _nodes(
        self, place: Place, cluster: Manifest
    ) -> list[tuple[Seen, Mapping[str, Machine]]]:
        """Returns each pool of the cluster with the machines of its slots."""
        platform = nodes.platform_of(cluster)
        if platform == NONE:
            pools = self._ours(place, await self._hub.pools(place))
            guest_nodes = await self._guest_nodes(place, cluster) if pools else ()
            return [(pool, guest.as_machines(pool, guest_nodes)) for pool in pools]
        all_pools, machines = await together(self._hub.pools(place), self._hub.machines(place))
        pools = self._ours(place, all_pools)
        return [(pool, slots.match(pool, machines, agents=platform == AGENT)) for pool in pools]

    def _ours(self, place: Place, pools: Sequence[Manifest]) -> list[Manifest]:
        return [pool for pool in pools if rendering.is_of(place, pool)]

    async def _guest_nodes(self, place: Place, cluster: Manifest) -> Sequence[Manifest]:
        try:
            client = await self._guests.client(place, cluster)
            return (await client.list(NODES)).items
        except (Unavailable, Refused):
            return ()  # reported as not ready, because their state is unknown

    async def _ensure_guest_node(
        self, place: Place, cluster: Manifest, key: str, node: NodeWanted
    ) -> Outcome:
        pools = await self._hub.pools(place)
        slots.check_free(pools, key, node)
        pool = await nodes.ensure_pool(self._hub, place, cluster, pools, node)
        slot = slots.Slot(node.slot, node.node_set, key, node.host, node.address)
        await nodes.record(self._hub, pool, slot, counted=False)
        client = await self._guests.client(place, cluster)
        guest_node = guest.find_node((await client.list(NODES)).items, slot)
        if guest_node is None:
            return Waiting("The host has not joined yet.", guest.LOOK_AGAIN, "WorkersJoining")
        if not guest.is_ready(guest_node):
            return Waiting("The node is not ready yet.", guest.LOOK_AGAIN, "WorkersJoining")
        return Done()

    async def _release_guest_node(
        self, place: Place, cluster: Manifest, key: str, name: str, *, drain: bool
    ) -> Outcome:
        pool_and_slot = slots.find_slot(await self._hub.pools(place), name)
        if pool_and_slot is None:
            return Done()
        pool, slot = pool_and_slot
        if slot.key != key:
            raise Refused(f"node {name} is in use under another key", reason="HeldByAnother")
        try:
            client = await self._guests.client(place, cluster)
            waiting = await guest.remove(client, slot, drain=drain)
        except Unavailable:
            if drain:
                raise
            waiting = None  # the whole cluster is being removed and may not answer any more
        if waiting is not None:
            return waiting
        await nodes.strike(self._hub, pool, name)
        return Done()


async def _settled(action: Awaitable[Outcome]) -> Outcome:
    """Awaits an action. A conflict becomes Waiting and a missing object Unavailable: the next call reads again."""
    try:
        return await action
    except Conflict:
        return Waiting("The hub is being changed by others.", 0.5, "Busy")
    except NotFound as error:
        raise Unavailable(f"something is missing on the hub: {error}", reason="NotThere") from error

"""Removes a cluster, each object only after everything that needs it is gone. Called by the driver.

HyperShift does most of it: node pools with their machines, then the control plane, then its namespace. Our own objects
go last, so that the cluster can be found by its key at every moment.
"""

from __future__ import annotations

from boatyard.kube.kinds import NAMESPACES
from boatyard.model import hub_names
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.drivers.hosted import agents, automated, rendering
from boatyard.platforms.drivers.hosted.hub import Hub, together
from boatyard.platforms.drivers.hosted.kinds import (
    HOSTED_CLUSTERS,
    NODE_POOLS,
    Manifest,
    annotations_of,
    is_leaving,
)
from boatyard.platforms.drivers.hosted.rendering import Place

LOOK_AGAIN = 3.0


async def release(hub: Hub, key: str) -> Outcome:
    outcome = await _release(hub, key)
    if isinstance(outcome, Done) and hub.workshop is not None:
        await hub.workshop.forget(key)
    return outcome


async def _release(hub: Hub, key: str) -> Outcome:
    place = await hub.find(key)
    if place is None:
        return await _let_order_go(hub, key) or Done()
    namespace, home = await together(
        hub.get(NAMESPACES, place.namespace), hub.get(NAMESPACES, place.home)
    )
    if namespace is None:
        hub.forget(key)
        return await _let_order_go(hub, key) or Done()
    rendering.refuse_stranger(place, NAMESPACES, namespace)
    # Everything is read before anything is deleted: a read that fails ends the call here.
    pools, cluster = await together(hub.pools(place), hub.cluster(place))
    waiting = await _remove(hub, place, pools, cluster)
    if waiting is not None:
        return waiting
    if home is not None:
        message = "What the control plane left behind is being removed."
        return Waiting(message, LOOK_AGAIN, "RemovingControlPlane")
    waiting_for_hosts = await _let_hosts_go(hub, place)
    if waiting_for_hosts is not None:
        return waiting_for_hosts
    if not is_leaving(namespace):
        if hub.workshop is not None:  # a creation that is still pending must not run now
            await hub.workshop.forget(key)
        await hub.delete(NAMESPACES, namespace)
    return Waiting("The cluster's namespace is being removed.", 1.0, "RemovingNamespace")


async def _remove(
    hub: Hub, place: Place, pools: list[Manifest], cluster: Manifest | None
) -> Waiting | None:
    """Removes node pools, then the control plane: directly, or through automation where that created them."""
    if hub.workshop is not None:
        if cluster is not None:
            rendering.refuse_stranger(place, HOSTED_CLUSTERS, cluster)
        removal = await automated.remove(hub, place, pools, cluster)
        if removal is not None:
            return removal
    for pool in pools:
        if not is_leaving(pool):
            await hub.delete(NODE_POOLS, pool)
    if pools:
        return Waiting("The nodes are being removed.", LOOK_AGAIN, "RemovingNodes")
    if cluster is None:
        return None
    rendering.refuse_stranger(place, HOSTED_CLUSTERS, cluster)
    if not is_leaving(cluster):
        await hub.delete(HOSTED_CLUSTERS, cluster)
    return Waiting("The control plane is being removed.", LOOK_AGAIN, "RemovingControlPlane")


async def _let_order_go(hub: Hub, key: str) -> Waiting | None:
    """Asks automation to remove its finalizer from the order of a cluster that is gone."""
    if hub.workshop is None:
        return None
    return await automated.remove(hub, await hub.locate(key), (), None)


async def _let_hosts_go(hub: Hub, place: Place) -> Waiting | None:
    """Releases the hosts that were not released with their nodes, each once it is observed unbound."""
    waiting: Waiting | None = None
    for agent in await hub.agents_with({hub_names.ORDER: place.order}):
        key = annotations_of(agent).get(hub_names.KEY, "")
        if key.partition("/")[0] == place.cluster_id:
            waiting = await agents.give_back(hub, agent, key) or waiting
    return waiting

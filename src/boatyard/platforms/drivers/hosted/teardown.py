"""Removes a cluster, each object only after everything that needs it is gone. Called by the driver.

HyperShift does most of it: node pools with their machines, then the control plane, then its namespace. Our own objects
go last, so that the cluster can be found by its key at every moment.
"""

from __future__ import annotations

from boatyard.kube.kinds import NAMESPACES
from boatyard.model import hub_names
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.drivers.hosted import agents, automation_jobs, cluster_manifests
from boatyard.platforms.drivers.hosted.cluster_manifests import ClusterLocation
from boatyard.platforms.drivers.hosted.hub_api import HubApi, await_both
from boatyard.platforms.drivers.hosted.kinds import (
    HOSTED_CLUSTERS,
    NODE_POOLS,
    Manifest,
    annotations_of,
    is_being_deleted,
)

LOOK_AGAIN = 3.0


async def release(hub: HubApi, key: str) -> Outcome:
    outcome = await _remove_next_part(hub, key)
    if isinstance(outcome, Done) and hub.automation is not None:
        await hub.automation.forget(key)
    return outcome


async def _remove_next_part(hub: HubApi, key: str) -> Outcome:
    place = await hub.find_location(key)
    if place is None:
        return await _release_order(hub, key) or Done()
    namespace, home = await await_both(
        hub.get(NAMESPACES, place.namespace), hub.get(NAMESPACES, place.control_plane_namespace)
    )
    if namespace is None:
        hub.forget_cluster(key)
        return await _release_order(hub, key) or Done()
    cluster_manifests.refuse_other_owner(place, NAMESPACES, namespace)
    # Everything is read before anything is deleted: a read that fails ends the call here.
    pools, cluster = await await_both(hub.list_pools(place), hub.get_cluster(place))
    waiting = await _remove(hub, place, pools, cluster)
    if waiting is not None:
        return waiting
    if home is not None:
        message = "What the control plane left behind is being removed."
        return Waiting(message, LOOK_AGAIN, "RemovingControlPlane")
    waiting_for_hosts = await _release_hosts(hub, place)
    if waiting_for_hosts is not None:
        return waiting_for_hosts
    if not is_being_deleted(namespace):
        if hub.automation is not None:  # a creation that is still pending must not run now
            await hub.automation.forget(key)
        await hub.delete(NAMESPACES, namespace)
    return Waiting("The cluster's namespace is being removed.", 1.0, "RemovingNamespace")


async def _remove(
    hub: HubApi, location: ClusterLocation, pools: list[Manifest], cluster: Manifest | None
) -> Waiting | None:
    """Removes node pools, then the control plane: directly, or through automation where that created them."""
    if hub.automation is not None:
        if cluster is not None:
            cluster_manifests.refuse_other_owner(location, HOSTED_CLUSTERS, cluster)
        removal = await automation_jobs.run_delete_job(hub, location, pools, cluster)
        if removal is not None:
            return removal
    for pool in pools:
        if not is_being_deleted(pool):
            await hub.delete(NODE_POOLS, pool)
    if pools:
        return Waiting("The nodes are being removed.", LOOK_AGAIN, "RemovingNodes")
    if cluster is None:
        return None
    cluster_manifests.refuse_other_owner(location, HOSTED_CLUSTERS, cluster)
    if not is_being_deleted(cluster):
        await hub.delete(HOSTED_CLUSTERS, cluster)
    return Waiting("The control plane is being removed.", LOOK_AGAIN, "RemovingControlPlane")


async def _release_order(hub: HubApi, key: str) -> Waiting | None:
    """Asks automation to remove its finalizer from the order of a cluster that is gone."""
    if hub.automation is None:
        return None
    return await automation_jobs.run_delete_job(hub, await hub.locate(key), (), None)


async def _release_hosts(hub: HubApi, location: ClusterLocation) -> Waiting | None:
    """Releases the hosts that were not released with their nodes, each once it is observed unbound."""
    waiting: Waiting | None = None
    for agent in await hub.list_agents({hub_names.ORDER: location.order}):
        key = annotations_of(agent).get(hub_names.KEY, "")
        if key.partition("/")[0] == location.cluster_id:
            waiting = await agents.release_agent(hub, agent, key) or waiting
    return waiting

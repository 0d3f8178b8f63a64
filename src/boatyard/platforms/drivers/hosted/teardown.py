"""Takes a cluster away, each thing only after what stands on it is observed gone. Called by the driver.

HyperShift does most of it: node pools with their machines, then the control plane, then the namespace it ran in. What
is ours goes last, so that at every moment the cluster can still be found by its key.
"""

from __future__ import annotations

from boatyard.kube import naming
from boatyard.kube.kinds import NAMESPACES
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.drivers.hosted import agents, rendering
from boatyard.platforms.drivers.hosted.hub import Hub, together
from boatyard.platforms.drivers.hosted.kinds import (
    HOSTED_CLUSTERS,
    NODE_POOLS,
    annotations_of,
    is_leaving,
)
from boatyard.platforms.drivers.hosted.rendering import Place

LOOK_AGAIN = 3.0


async def release(hub: Hub, key: str) -> Outcome:
    place = await hub.find(key)
    if place is None:
        return Done()
    namespace, home = await together(
        hub.get(NAMESPACES, place.namespace), hub.get(NAMESPACES, place.home)
    )
    if namespace is None:
        hub.forget(key)
        return Done()
    rendering.refuse_stranger(place, NAMESPACES, namespace)
    # Everything is looked at before anything is asked for: a look that fails ends here.
    pools, cluster = await together(hub.pools(place), hub.cluster(place))
    for pool in pools:
        if not is_leaving(pool):
            await hub.delete(NODE_POOLS, pool)
    if pools:
        return Waiting("The nodes are being removed.", LOOK_AGAIN, "RemovingNodes")
    if cluster is not None:
        rendering.refuse_stranger(place, HOSTED_CLUSTERS, cluster)
        if not is_leaving(cluster):
            await hub.delete(HOSTED_CLUSTERS, cluster)
        return Waiting("The control plane is being removed.", LOOK_AGAIN, "RemovingControlPlane")
    if home is not None:
        words = "What the control plane left behind is being removed."
        return Waiting(words, LOOK_AGAIN, "RemovingControlPlane")
    held = await _let_hosts_go(hub, place)
    if held is not None:
        return held
    if not is_leaving(namespace):
        await hub.delete(NAMESPACES, namespace)
    return Waiting("The cluster's namespace is being removed.", 1.0, "RemovingNamespace")


async def _let_hosts_go(hub: Hub, place: Place) -> Waiting | None:
    """Hosts that nobody has taken back one by one go with their cluster, each once it is observed unbound."""
    waiting: Waiting | None = None
    for agent in await hub.agents_with({naming.ORDER: place.order}):
        key = annotations_of(agent).get(naming.KEY, "")
        if key.partition("/")[0] == place.cluster_id:
            waiting = await agents.give_back(hub, agent, key) or waiting
    return waiting

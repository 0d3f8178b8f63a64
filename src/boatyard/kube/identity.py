"""Which cluster answers. Asked by whoever must not mistake one for another: a look at a hub, its order book."""

from __future__ import annotations

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NAMESPACES
from boatyard.model.errors import NotFound, Unavailable

OTHER_CLUSTER = "OtherCluster"
_OLDEST_NAMESPACE = "kube-system"  # made with the cluster, never made anew, and restored with it


async def cluster_uid(client: KubeClient) -> str:
    """The cluster's own, whatever its address, certificates and versions are."""
    found = await client.get(NAMESPACES, _OLDEST_NAMESPACE)
    return str(found["metadata"]["uid"])


async def check_cluster(client: KubeClient, uid: str) -> None:
    """Unavailable, reason OtherCluster, when not the cluster with that uid answers. An empty one is not known yet."""
    if not uid:
        return
    try:
        found = await cluster_uid(client)
    except NotFound:
        found = ""  # every cluster has one
    if found != uid:
        raise Unavailable(
            f"what answers at {client.config.server} is another cluster than the hub was",
            reason=OTHER_CLUSTER,
        )

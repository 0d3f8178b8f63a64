"""Which cluster answers. Asked by whoever must not mistake one for another: a look at a hub, its order book."""

from __future__ import annotations

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NAMESPACES
from boatyard.model.errors import NotFound, Unavailable

OTHER_CLUSTER = "OtherCluster"
_OLDEST_NAMESPACE = "kube-system"  # made with the cluster, never made anew, and restored with it


async def cluster_uid(client: KubeClient) -> str:
    """The cluster's own, whatever its address, certificates and versions are."""
    namespace = await client.get(NAMESPACES, _OLDEST_NAMESPACE)
    return str(namespace["metadata"]["uid"])


async def check_cluster(client: KubeClient, uid: str) -> None:
    """Unavailable, reason OtherCluster, when not the cluster with that uid answers. An empty one is not known yet."""
    if not uid:
        return
    try:
        actual_uid = await cluster_uid(client)
    except NotFound:
        actual_uid = ""  # every cluster has one
    if actual_uid != uid:
        raise Unavailable(
            f"what answers at {client.config.server} is another cluster than the hub was",
            reason=OTHER_CLUSTER,
        )

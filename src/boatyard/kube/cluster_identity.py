"""Tells clusters apart by uid. Used where one must not be mistaken for another: hub checks and the order book."""

from __future__ import annotations

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NAMESPACES
from boatyard.model.errors import NotFound, Unavailable

OTHER_CLUSTER = "OtherCluster"
_OLDEST_NAMESPACE = (
    "kube-system"  # created with the cluster, never created again, and restored with its backup
)


async def read_cluster_uid(client: KubeClient) -> str:
    """The uid of the cluster. It stays the same when its address, certificates or version change."""
    namespace = await client.get(NAMESPACES, _OLDEST_NAMESPACE)
    return str(namespace["metadata"]["uid"])


async def check_cluster_uid(client: KubeClient, uid: str) -> None:
    """Unavailable, reason OtherCluster, when another cluster answers. An empty `uid` is not known yet and passes."""
    if not uid:
        return
    try:
        actual_uid = await read_cluster_uid(client)
    except NotFound:
        actual_uid = ""  # every cluster has this namespace
    if actual_uid != uid:
        raise Unavailable(
            f"what answers at {client.config.server} is another cluster than the hub was",
            reason=OTHER_CLUSTER,
        )

"""What the API writes when a tenant orders, scales or deletes a cluster. Used by the proof, which has no API."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from boatyard.ledger.changes import Due, Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Conflict, NotFound
from boatyard.model.generated.osac import (
    Cluster,
    ClusterNodeSet,
    ClusterSpec,
    ClusterState,
    ClusterStatus,
    ClusterTemplateReference,
    ClusterVersionReference,
    HostTypeReference,
    Metadata,
)

TENANT = "acme"


class Tenant:
    """Asks for things, and remembers what was acknowledged."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.acknowledged: list[tuple[str, str, int]] = []

    async def order(self, cluster_id: str, *, name: str, nodes: int) -> None:
        host_type = HostTypeReference(id="bm-small", name="bm-small")
        now = self._ledger.clock.now()
        cluster = Cluster(
            id=cluster_id,
            metadata=Metadata(
                name=name,
                tenant=TENANT,
                creator="ann",
                creation_timestamp=now,
                generation=1,
                finalizers=("boatyard.io/order",),
            ),
            spec=ClusterSpec(
                template=ClusterTemplateReference(id="small", name="small"),
                version=ClusterVersionReference(id="version-4.17.9", name="4-17-9"),
                node_sets={"compute": ClusterNodeSet(host_type=host_type, size=nodes)},
                pull_secret="pull-secret",
            ),
            status=ClusterStatus(state=ClusterState.PROGRESSING),
        )
        due = Due("Cluster", cluster_id, now, tenant=TENANT)
        await self._ledger.commit([Insert(cluster), due], now=now)
        self.acknowledged.append(("Cluster", cluster_id, 0))

    async def scale(self, cluster_id: str, nodes: int) -> None:
        def scaled(cluster: Cluster) -> Cluster:
            old = cluster.spec.node_sets["compute"]
            node_sets = {"compute": msgspec.structs.replace(old, size=nodes)}
            return msgspec.structs.replace(
                cluster,
                spec=msgspec.structs.replace(cluster.spec, node_sets=node_sets),
                metadata=msgspec.structs.replace(
                    cluster.metadata, generation=cluster.metadata.generation + 1
                ),
            )

        await self._change(cluster_id, scaled)

    async def delete(self, cluster_id: str) -> None:
        now = self._ledger.clock.now()

        def leaving(cluster: Cluster) -> Cluster:
            metadata = msgspec.structs.replace(cluster.metadata, deletion_timestamp=now)
            return msgspec.structs.replace(cluster, metadata=metadata)

        await self._change(cluster_id, leaving)

    async def _change(self, cluster_id: str, change: Callable[[Cluster], Cluster]) -> None:
        """Looks again while somebody else writes the cluster."""
        while True:
            cluster = await self._ledger.get(Cluster, cluster_id)
            if cluster is None:
                raise NotFound(f"cluster {cluster_id} is gone")
            now = self._ledger.clock.now()
            due = Due("Cluster", cluster_id, now, tenant=TENANT)
            try:
                await self._ledger.commit([Replace(change(cluster)), due], now=now)
            except Conflict:
                continue
            self.acknowledged.append(("Cluster", cluster_id, cluster.metadata.version + 1))
            return

"""Writes what the API writes when a tenant orders, changes or deletes a cluster. The proof has no API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from boatyard.ledger.changes import Due, Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Conflict, NotFound
from boatyard.model.generated.osac import (
    Cluster,
    ClusterNodeSet,
    ClusterRest,
    ClusterSpec,
    ClusterState,
    ClusterStatus,
    ClusterTemplateReference,
    ClusterVersionReference,
    HostTypeReference,
    Metadata,
)

TENANT = "acme"


@dataclass(frozen=True)
class ClusterRequest:
    """The cluster that a tenant orders."""

    template: str
    version: str
    nodes: int
    digest: str = ""  # of the template's role, where it has one
    phases: tuple[str, ...] = ()  # the parts of it
    hub_labels: Mapping[str, str] = field(default_factory=dict)  # what the template asks of hubs


class TenantRequests:
    """Writes requests of one tenant, and remembers which writes were acknowledged."""

    def __init__(self, ledger: Ledger, request: ClusterRequest) -> None:
        self._ledger = ledger
        self.request = request
        self.acknowledged: list[tuple[str, str, int]] = []

    async def order(self, cluster_id: str, request: ClusterRequest | None = None) -> None:
        """Orders a cluster whose name is its id. `request` replaces the usual one; it must have as many nodes."""
        request = request or self.request
        host_type = HostTypeReference(id="bm-small", name="bm-small")
        now = self._ledger.clock.now()
        cluster = Cluster(
            id=cluster_id,
            metadata=Metadata(
                name=cluster_id,
                tenant=TENANT,
                creator="ann",
                creation_timestamp=now,
                generation=1,
                finalizers=("boatyard.io/order",),
            ),
            spec=ClusterSpec(
                template=ClusterTemplateReference(
                    id=request.template, name=request.template.replace("_", "-")
                ),
                version=_version_reference(request.version),
                node_sets={"compute": ClusterNodeSet(host_type=host_type, size=request.nodes)},
                pull_secret="pull-secret",
                template_digest=request.digest,
                template_phases=request.phases,
                hub_labels=request.hub_labels,
            ),
            status=ClusterStatus(state=ClusterState.PROGRESSING),
        )
        due = Due("Cluster", cluster_id, now, tenant=TENANT)
        await self._ledger.commit([Insert(cluster), due], now=now)
        self.acknowledged.append(("Cluster", cluster_id, 0))

    async def resize(self, cluster_id: str, extra_nodes: int) -> None:
        """Sets the number of nodes to that of the request plus `extra_nodes`."""
        host_type = HostTypeReference(id="bm-small", name="bm-small")
        size = self.request.nodes + extra_nodes
        node_sets = {"compute": ClusterNodeSet(host_type=host_type, size=size)}
        await self.change(cluster_id, node_sets=node_sets)

    async def upgrade(self, cluster_id: str, version: str) -> None:
        await self.change(cluster_id, version=_version_reference(version))

    async def set_rest(self, cluster_id: str, rest: ClusterRest) -> None:
        await self.change(cluster_id, rest=rest)

    async def change(self, cluster_id: str, **fields: Any) -> None:
        """Changes fields of the spec in one write, which raises the generation by one."""

        def with_new_spec(cluster: Cluster) -> Cluster:
            metadata = msgspec.structs.replace(
                cluster.metadata, generation=cluster.metadata.generation + 1
            )
            spec = msgspec.structs.replace(cluster.spec, **fields)
            return msgspec.structs.replace(cluster, spec=spec, metadata=metadata)

        await self._write_change(cluster_id, with_new_spec)

    async def delete(self, cluster_id: str) -> None:
        now = self._ledger.clock.now()

        def with_deletion_timestamp(cluster: Cluster) -> Cluster:
            metadata = msgspec.structs.replace(cluster.metadata, deletion_timestamp=now)
            return msgspec.structs.replace(cluster, metadata=metadata)

        await self._write_change(cluster_id, with_deletion_timestamp)

    async def _write_change(self, cluster_id: str, change: Callable[[Cluster], Cluster]) -> None:
        """Writes the changed cluster; on a conflict reads it again and retries."""
        while True:
            cluster = await self._ledger.documents.get(Cluster, cluster_id)
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


def _version_reference(version: str) -> ClusterVersionReference:
    return ClusterVersionReference(id=f"version-{version}", name=version.replace(".", "-"))

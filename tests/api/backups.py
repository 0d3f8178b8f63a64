"""Clusters that answer and backups that are there, made as the worker would. For the suites in this folder."""

from __future__ import annotations

import itertools
from typing import Any

from msgspec.structs import replace

from boatyard.ledger.changes import Replace
from boatyard.model.generated.boatyard import Backup, BackupState
from boatyard.model.generated.osac import Cluster, ClusterState
from tests.api.doors import OURS, PRIVATE, PUBLIC, Yard
from tests.api.roles import BY_KIND

BACKUPS = f"{OURS}.Backups"
HUB = "hub-1"
_numbers = itertools.count(1)


async def finished_cluster(
    yard: Yard, tenant: str = "acme", *, hub: str = HUB, version: str = "4.17.1", **spec: Any
) -> Any:
    """A cluster that the worker says is READY, as tenants see it."""
    made = BY_KIND["Cluster"].fresh()
    made["metadata"]["tenant"] = tenant
    made["spec"] |= spec
    answer = await yard.grpc.call(
        f"{PRIVATE}.Clusters", "Create", {"object": made}, token=yard.token("operator")
    )
    await progress(
        yard,
        answer["id"],
        state=ClusterState.READY,
        hub=hub,
        api_url="https://api.example:6443",
        version=version,
    )
    return await yard.grpc.call(
        f"{PUBLIC}.Clusters", "Get", {"id": answer["id"]}, token=yard.token("operator")
    )


async def progress(yard: Yard, id: str, **status: Any) -> None:
    """What the worker writes when the order has got somewhere."""
    cluster = await yard.ledger.documents.get(Cluster, id)
    assert cluster is not None
    seen = replace(cluster.status, observed_generation=cluster.metadata.generation, **status)
    changed = replace(cluster, status=seen)
    await yard.ledger.commit([Replace(changed)], now=yard.ledger.clock.now())


async def finished_backup(
    yard: Yard, tenant: str = "acme", *, cluster: str = "", version: str = "4.17.1", **how: Any
) -> Any:
    """A backup that is READY, as operators see it."""
    cluster = cluster or (await finished_cluster(yard, tenant))["id"]
    body = {"metadata": {"name": f"copy-{next(_numbers)}"}, "spec": {"cluster": cluster, **how}}
    made = await yard.grpc.call(BACKUPS, "Create", {"object": body}, token=yard.token("operator"))
    await taken(yard, made["id"], version=version)
    return await yard.grpc.call(BACKUPS, "Get", {"id": made["id"]}, token=yard.token("operator"))


async def taken(yard: Yard, id: str, version: str = "4.17.1") -> None:
    """What the worker writes when the platform has the copy."""
    now = yard.ledger.clock.now()
    backup = await yard.ledger.documents.get(Backup, id)
    assert backup is not None
    status = replace(
        backup.status,
        state=BackupState.READY,
        taken_at=now,
        bytes=4096,
        sha256="ab" * 32,
        version=version,
        place="/var/copies/1.db",
        message="",
    )
    await yard.ledger.commit([Replace(replace(backup, status=status))], now=now)

"""Clusters that answer and backups that are there, made as the worker would. For the suites in this folder."""

from __future__ import annotations

import itertools
from typing import Any

from msgspec.structs import replace

from boatyard.ledger.changes import Replace
from boatyard.model.generated.boatyard import Backup, BackupState
from boatyard.model.generated.osac import Cluster, ClusterState
from tests.api.doors import OURS, PRIVATE, PUBLIC, ApiEnvironment
from tests.api.roles import BY_KIND

BACKUPS = f"{OURS}.Backups"
HUB = "hub-1"
_numbers = itertools.count(1)


async def finished_cluster(
    environment: ApiEnvironment,
    tenant: str = "acme",
    *,
    hub: str = HUB,
    version: str = "4.17.1",
    **spec: Any,
) -> Any:
    """A cluster that the worker says is READY, as tenants see it."""
    made = BY_KIND["Cluster"].fresh()
    made["metadata"]["tenant"] = tenant
    made["spec"] |= spec
    answer = await environment.grpc.call(
        f"{PRIVATE}.Clusters", "Create", {"object": made}, token=environment.token("operator")
    )
    await progress(
        environment,
        answer["id"],
        state=ClusterState.READY,
        hub=hub,
        api_url="https://api.example:6443",
        version=version,
    )
    return await environment.grpc.call(
        f"{PUBLIC}.Clusters", "Get", {"id": answer["id"]}, token=environment.token("operator")
    )


async def progress(environment: ApiEnvironment, id: str, **status: Any) -> None:
    """What the worker writes when the order has got somewhere."""
    cluster = await environment.ledger.documents.get(Cluster, id)
    assert cluster is not None
    seen = replace(cluster.status, observed_generation=cluster.metadata.generation, **status)
    changed = replace(cluster, status=seen)
    await environment.ledger.commit([Replace(changed)], now=environment.ledger.clock.now())


async def finished_backup(
    environment: ApiEnvironment,
    tenant: str = "acme",
    *,
    cluster: str = "",
    version: str = "4.17.1",
    **how: Any,
) -> Any:
    """A backup that is READY, as operators see it."""
    cluster = cluster or (await finished_cluster(environment, tenant))["id"]
    body = {"metadata": {"name": f"copy-{next(_numbers)}"}, "spec": {"cluster": cluster, **how}}
    made = await environment.grpc.call(
        BACKUPS, "Create", {"object": body}, token=environment.token("operator")
    )
    await taken(environment, made["id"], version=version)
    return await environment.grpc.call(
        BACKUPS, "Get", {"id": made["id"]}, token=environment.token("operator")
    )


async def taken(environment: ApiEnvironment, id: str, version: str = "4.17.1") -> None:
    """What the worker writes when the platform has the copy."""
    now = environment.ledger.clock.now()
    backup = await environment.ledger.documents.get(Backup, id)
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
    await environment.ledger.commit([Replace(replace(backup, status=status))], now=now)

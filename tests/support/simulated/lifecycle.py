"""What tenants ask of a finished cluster: rest, backup, restore; as the API writes it. For journeys."""

from __future__ import annotations

from typing import Any

import msgspec

from boatyard.ledger.changes import Due, Insert, Replace
from boatyard.model.generated.boatyard import (
    Backup,
    BackupSpec,
    BackupState,
    BackupStatus,
)
from boatyard.model.generated.osac import ClusterRest, ClusterRestore, Metadata
from boatyard.platforms.port import RestMode
from tests.support.simulated.environment import SimulatedEnvironment


async def hibernate(
    environment: SimulatedEnvironment, cluster_id: str, *, deep: bool = False
) -> None:
    await environment.change(cluster_id, rest=ClusterRest.STOPPED if deep else ClusterRest.FROZEN)


async def resume(environment: SimulatedEnvironment, cluster_id: str) -> None:
    await environment.change(cluster_id, rest=ClusterRest.AWAKE)


async def restore(
    environment: SimulatedEnvironment, cluster_id: str, backup_id: str, request: str
) -> None:
    await environment.change(cluster_id, restore=ClusterRestore(backup=backup_id, request=request))


async def back_up(
    environment: SimulatedEnvironment, cluster_id: str, name: str, *, folder: str = ""
) -> str:
    """What the API does for `backup cluster`: one write."""
    cluster = await environment.cluster(cluster_id)
    now, tenant = environment.clock.now(), cluster.metadata.tenant
    backup = Backup(
        id=f"b-{name}",
        metadata=Metadata(
            name=name,
            tenant=tenant,
            creation_timestamp=now,
            finalizers=("boatyard.io/backup",),
            generation=1,
        ),
        spec=BackupSpec(cluster=cluster_id, folder=folder),
        status=BackupStatus(
            state=BackupState.PENDING,
            hub=cluster.status.hub,
            cluster_name=cluster.metadata.name,
        ),
    )
    await environment.ledger.commit(
        [Insert(backup), Due("Backup", backup.id, now, tenant=tenant)], now=now
    )
    environment.acknowledged.append(("Backup", backup.id, 0))
    return backup.id


async def backup_of(environment: SimulatedEnvironment, backup_id: str) -> Backup:
    found = await environment.ledger.documents.get(Backup, backup_id)
    assert found is not None, f"backup {backup_id} is gone"
    return found


async def run_until_backed_up(environment: SimulatedEnvironment, backup_id: str) -> Backup:
    async def ended() -> bool:
        return (await backup_of(environment, backup_id)).status.state != BackupState.PENDING

    await environment.run(ended)
    return await backup_of(environment, backup_id)


async def delete_backup(environment: SimulatedEnvironment, backup_id: str) -> None:
    backup = await backup_of(environment, backup_id)
    now = environment.clock.now()
    metadata = msgspec.structs.replace(backup.metadata, deletion_timestamp=now)
    leaving = msgspec.structs.replace(backup, metadata=metadata)
    due = Due("Backup", backup_id, now, tenant=backup.metadata.tenant)
    await environment.ledger.commit([Replace(leaving), due], now=now)


async def run_until_backup_gone(environment: SimulatedEnvironment, backup_id: str) -> None:
    async def gone() -> bool:
        return await environment.ledger.documents.get(Backup, backup_id) is None

    await environment.run(gone)


async def write(environment: SimulatedEnvironment, cluster_id: str, contents: str) -> None:
    """A tenant works in the cluster."""
    cluster = await environment.cluster(cluster_id)
    await environment.call(
        "write_objects",
        hub=cluster.status.hub,
        cluster_key=f"{cluster_id}/cluster",
        contents=contents,
    )


async def seen(environment: SimulatedEnvironment, cluster_id: str) -> dict[str, Any]:
    """What the platform says of the cluster, past every fault."""
    cluster = await environment.cluster(cluster_id)
    args = {"hub": cluster.status.hub, "cluster_key": f"{cluster_id}/cluster"}
    found: dict[str, Any] = environment.world.call(
        "platform.observe", args, environment.clock.now().timestamp()
    ).value
    return found


async def rest_of(environment: SimulatedEnvironment, cluster_id: str) -> RestMode:
    return RestMode((await seen(environment, cluster_id))["rest"])


async def notes_of(environment: SimulatedEnvironment, kind: str, id: str) -> list[str]:
    """What has happened to one object, one word each."""
    await environment.ledger.events.publish()
    return [row.reason for row in await environment.ledger.events.list_history([(kind, id)], 100)]

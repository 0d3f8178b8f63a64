"""Takes one backup, and removes it when it is deleted. Called by the engine while there is something to do."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.changes import Archive, Change, Due, Insert, Note, Replace, Signal
from boatyard.ledger.ledger import Ledger
from boatyard.model.caller import SYSTEM
from boatyard.model.generated.boatyard import (
    Backup,
    BackupState,
    BackupStatus,
    Item,
    ItemState,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
)
from boatyard.model.generated.osac import Cluster, Metadata
from boatyard.model.outcome import Done, Outcome
from boatyard.resources.backups import progress
from boatyard.resources.orders.acting import TRY_SECONDS
from boatyard.resources.orders.attempts import Failed, Fault, attempt
from boatyard.resources.orders.reconciler import DriversFor
from boatyard.resources.orders.steps.install import backup_key
from boatyard.resources.reconciling import Result, Turn

_ITEM = Item(key="backup", kind="backup", step="install")


class BackupReconciler:
    def __init__(
        self, *, ledger: Ledger, drivers_for: DriversFor, delete_within: timedelta
    ) -> None:
        self._ledger = ledger
        self._drivers_for = drivers_for
        self._delete_within = delete_within

    async def reconcile(self, turn: Turn) -> Result:
        backup = await self._ledger.documents.get(Backup, turn.id)
        if backup is None:
            return Result()
        if backup.metadata.deletion_timestamp is not None:
            return await self._release(backup, turn)
        if backup.status.state != BackupState.PENDING:
            return Result()
        return await self._take(backup, turn)

    async def poisoned(self, turn: Turn) -> Result:
        backup = await self._ledger.documents.get(Backup, turn.id)
        if backup is None:
            return Result()
        if backup.metadata.deletion_timestamp is not None:
            return _kept_aside(backup, turn.now)
        return _written(backup, progress.died(backup.status), turn.now)

    async def _take(self, backup: Backup, turn: Turn) -> Result:
        """Takes the backup. The committed document has the only key under which anything can exist outside."""
        answer = await self._try(backup, turn, released=False)
        cluster_gone = False
        if isinstance(answer, Failed) and answer.fault is Fault.UNAVAILABLE:
            cluster_gone = (
                await self._ledger.documents.get(Cluster, backup.spec.cluster, sealed=True) is None
            )
        status = progress.taken(backup, answer, cluster_gone=cluster_gone, now=turn.now)
        return _written(backup, status, turn.now)

    async def _release(self, backup: Backup, turn: Turn) -> Result:
        """Removes the copy, then the document. A copy that is not removed in time becomes a Leftover."""
        delete_by = backup.status.delete_by
        if delete_by is None:
            status = msgspec.structs.replace(
                backup.status, delete_by=turn.now + self._delete_within
            )
            return Result(
                changes=[Replace(msgspec.structs.replace(backup, status=status))],
                look_again=turn.now,
                hub=backup.status.hub,
            )
        answer = await self._try(backup, turn, released=True)
        if isinstance(answer, Done):
            return Result(changes=[_archived(backup, Note("Deleted", "Deleted"))])
        if turn.now >= delete_by:
            return _kept_aside(backup, turn.now)
        status = progress.leaving(backup, answer, now=turn.now)
        look_again = min(status.next_look or delete_by, delete_by)
        return Result(
            changes=_changed(backup, status, None), look_again=look_again, hub=backup.status.hub
        )

    async def _try(self, backup: Backup, turn: Turn, *, released: bool) -> Outcome | Failed:
        turn.check_lease()
        backup_attempt = await attempt(
            _ITEM,
            released=released,
            act=self._act(backup, released=released),
            order_id=backup.id,
            seconds=TRY_SECONDS,
        )
        return backup_attempt.answer

    async def _act(self, backup: Backup, *, released: bool) -> Outcome:
        drivers = await self._drivers_for(backup.status.hub)
        key = backup_key(backup.id)
        if released:
            return await drivers.platform.release_backup(key)
        cluster_key = f"{backup.spec.cluster}/cluster"
        return await drivers.platform.ensure_backup(key, cluster_key, backup.spec.folder)


def _written(backup: Backup, status: BackupStatus, now: datetime) -> Result:
    """One write, and an event of the cluster once the backup is taken or has failed."""
    if status.state == BackupState.PENDING:
        return Result(
            changes=_changed(backup, status, None),
            look_again=status.next_look or now,
            hub=backup.status.hub,
        )
    name = backup.metadata.name
    if status.state == BackupState.FAILED:
        note = Note("BackupFailed", f"Backup {name} failed: {status.message}")
    else:
        note = Note("BackedUp", f"Backup {name} of version {status.version} taken")
    changes = _changed(backup, status, note)
    if backup.metadata.tenant != SYSTEM:  # events of a shared cluster are read by all tenants
        changes.append(Signal("Cluster", backup.spec.cluster, backup.metadata.tenant, note))
    return Result(changes=changes, hub=backup.status.hub)


def _changed(backup: Backup, status: BackupStatus, note: Note | None) -> list[Change]:
    if status == backup.status:
        return []
    return [Replace(msgspec.structs.replace(backup, status=status), note=note)]


def _archived(backup: Backup, note: Note) -> Change:
    metadata = msgspec.structs.replace(backup.metadata, finalizers=())
    return Archive(msgspec.structs.replace(backup, metadata=metadata), note=note)


def _kept_aside(backup: Backup, now: datetime) -> Result:
    """Ends the deletion. The copy that may still exist becomes a Leftover, which operators see."""
    item = msgspec.structs.replace(_ITEM, state=ItemState.LEAVING)
    leftover = Leftover(
        id=backup.id,
        metadata=Metadata(
            name=backup.id,
            tenant=backup.metadata.tenant,
            creator=backup.metadata.creator,
            creation_timestamp=now,
        ),
        spec=LeftoverSpec(
            order=backup.id, cluster_name=backup.status.cluster_name, hub=backup.status.hub
        ),
        status=LeftoverStatus(
            items=(item,), next_look=now, message="a backup that was not removed in time"
        ),
    )
    note = Note("Abandoned", "Deleted; the copy itself could not be removed in time")
    return Result(
        changes=[
            _archived(backup, note),
            Insert(leftover, note=note),
            Due(
                "Leftover", leftover.id, now, tenant=leftover.metadata.tenant, hub=backup.status.hub
            ),
        ]
    )

"""Takes one backup, and removes it when it is deleted. Called by the engine while there is something to do."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.changes import Archive, Change, EventNote, Replace, Signal
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
from boatyard.orderbook.mirror import begin_leftover
from boatyard.resources.backups import progress
from boatyard.resources.orders.attempts import AttemptFailure, AttemptFault, run_attempt
from boatyard.resources.orders.item_execution import TRY_SECONDS
from boatyard.resources.orders.reconciler import DriversFor
from boatyard.resources.orders.steps.install import backup_key
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult

_BACKUP_ITEM = Item(key="backup", kind="backup", step="install")


class BackupReconciler:
    def __init__(
        self, *, ledger: Ledger, drivers_for: DriversFor, delete_within: timedelta
    ) -> None:
        self._ledger = ledger
        self._drivers_for = drivers_for
        self._delete_within = delete_within

    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        backup = await self._ledger.documents.get(Backup, reconcile_pass.id)
        if backup is None:
            return ReconcileResult()
        if backup.metadata.deletion_timestamp is not None:
            return await self._release(backup, reconcile_pass)
        if backup.status.state != BackupState.PENDING:
            return ReconcileResult()
        return await self._take(backup, reconcile_pass)

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        backup = await self._ledger.documents.get(Backup, reconcile_pass.id)
        if backup is None:
            return ReconcileResult()
        if backup.metadata.deletion_timestamp is not None:
            return _abandon(backup, reconcile_pass.now)
        return _make_result(backup, progress.fail_after_crashes(backup.status), reconcile_pass.now)

    async def _take(self, backup: Backup, reconcile_pass: ReconcilePass) -> ReconcileResult:
        """Takes the backup. The committed document has the only key under which anything can exist outside."""
        answer = await self._run_attempt(backup, reconcile_pass, released=False)
        cluster_gone = False
        if isinstance(answer, AttemptFailure) and answer.fault is AttemptFault.UNAVAILABLE:
            cluster_gone = (
                await self._ledger.documents.get(Cluster, backup.spec.cluster, sealed=True) is None
            )
        status = progress.apply_take_attempt(
            backup, answer, cluster_gone=cluster_gone, now=reconcile_pass.now
        )
        return _make_result(backup, status, reconcile_pass.now)

    async def _release(self, backup: Backup, reconcile_pass: ReconcilePass) -> ReconcileResult:
        """Removes the copy, then the document. A copy that is not removed in time becomes a Leftover."""
        delete_by = backup.status.delete_by
        if delete_by is None:
            status = msgspec.structs.replace(
                backup.status, delete_by=reconcile_pass.now + self._delete_within
            )
            return ReconcileResult(
                changes=[Replace(msgspec.structs.replace(backup, status=status))],
                look_again=reconcile_pass.now,
                hub=backup.status.hub,
            )
        answer = await self._run_attempt(backup, reconcile_pass, released=True)
        if isinstance(answer, Done):
            return ReconcileResult(
                changes=[_make_archive_change(backup, EventNote("Deleted", "Deleted"))]
            )
        if reconcile_pass.now >= delete_by:
            return _abandon(backup, reconcile_pass.now)
        status = progress.apply_removal_attempt(backup, answer, now=reconcile_pass.now)
        look_again = min(status.next_look or delete_by, delete_by)
        return ReconcileResult(
            changes=_make_changes(backup, status, None),
            look_again=look_again,
            hub=backup.status.hub,
        )

    async def _run_attempt(
        self, backup: Backup, reconcile_pass: ReconcilePass, *, released: bool
    ) -> Outcome | AttemptFailure:
        reconcile_pass.check_lease()
        backup_attempt = await run_attempt(
            _BACKUP_ITEM,
            released=released,
            act=self._call_platform(backup, released=released),
            order_id=backup.id,
            seconds=TRY_SECONDS,
        )
        return backup_attempt.result

    async def _call_platform(self, backup: Backup, *, released: bool) -> Outcome:
        drivers = await self._drivers_for(backup.status.hub)
        key = backup_key(backup.id)
        if released:
            return await drivers.platform.release_backup(key)
        cluster_key = f"{backup.spec.cluster}/cluster"
        return await drivers.platform.ensure_backup(key, cluster_key, backup.spec.folder)


def _make_result(backup: Backup, status: BackupStatus, now: datetime) -> ReconcileResult:
    """One write, and an event of the cluster once the backup is taken or has failed."""
    if status.state == BackupState.PENDING:
        return ReconcileResult(
            changes=_make_changes(backup, status, None),
            look_again=status.next_look or now,
            hub=backup.status.hub,
        )
    name = backup.metadata.name
    if status.state == BackupState.FAILED:
        note = EventNote("BackupFailed", f"Backup {name} failed: {status.message}")
    else:
        note = EventNote("BackedUp", f"Backup {name} of version {status.version} taken")
    changes = _make_changes(backup, status, note)
    if backup.metadata.tenant != SYSTEM:  # events of a shared cluster are read by all tenants
        changes.append(Signal("Cluster", backup.spec.cluster, backup.metadata.tenant, note))
    return ReconcileResult(changes=changes, hub=backup.status.hub)


def _make_changes(backup: Backup, status: BackupStatus, note: EventNote | None) -> list[Change]:
    if status == backup.status:
        return []
    return [Replace(msgspec.structs.replace(backup, status=status), note=note)]


def _make_archive_change(backup: Backup, note: EventNote) -> Change:
    metadata = msgspec.structs.replace(backup.metadata, finalizers=())
    return Archive(msgspec.structs.replace(backup, metadata=metadata), note=note)


def _abandon(backup: Backup, now: datetime) -> ReconcileResult:
    """Ends the deletion. The copy that may still exist becomes a Leftover, which operators see."""
    item = msgspec.structs.replace(_BACKUP_ITEM, state=ItemState.LEAVING)
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
    note = EventNote("Abandoned", "Deleted; the copy itself could not be removed in time")
    return ReconcileResult(
        changes=[_make_archive_change(backup, note), *begin_leftover(leftover, note, now)]
    )

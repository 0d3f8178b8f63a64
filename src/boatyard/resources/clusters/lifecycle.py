"""Hibernation, version and restore of a cluster: which changes are allowed, and when. Pure; called by its rules."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from boatyard.model.caller import SHARED, SYSTEM
from boatyard.model.errors import Precondition, Violation
from boatyard.model.generated.boatyard import Backup, BackupState
from boatyard.model.generated.osac import (
    Cluster,
    ClusterRest,
    ClusterRestore,
    ClusterSpec,
    ClusterState,
    ClusterVersion,
    ClusterVersionReference,
)
from boatyard.resources.admission_context import AdmissionContext, DocumentLookup
from boatyard.resources.cluster_versions.rules import is_usable
from boatyard.resources.cluster_versions.upgrades import find_change_violation, is_newer_minor
from boatyard.resources.metadata import quote_text

LONGEST_REQUEST = 63
_BACKUP = "spec.restore.backup"
_STEADY = (ClusterState.READY, ClusterState.DEGRADED, ClusterState.HIBERNATED)


# --- rest -----------------------------------------------------------------------------------------


def new_cluster_rest_violations(spec: ClusterSpec) -> Iterator[Violation]:
    if spec.rest != ClusterRest.AWAKE:
        yield Violation("spec.rest", "a new cluster is awake", "create it, then hibernate it")


def check_rest_change(old: Cluster, spec: ClusterSpec) -> None:
    """Raises Precondition unless the change of rest is allowed.

    A hibernated cluster changes in nothing else, and only a steady cluster is hibernated.
    """
    before, after = old.spec.rest, spec.rest
    if before == after == ClusterRest.AWAKE:
        return
    name = old.metadata.name
    others = [
        field
        for field in spec.__struct_fields__
        if field != "rest" and getattr(spec, field) != getattr(old.spec, field)
    ]
    if others and before != ClusterRest.AWAKE:
        violations = [
            Violation(f"spec.{field}", "cannot change while the cluster rests", "resume it first")
            for field in others
        ]
        raise Precondition(f"the cluster {name} rests: resume it first", *violations)
    if others:
        raise Precondition(
            f"the cluster {name} is put to rest in a request of its own:"
            f" leave {', '.join(f'spec.{field}' for field in others)} as it is"
        )
    if before == ClusterRest.STOPPED and after == ClusterRest.FROZEN:
        raise Precondition(f"the cluster {name} is stopped, which is deeper; resume it first")
    if before == ClusterRest.AWAKE and not _is_steady(old):
        raise Precondition(
            f"the cluster {name} is {old.status.state.name} and cannot be put to rest now;"
            " wait until it is READY"
        )


def _is_steady(cluster: Cluster) -> bool:
    """Whether no change is in progress or waiting to be reconciled."""
    up_to_date = cluster.status.observed_generation == cluster.metadata.generation
    return up_to_date and cluster.status.state in _STEADY


# --- version --------------------------------------------------------------------------------------


def version_violations(
    old: Cluster, spec: ClusterSpec, context: AdmissionContext
) -> Iterator[Violation]:
    """Compares with the version that runs, not with the last spec: a failed change can be reverted."""
    new_version = context.get(ClusterVersion, spec.version.id)
    old_version = context.get(ClusterVersion, old.spec.version.id)
    running = old.status.version or (old_version.spec.version if old_version is not None else "")
    if new_version is None or not running:
        return
    violation = find_change_violation(
        running, new_version.spec.version, context.get_all(ClusterVersion)
    )
    if violation is not None:
        yield violation


# --- restore --------------------------------------------------------------------------------------


def get_backup_tenant(tenant: str) -> str:
    """The tenant that owns backups of a tenant's clusters. Backups of shared clusters are not shared."""
    return SYSTEM if tenant == SHARED else tenant


def list_backup_lookups(old: Cluster | None, new: Cluster) -> tuple[DocumentLookup, ...]:
    """Requests the backup to restore, only when the restore is new: later the backup may be deleted."""
    restore = new.spec.restore
    if not restore.backup or (old is not None and restore == old.spec.restore):
        return ()
    return (
        DocumentLookup(_BACKUP, Backup, restore.backup, (get_backup_tenant(new.metadata.tenant),)),
    )


def admit_restore(
    old: Cluster | None, spec: ClusterSpec, context: AdmissionContext, violations: list[Violation]
) -> ClusterRestore:
    """Returns the restore with the backup's id and a request id of its own; appends what is wrong to `violations`."""
    restore = spec.restore
    before = old.spec.restore if old is not None else ClusterRestore()
    if restore == before:
        return restore
    if len(restore.request) > LONGEST_REQUEST:
        violations.append(
            Violation("spec.restore.request", f"{quote_text(restore.request)} is too long")
        )
    if not restore.backup:
        if restore.request:
            violations.append(Violation(_BACKUP, "is required", "name a backup"))
        return restore
    backup = context.get(Backup, restore.backup)
    if backup is None:
        return restore  # the missing backup is a violation already
    violations += _backup_violations(old, spec, backup, context)
    needs_new_request = not restore.request or (
        restore.request == before.request and backup.id != before.backup
    )
    generation = old.metadata.generation + 1 if old is not None else 1
    return replace(
        restore,
        backup=backup.id,
        request=f"generation-{generation}" if needs_new_request else restore.request,
    )


def _backup_violations(
    old: Cluster | None, spec: ClusterSpec, backup: Backup, context: AdmissionContext
) -> Iterator[Violation]:
    name = quote_text(backup.metadata.name)
    if backup.metadata.deletion_timestamp is not None:
        yield Violation(_BACKUP, f"{name} is being deleted", "choose another backup")
        return
    if backup.status.state != BackupState.READY:
        state = backup.status.state.name
        yield Violation(_BACKUP, f"{name} is {state}", "wait until it is READY")
        return
    if old is not None and old.status.hub and old.status.hub != backup.status.hub:
        yield Violation(
            _BACKUP, f"{name} is kept elsewhere than the cluster", "order a new cluster from it"
        )
    if old is not None and spec.version != old.spec.version:
        yield Violation("spec.version", "changes in a request of its own", "restore first")
    version = context.get(ClusterVersion, spec.version.id)
    if version is not None and is_newer_minor(backup.status.version, version.spec.version):
        yield Violation(
            _BACKUP,
            f"{name} is of version {backup.status.version}, the cluster of {version.spec.version}",
            "a backup goes into a cluster of the same or a later minor",
        )


def get_backup_version(
    spec: ClusterSpec, context: AdmissionContext, violations: list[Violation]
) -> ClusterVersionReference:
    """The version of the backup: the default version of a cluster that is created from it."""
    backup = context.get(Backup, spec.restore.backup) if spec.restore.backup else None
    if backup is None or not backup.status.version:
        return spec.version
    for version in context.get_all(ClusterVersion):
        if version.spec.version == backup.status.version and is_usable(version):
            return ClusterVersionReference(id=version.id, name=version.metadata.name)
    violations.append(
        Violation(
            "spec.version",
            f"{backup.status.version}, of which the backup is, is not in the catalogue any more",
            "name a later one",
        )
    )
    return spec.version

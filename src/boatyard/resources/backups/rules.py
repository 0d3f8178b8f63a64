"""Admission rules of backups. Called by the API before a backup is stored."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from boatyard.model.caller import Caller
from boatyard.model.errors import Precondition, Refused, Violation
from boatyard.model.generated.boatyard import Backup, BackupState, BackupStatus
from boatyard.model.generated.osac import Cluster, ClusterRest
from boatyard.resources.clusters.lifecycle import owner_of_backups
from boatyard.resources.metadata import shown
from boatyard.resources.world import Sought, World

LONGEST_FOLDER = 1024
# Fields that only the provider may see.
OPERATORS_ONLY = (
    "spec.folder",
    "status.hub",
    "status.place",
    "status.cause",
    "status.tries",
    "status.bugs",
    "metadata.finalizers",
)


def sought(old: Backup | None, new: Backup, caller: Caller) -> tuple[Sought, ...]:
    """Requests the cluster to back up: one of the tenant's own, any for operators."""
    if not new.spec.cluster:
        return ()
    tenants = None if caller.is_operator else (caller.tenant,)
    return (Sought("spec.cluster", Cluster, new.spec.cluster, tenants),)


def admit_create(new: Backup, world: World) -> Backup:
    """Admits a new backup. It belongs to the cluster's tenant, also when an operator creates it."""
    violations = list(_violations(new, world))
    if not new.spec.cluster:
        violations.append(Violation("spec.cluster", "is required", "name a cluster"))
    if violations:
        raise Refused("", *violations)
    cluster = world.get(Cluster, new.spec.cluster)
    if cluster is None:
        return new  # the missing cluster is a violation already
    _check_answers(cluster)
    return replace(
        new,
        metadata=replace(new.metadata, tenant=owner_of_backups(cluster.metadata.tenant)),
        spec=replace(new.spec, cluster=cluster.id),
        status=BackupStatus(
            state=BackupState.PENDING,
            cluster_name=cluster.metadata.name,
            hub=cluster.status.hub,
            message="it is about to be taken",
        ),
    )


def admit_update(old: Backup, new: Backup, world: World) -> Backup:
    raise Refused("a backup stays as it was taken; take another one")


def deleting(old: Backup, world: World) -> Backup:
    """The backup when its deletion is requested: earlier tries are forgotten, so the release begins at once."""
    return replace(old, status=replace(old.status, tries=0, bugs=0, next_look=None))


def _violations(new: Backup, world: World) -> Iterator[Violation]:
    folder = new.spec.folder
    if not folder:
        return
    if not world.caller.is_operator:
        yield Violation("spec.folder", "is for operators", "leave it out")
    elif not folder.startswith("/") or len(folder) > LONGEST_FOLDER or not folder.isprintable():
        yield Violation("spec.folder", f"{shown(folder)} is not a folder", "give its whole path")
    elif ".." in folder.split("/"):
        yield Violation("spec.folder", "leads up", "give its whole path without ..")


def _check_answers(cluster: Cluster) -> None:
    """Raises Precondition unless the cluster answers: only then can a backup be taken."""
    name = cluster.metadata.name
    if cluster.metadata.deletion_timestamp is not None:
        raise Precondition(f"the cluster {name} is being deleted; no backup can be taken of it")
    if cluster.spec.rest != ClusterRest.AWAKE or cluster.status.rest != ClusterRest.AWAKE:
        raise Precondition(f"the cluster {name} rests; resume it first")
    if not cluster.status.hub or not cluster.status.api_url:
        raise Precondition(
            f"the cluster {name} is {cluster.status.state.name} and does not answer yet;"
            " wait until it is READY"
        )

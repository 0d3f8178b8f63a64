"""Admission rules of backups. Called by the API before a backup is stored."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from boatyard.model.caller import Caller
from boatyard.model.errors import Precondition, Refused, Violation
from boatyard.model.generated.boatyard import Backup, BackupState, BackupStatus
from boatyard.model.generated.osac import Cluster, ClusterRest
from boatyard.resources.admission_context import AdmissionContext, DocumentLookup
from boatyard.resources.clusters.lifecycle import get_backup_tenant
from boatyard.resources.kind_rules import KindRules
from boatyard.resources.metadata import quote_text

LONGEST_FOLDER = 1024


class BackupRules(KindRules[Backup]):
    operators_only = (
        "spec.folder",
        "status.hub",
        "status.place",
        "status.cause",
        "status.tries",
        "status.bugs",
        "metadata.finalizers",
    )

    def list_lookups(
        self, old: Backup | None, new: Backup, caller: Caller
    ) -> tuple[DocumentLookup, ...]:
        """Requests the cluster to back up: one of the tenant's own, any for operators."""
        if not new.spec.cluster:
            return ()
        tenants = None if caller.is_operator else (caller.tenant,)
        return (DocumentLookup("spec.cluster", Cluster, new.spec.cluster, tenants),)

    def admit_create(self, new: Backup, context: AdmissionContext) -> Backup:
        """Admits a new backup. It belongs to the cluster's tenant, also when an operator creates it."""
        violations = list(_violations(new, context))
        if not new.spec.cluster:
            violations.append(Violation("spec.cluster", "is required", "name a cluster"))
        if violations:
            raise Refused("", *violations)
        cluster = context.get(Cluster, new.spec.cluster)
        if cluster is None:
            return new  # the missing cluster is a violation already
        _check_cluster_answers(cluster)
        return replace(
            new,
            metadata=replace(new.metadata, tenant=get_backup_tenant(cluster.metadata.tenant)),
            spec=replace(new.spec, cluster=cluster.id),
            status=BackupStatus(
                state=BackupState.PENDING,
                cluster_name=cluster.metadata.name,
                hub=cluster.status.hub,
                message="it is about to be taken",
            ),
        )

    def admit_update(self, old: Backup, new: Backup, context: AdmissionContext) -> Backup:
        raise Refused("a backup stays as it was taken; take another one")

    def mark_deleted(self, doc: Backup, context: AdmissionContext) -> Backup:
        """The backup when its deletion is requested: earlier tries are forgotten, so the release begins at once."""
        return replace(doc, status=replace(doc.status, tries=0, bugs=0, next_look=None))


def _violations(new: Backup, context: AdmissionContext) -> Iterator[Violation]:
    folder = new.spec.folder
    if not folder:
        return
    if not context.caller.is_operator:
        yield Violation("spec.folder", "is for operators", "leave it out")
    elif not folder.startswith("/") or len(folder) > LONGEST_FOLDER or not folder.isprintable():
        yield Violation(
            "spec.folder", f"{quote_text(folder)} is not a folder", "give its whole path"
        )
    elif ".." in folder.split("/"):
        yield Violation("spec.folder", "leads up", "give its whole path without ..")


def _check_cluster_answers(cluster: Cluster) -> None:
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

"""Backups of simulated clusters. They outlive the clusters and do not count as left over."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Outcome
from boatyard.twin.hub import Thing
from boatyard.twin.services.control_planes import ClusterFields, current_version, is_available
from boatyard.twin.services.verb_context import VerbContext

_EMPTY_SIZE = 4096  # bytes of a copy of a cluster nobody has used yet


class BackupFields(NamedTuple):
    """What `extra` holds for a backup; its name is the cluster's, its ref the cluster's key."""

    version: str
    contents: str
    folder: str


def ensure_backup(context: VerbContext, key: str, cluster_key: str, folder: str = "") -> Outcome:
    context.count_call("backup", key)
    backup = context.find("backup", key)
    if backup is None:
        backup = _make_backup(context, key, cluster_key, folder)
    if backup.gone_at:
        return context.wait_until("The backup is still being removed.", backup.gone_at)
    return context.to_outcome(
        backup, "The backup is being written.", _backup_facts(backup), named=backup.name
    )


def _make_backup(context: VerbContext, key: str, cluster_key: str, folder: str) -> Thing:
    cluster = context.find("cluster", cluster_key)
    if cluster is None or cluster.gone_at or not is_available(context, cluster):
        raise Unavailable("the cluster to keep a copy of does not answer", reason="NoCluster")
    context.refuse_by_behaviour("backup", key, cluster.name)
    fields = BackupFields(
        current_version(context, cluster), ClusterFields(*cluster.extra).contents, folder
    )
    return context.make("backup", key, cluster.name, ref=cluster_key, extra=fields)


def release_backup(context: VerbContext, key: str) -> Outcome:
    context.count_call("backup", key)
    backup = context.find("backup", key)
    named = backup.name if backup is not None else ""
    return context.release(backup, "The backup is being removed.", named=named)


def read_backup_contents(context: VerbContext, key: str) -> str:
    """The contents of a backup. Refused when there is none, or it is not written yet."""
    backup = context.find("backup", key)
    if backup is None or backup.gone_at or backup.ready_at > context.now:
        raise Refused("there is no such backup here", reason="NoBackup")
    return BackupFields(*backup.extra).contents


def _backup_facts(backup: Thing) -> dict[str, str]:
    fields = BackupFields(*backup.extra)
    place = fields.folder or f"twin/{backup.hub}"
    content = fields.contents.encode()
    return {
        "place": f"{place}/{backup.key.replace('/', '-')}.db",
        "bytes": str(_EMPTY_SIZE + len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
        "version": fields.version,
    }

"""Copies of what simulated clusters hold. They outlive the clusters, and nobody counts them as left over."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Outcome
from boatyard.twin.hub import Thing
from boatyard.twin.services.at import At
from boatyard.twin.services.control_planes import ClusterFields, is_available, version_now

_EMPTY_SIZE = 4096  # bytes of a copy of a cluster nobody has used yet


class BackupFields(NamedTuple):
    """What `extra` holds for a backup; its name is the cluster's, its ref the cluster's key."""

    version: str
    contents: str
    folder: str


def ensure_backup(at: At, key: str, cluster_key: str, folder: str = "") -> Outcome:
    at.called("backup", key)
    backup = at.find("backup", key)
    if backup is None:
        backup = _make(at, key, cluster_key, folder)
    if backup.gone_at:
        return at.wait("The backup is still being removed.", backup.gone_at)
    return at.answer(backup, "The backup is being written.", _facts(backup), named=backup.name)


def _make(at: At, key: str, cluster_key: str, folder: str) -> Thing:
    cluster = at.find("cluster", cluster_key)
    if cluster is None or cluster.gone_at or not is_available(at, cluster):
        raise Unavailable("the cluster to keep a copy of does not answer", reason="NoCluster")
    at.refuse_in_mood("backup", key, cluster.name)
    fields = BackupFields(version_now(at, cluster), ClusterFields(*cluster.extra).contents, folder)
    return at.make("backup", key, cluster.name, ref=cluster_key, extra=fields)


def release_backup(at: At, key: str) -> Outcome:
    at.called("backup", key)
    backup = at.find("backup", key)
    named = backup.name if backup is not None else ""
    return at.release(backup, "The backup is being removed.", named=named)


def kept_contents(at: At, key: str) -> str:
    """What a backup holds. Refused when there is none, or none yet."""
    backup = at.find("backup", key)
    if backup is None or backup.gone_at or backup.ready_at > at.now:
        raise Refused("there is no such backup here", reason="NoBackup")
    return BackupFields(*backup.extra).contents


def _facts(backup: Thing) -> dict[str, str]:
    fields = BackupFields(*backup.extra)
    place = fields.folder or f"twin/{backup.hub}"
    content = fields.contents.encode()
    return {
        "place": f"{place}/{backup.key.replace('/', '-')}.db",
        "bytes": str(_EMPTY_SIZE + len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
        "version": fields.version,
    }

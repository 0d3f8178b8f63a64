"""The keeper's record of each cluster, on disk before anything of the cluster is created.

A directory per cluster, named by a short digest of its key:

    cluster.json, private/    readable by us alone: the record, the administrators' keys
    run/                      working directory of its processes, which may read it
    run/var/                  the only directory they may write

A directory without a record was being created when the keeper died; no caller knows of it, and it is removed.
One whose record cannot be read belongs to somebody: it is left as it is, and the other clusters go on.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from boatyard.model.errors import Unavailable
from boatyard.platforms.port import DesiredCluster

logger = logging.getLogger(__name__)

RECORD_FILE = "cluster.json"
_TRASH_PREFIX = ".gone-"


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One node that should exist, or is leaving."""

    key: str
    slot: str
    node_set: str
    host: str
    address: str
    number: int  # never reused within a cluster; its pod range and address follow from it
    made_at: float
    leaving_since: float = 0.0


class ClusterRecord(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    slug: str
    hub: str
    wanted: DesiredCluster
    user: int | None  # the user id of its processes; None: our own
    ports: Mapping[str, int]
    members: int  # etcd members and API servers
    real: bool  # nodes are kubelets in network namespaces
    made_at: float
    version: str = ""  # the last version whose API has answered
    failed_version: str = ""  # did not come up, and was rolled back
    upgrading: str = ""  # to this version; the snapshot before it exists
    rolling_back: str = ""  # from this version, which did not come up
    unreadable: bool = False  # the old version cannot read the present data
    putting_back: bool = False  # a snapshot is unpacked and is replacing the data
    restored: str = ""  # the request of the last restore that was carried out
    encryption_keys: tuple[
        str, ...
    ] = ()  # newest first; secrets of a restored backup need its keys
    next_number: int = 0
    nodes: Mapping[str, NodeRecord] = {}  # by key
    frozen: bool = False  # its processes may be frozen
    leaving: bool = False


def slug_of(key: str) -> str:
    """Returns a short name of a cluster that fits into socket paths and network names."""
    return hashlib.sha256(key.encode()).hexdigest()[:10]


class ClusterRecords:
    """All clusters of one data directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o711)
        self._by_slug: dict[str, ClusterRecord] = {}
        self.unreadable: dict[str, Path] = {}  # records by slug
        for entry in sorted(directory.iterdir()):
            if entry.name.startswith(_TRASH_PREFIX):
                remove_tree(entry)
            elif entry.is_dir():
                self._load(entry)

    def _load(self, cluster_directory: Path) -> None:
        try:
            record = _read(cluster_directory / RECORD_FILE)
        except _UnreadableRecord as error:
            self.unreadable[cluster_directory.name] = cluster_directory / RECORD_FILE
            fields = {"record": str(cluster_directory / RECORD_FILE), "why": str(error)}
            logger.error("cluster record cannot be read; the cluster is left alone", extra=fields)
            return
        if record is None:
            self.remove(cluster_directory.name)
        else:
            self._by_slug[record.slug] = record

    def __iter__(self) -> Iterator[ClusterRecord]:
        return iter(self._by_slug.values())

    def find(self, key: str) -> ClusterRecord | None:
        """Returns the record; None when there is no such cluster. Unavailable when its record cannot be read."""
        slug = slug_of(key)
        if slug in self.unreadable:
            raise Unavailable(
                f"the cluster is left alone, because its record {self.unreadable[slug]} cannot be read; "
                "put that file right and start Boatyard again",
                reason="RecordUnreadable",
            )
        record = self._by_slug.get(slug)
        return record if record is not None and record.key == key else None

    def get(self, slug: str) -> ClusterRecord:
        return self._by_slug[slug]

    def directory_of(self, slug: str) -> Path:
        return self.directory / slug

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Stores the record; it is on disk when this returns."""
        cluster_directory = self.directory_of(record.slug)
        cluster_directory.mkdir(exist_ok=True, mode=0o700)
        write_durably(cluster_directory / RECORD_FILE, msgspec.json.encode(record))
        self._by_slug[record.slug] = record
        return record

    def remove(self, slug: str) -> None:
        """Removes the cluster's directory. It is renamed first, so that a crash leaves no partial cluster."""
        self._by_slug.pop(slug, None)
        cluster_directory = self.directory_of(slug)
        trash = cluster_directory.with_name(_TRASH_PREFIX + slug)
        with contextlib.suppress(FileNotFoundError):
            os.rename(cluster_directory, trash)
        remove_tree(trash)

    @property
    def used_ports(self) -> set[int]:
        return {port for record in self for port in record.ports.values()}

    def find_node_by_host(self, host: str) -> NodeRecord | None:
        """Returns the node of a host, in any cluster."""
        for record in self:
            for node in record.nodes.values():
                if node.host == host:
                    return node
        return None


def write_durably(path: Path, content: bytes, *, group: int | None = None) -> None:
    """Writes a file atomically and durably. Readable by us, and by the group if one is given."""
    draft = path.with_name(path.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
        if group is not None:
            os.fchown(file.fileno(), -1, group)
            os.fchmod(file.fileno(), 0o640)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def remove_tree(path: Path) -> None:
    """Removes a directory tree. Files that somebody else removes at the same time are no error."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


class _UnreadableRecord(Exception):
    """The record exists but cannot be read or decoded."""


def _read(path: Path) -> ClusterRecord | None:
    """Reads a record; None when there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _UnreadableRecord(str(error)) from error

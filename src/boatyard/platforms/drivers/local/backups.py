"""The backups of local clusters: a directory with a snapshot and its metadata each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from boatyard.model.errors import Refused
from boatyard.platforms.drivers.local import components, snapshots
from boatyard.platforms.drivers.local.records import remove_tree, slug_of, write_durably

if TYPE_CHECKING:
    from boatyard.platforms.drivers.local.control_plane import ControlPlane

SNAPSHOT_FILE = "snapshot.db"
METADATA_FILE = "backup.json"


class BackupMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a snapshot. Without the encryption keys nobody could read its secrets."""

    key: str
    cluster_key: str
    version: str
    bytes: int
    sha256: str
    taken_at: float
    encryption_keys: tuple[str, ...]


def read_backup(directory: Path) -> BackupMetadata:
    try:
        return msgspec.json.decode((directory / METADATA_FILE).read_bytes(), type=BackupMetadata)
    except (OSError, msgspec.DecodeError) as error:
        raise Refused("the backup is not there or cannot be read", reason="NoBackup") from error


class Backups:
    """All backups of one data directory, each in a directory named by its key."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def get_lock(self, key: str) -> asyncio.Lock:
        """Returns the lock for creating or removing this backup. It is dropped with its last holder or waiter."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    def directory_of(self, key: str) -> Path:
        return self._directory / slug_of(key)

    def find(self, key: str) -> BackupMetadata | None:
        return (
            read_backup(self.directory_of(key))
            if (self.directory_of(key) / METADATA_FILE).exists()
            else None
        )

    async def take(
        self, key: str, plane: ControlPlane, folder: str, *, now: float
    ) -> BackupMetadata:
        """Takes and verifies a snapshot. The metadata is written last: without it there is no backup."""
        directory, record = self.directory_of(key), plane.record
        _make_backup_directory(directory, Path(folder) if folder else None)
        snapshot = await snapshots.take(
            plane.run_directory, components.etcd_socket(0), directory / SNAPSHOT_FILE
        )
        backup = BackupMetadata(
            key=key,
            cluster_key=record.key,
            version=record.version,
            bytes=snapshot.bytes,
            sha256=snapshot.sha256,
            taken_at=now,
            encryption_keys=record.encryption_keys,
        )
        write_durably(directory / METADATA_FILE, msgspec.json.encode(backup))
        return backup

    def remove(self, key: str) -> None:
        """Removes a backup, also from the folder it was put into. Does nothing when there is none."""
        directory = self.directory_of(key)
        if directory.is_symlink():
            remove_tree(directory.resolve())
            directory.unlink(missing_ok=True)
        elif directory.exists():
            remove_tree(directory)


def _make_backup_directory(directory: Path, folder: Path | None) -> None:
    """Creates the directory of a backup. A backup in a given folder is reached through a symbolic link."""
    directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder is None:
        directory.mkdir(exist_ok=True, mode=0o700)
        return
    if not folder.is_absolute() or not folder.is_dir():
        raise Refused(f"{folder} is not the absolute path of a directory here", reason="NoFolder")
    target = folder / f"boatyard-{directory.name}"
    target.mkdir(exist_ok=True, mode=0o700)
    if not directory.is_symlink():
        directory.symlink_to(target)

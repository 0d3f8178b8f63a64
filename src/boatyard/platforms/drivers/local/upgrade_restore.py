"""Upgrades, rollbacks and restores, which take a control plane several passes. Called by the control plane.

Each stage is recorded before it begins, so that the next keeper continues from there after a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.drivers.local import components, snapshots
from boatyard.platforms.drivers.local.backups import SNAPSHOT_FILE, read_backup
from boatyard.platforms.drivers.local.records import ClusterRecord

if TYPE_CHECKING:
    from boatyard.platforms.drivers.local.control_plane import ControlPlane

START_DEADLINE_SECONDS = 120.0  # a new version that has not come up by then is rolled back
MAX_EARLY_EXITS = 4


async def upgrade(plane: ControlPlane, record: ClusterRecord, target: str) -> float:
    """Takes a snapshot and upgrades member by member; rolls back when the new version does not come up.

    Returns the seconds until the next pass.
    """
    if record.upgrading != target:
        if not await plane.is_api_ready(record):
            return await plane.ensure_running(record, [record.version] * record.members)
        plane.set_status(available=True, message="A snapshot is being taken.")
        await snapshots.take(
            plane.run_directory, components.etcd_socket(0), upgrade_snapshot_path(plane, target)
        )
        record = plane.update_record(upgrading=target)
    plane.set_status(available=plane.available, message="The cluster is moving to its new version.")
    for count in range(1, record.members + 1):
        versions = [target] * count + [record.version] * (record.members - count)
        came_up = await _wait_until_up(plane, record, versions)
        if plane.record.leaving:
            return 0.0
        if not came_up:
            await roll_back(plane, plane.update_record(rolling_back=target))
            return 0.0
    plane.update_record(version=target, upgrading="", failed_version="")
    return 0.0


async def roll_back(plane: ControlPlane, record: ClusterRecord) -> None:
    """Returns to the old version, with the present objects, so that nothing written meanwhile is lost. When the
    old version cannot read those, restores the snapshot.
    """
    target, before = record.rolling_back, [record.version] * record.members
    plane.set_status(available=False, message="The new version did not come up; going back.")
    if not record.unreadable:
        came_up = plane.has_data(record) and await _wait_until_up(plane, record, before)
        if plane.record.leaving:
            return
        if not came_up:
            record = plane.update_record(unreadable=True)
    if record.unreadable:
        await plane.stop_all(record)
        await _restore_snapshot(plane, record, upgrade_snapshot_path(plane, target))
    plane.update_record(rolling_back="", unreadable=False, upgrading="", failed_version=target)
    plane.supervisor.reset_backoffs()


async def _wait_until_up(
    plane: ControlPlane, record: ClusterRecord, versions: Sequence[str]
) -> bool:
    """Waits until everything of these versions runs and the API answers. False when that fails."""
    first = [
        component.name for component in (*components.etcds(record), *components.api_servers(record))
    ]
    plane.supervisor.reset_backoffs()
    try:
        async with asyncio.timeout(START_DEADLINE_SECONDS):
            while (
                not plane.record.leaving
                and plane.supervisor.count_early_exits(first) < MAX_EARLY_EXITS
            ):
                try:
                    if await plane.is_up(record, versions):
                        return True
                except Unavailable:
                    await asyncio.sleep(0.2)  # it may still be coming up
                await asyncio.sleep(0.05)
    except (TimeoutError, Refused):
        return False
    return False


def upgrade_snapshot_path(plane: ControlPlane, target: str) -> Path:
    return plane.directory / "private" / f"before-{target}.db"


def delete_upgrade_snapshots(private: Path) -> None:
    """Deletes the snapshots of finished upgrades: they contain all of a tenant's data, even what was deleted since."""
    for path in private.glob("before-*.db*"):
        path.unlink(missing_ok=True)


async def restore(
    plane: ControlPlane, record: ClusterRecord, request: str, directory: Path
) -> None:
    """Replaces the cluster's objects by those of a backup. Refused, with nothing changed, when it is broken."""
    backup = read_backup(directory)
    await asyncio.to_thread(snapshots.verify, directory / SNAPSHOT_FILE, backup.sha256)
    plane.set_status(available=False, message="The cluster's objects are being restored.")
    await plane.prepare(record)
    await plane.stop_all(record)
    # Its secrets are encrypted with the keys of the cluster that was backed up.
    keys = dict.fromkeys((*plane.record.encryption_keys, *backup.encryption_keys))
    await _restore_snapshot(plane, record, directory / SNAPSHOT_FILE, encryption_keys=tuple(keys))
    plane.update_record(restored=request)


async def _restore_snapshot(
    plane: ControlPlane, record: ClusterRecord, snapshot: Path, **changes: object
) -> None:
    """Unpacks a snapshot for every member; replaces the old data only when all of that has succeeded."""
    etcdutl = plane.find_program(record.version or record.wanted.version, "etcdutl")
    for number, target in enumerate(plane.data_directories(record)):
        await snapshots.unpack(
            etcdutl,
            snapshot,
            target,
            name=components.member_name(number),
            peer_url=components.peer_url(record, number),
            initial_cluster=components.initial_cluster(record),
            token=record.slug,
            user=record.user,
            mark=plane.supervisor.make_command_mark("etcdutl"),
        )
    await finish_snapshot_restore(plane, plane.update_record(putting_back=True, **changes))


async def finish_snapshot_restore(plane: ControlPlane, record: ClusterRecord) -> None:
    """Replaces the data of all members. No member may run: they must not have different objects."""
    for target in plane.data_directories(record):
        await asyncio.to_thread(snapshots.swap, target)
    plane.update_record(putting_back=False)
    plane.reset_after_restore()

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
from boatyard.platforms.drivers.local.backups import SNAPSHOT, read_backup
from boatyard.platforms.drivers.local.records import Record

if TYPE_CHECKING:
    from boatyard.platforms.drivers.local.control_plane import ControlPlane

COME_UP_SECONDS = 120.0  # a new version that has not come up by then is rolled back
ENDS_TOO_OFTEN = 4


async def upgrade(plane: ControlPlane, record: Record, target: str) -> float:
    """Takes a snapshot and upgrades member by member; rolls back when the new version does not come up.

    Returns the seconds until the next pass.
    """
    if record.upgrading != target:
        if not await plane.answers(record):
            return await plane.keep_up(record, [record.version] * record.members)
        plane.say(available=True, message="A snapshot is being taken.")
        await snapshots.take(
            plane.run_directory, components.etcd_socket(0), snapshot_before(plane, target)
        )
        record = plane.change(upgrading=target)
    plane.say(available=plane.available, message="The cluster is moving to its new version.")
    for count in range(1, record.members + 1):
        versions = [target] * count + [record.version] * (record.members - count)
        came_up = await _come_up(plane, record, versions)
        if plane.record.leaving:
            return 0.0
        if not came_up:
            await roll_back(plane, plane.change(rolling_back=target))
            return 0.0
    plane.change(version=target, upgrading="", failed_version="")
    return 0.0


async def roll_back(plane: ControlPlane, record: Record) -> None:
    """Returns to the old version, with the present objects, so that nothing written meanwhile is lost. When the
    old version cannot read those, restores the snapshot.
    """
    target, before = record.rolling_back, [record.version] * record.members
    plane.say(available=False, message="The new version did not come up; going back.")
    if not record.unreadable:
        came_up = plane.has_data(record) and await _come_up(plane, record, before)
        if plane.record.leaving:
            return
        if not came_up:
            record = plane.change(unreadable=True)
    if record.unreadable:
        await plane.stop_all(record)
        await _put_back(plane, record, snapshot_before(plane, target))
    plane.change(rolling_back="", unreadable=False, upgrading="", failed_version=target)
    plane.crew.forgive()


async def _come_up(plane: ControlPlane, record: Record, versions: Sequence[str]) -> bool:
    """Waits until everything of these versions runs and the API answers. False when that fails."""
    first = [
        component.name for component in (*components.etcds(record), *components.api_servers(record))
    ]
    plane.crew.forgive()
    try:
        async with asyncio.timeout(COME_UP_SECONDS):
            while not plane.record.leaving and plane.crew.ends_early(first) < ENDS_TOO_OFTEN:
                try:
                    if await plane.is_up(record, versions):
                        return True
                except Unavailable:
                    await asyncio.sleep(0.2)  # it may still be coming up
                await asyncio.sleep(0.05)
    except (TimeoutError, Refused):
        return False
    return False


def snapshot_before(plane: ControlPlane, target: str) -> Path:
    return plane.directory / "private" / f"before-{target}.db"


def forget_snapshots(private: Path) -> None:
    """Deletes the snapshots of finished upgrades: they contain all of a tenant's data, even what was deleted since."""
    for path in private.glob("before-*.db*"):
        path.unlink(missing_ok=True)


async def restore(plane: ControlPlane, record: Record, request: str, directory: Path) -> None:
    """Replaces the cluster's objects by those of a backup. Refused, with nothing changed, when it is broken."""
    backup = read_backup(directory)
    await asyncio.to_thread(snapshots.verify, directory / SNAPSHOT, backup.sha256)
    plane.say(available=False, message="The cluster's objects are being restored.")
    await plane.prepare(record)
    await plane.stop_all(record)
    # Its secrets are encrypted with the keys of the cluster that was backed up.
    keys = dict.fromkeys((*plane.record.encryption_keys, *backup.encryption_keys))
    await _put_back(plane, record, directory / SNAPSHOT, encryption_keys=tuple(keys))
    plane.change(restored=request)


async def _put_back(plane: ControlPlane, record: Record, snapshot: Path, **changes: object) -> None:
    """Unpacks a snapshot for every member; replaces the old data only when all of that has succeeded."""
    etcdutl = plane.program(record.version or record.wanted.version, "etcdutl")
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
            mark=plane.crew.mark_of("etcdutl"),
        )
    await finish_putting_back(plane, plane.change(putting_back=True, **changes))


async def finish_putting_back(plane: ControlPlane, record: Record) -> None:
    """Replaces the data of all members. No member may run: they must not have different objects."""
    for target in plane.data_directories(record):
        await asyncio.to_thread(snapshots.swap, target)
    plane.change(putting_back=False)
    plane.begin_anew()

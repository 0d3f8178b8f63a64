"""The mounts of this machine, in our own mount namespace."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path

from boatyard.model.errors import Unavailable

_MNT_DETACH = 2
_ESCAPED = re.compile(r"\\([0-7]{3})")


def unmount_below(directory: Path) -> None:
    """Detaches everything mounted in the directory or on it; processes that use it keep it until they end.

    Nodes mount only in namespaces of their own, so there should be nothing. Unavailable when something
    stays mounted: removing files there would remove them elsewhere.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for mount_point in _mounted_below(directory):
        libc.umount2(os.fsencode(mount_point), _MNT_DETACH)
    for mount_point in _mounted_below(directory):
        raise Unavailable(f"{mount_point} cannot be unmounted")


def _mounted_below(directory: Path) -> list[Path]:
    """Returns the mount points in the directory, innermost first."""
    directory = directory.resolve()
    below = [mount_point for mount_point, _ in _mounted() if mount_point.is_relative_to(directory)]
    return sorted(below, key=lambda path: len(path.parts), reverse=True)


def file_system_of(path: Path) -> str:
    """Returns the type of the file system of a path."""
    path = path.resolve()
    mounts = [
        (mount_point, kind) for mount_point, kind in _mounted() if path.is_relative_to(mount_point)
    ]
    return max(mounts, key=lambda entry: len(entry[0].parts), default=(path, ""))[1]


def read_mounts(text: str) -> Iterator[tuple[Path, str]]:
    """Parses the kernel's `mountinfo`. Yields each mount point and its file system type."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        # A blank is written as \040.
        mount_point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), before.split(" ")[4])
        yield Path(mount_point), after.split()[0]


def _mounted() -> Iterator[tuple[Path, str]]:
    return read_mounts(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))

"""The manifest of the programs of one version, so that they can be trusted without running or reading them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

MANIFEST_FILE = "manifest.json"


class ProgramSource(StrEnum):
    """How a program was installed."""

    BUILT = "built"
    DOWNLOADED = "downloaded"
    FOUND = "found"


class ProgramRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One program, as it was when its hash was computed and its version was checked."""

    version: str
    sha256: str
    size: int
    mtime_ns: int
    source: ProgramSource
    place: str = ""  # the address, the file it is a link to, or the compiler
    recipe: str = ""  # digest of what it was built from

    def matches_file(self, path: Path) -> bool:
        """Whether the file still looks as it did: there, executable, same size, same time."""
        try:
            status = path.stat()
        except OSError:
            return False
        usable = stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)
        return usable and (status.st_size, status.st_mtime_ns) == (self.size, self.mtime_ns)


class ProgramManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The records of one version's directory, by program."""

    programs: dict[str, ProgramRecord] = {}


def read_manifest(folder: Path) -> ProgramManifest:
    """The manifest of a version's directory; an empty one when there is none, or none that can be read."""
    try:
        return msgspec.json.decode((folder / MANIFEST_FILE).read_bytes(), type=ProgramManifest)
    except (OSError, msgspec.DecodeError):
        return ProgramManifest()


def add_records(folder: Path, records: Mapping[str, ProgramRecord]) -> None:
    """Adds records to the manifest in one atomic write. Callers hold the lock."""
    programs = read_manifest(folder).programs | dict(records)
    text = msgspec.json.format(
        msgspec.json.encode(ProgramManifest(programs=programs), order="sorted")
    )
    new_file = folder / f".{MANIFEST_FILE}.new"
    new_file.write_bytes(text + b"\n")
    new_file.chmod(0o644)
    os.replace(new_file, folder / MANIFEST_FILE)

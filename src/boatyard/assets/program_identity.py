"""Identifies programs: the version they print, and the hash of their file."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from boatyard.assets.manifest import ProgramRecord, ProgramSource
from boatyard.assets.releases import DEFAULT_VERSION_ARGUMENTS, VERSION_ARGUMENTS, parse_version

# Loading a program of a hundred megabytes takes long on a busy machine.
VERSION_COMMAND_SECONDS = 60.0


def ask_version(program: Path, name: str) -> str:
    """The version that the program prints; empty when it does not run or prints none."""
    try:
        process = subprocess.run(
            [str(program), *VERSION_ARGUMENTS.get(name, DEFAULT_VERSION_ARGUMENTS)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return parse_version(process.stdout) if process.returncode == 0 else ""


def hash_file(path: Path) -> str:
    """The sha256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_record(
    path: Path,
    *,
    version: str,
    source: ProgramSource,
    place: str,
    sha256: str = "",
    recipe: str = "",
) -> ProgramRecord:
    """The record of a program for the manifest. Pass `sha256` when it has just been computed."""
    with path.open("rb") as file:
        # Taken before the file is read: a file that changes meanwhile must not match its record.
        status = os.fstat(file.fileno())
        digest = sha256 or hashlib.file_digest(file, "sha256").hexdigest()
    return ProgramRecord(
        version=version,
        sha256=digest,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        source=source,
        place=place,
        recipe=recipe,
    )

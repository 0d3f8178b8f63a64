"""Identifies programs: the version they print, and the hash of their file."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from boatyard.assets.manifest import Record, Source
from boatyard.assets.releases import ASKING, ASKING_OTHERS, told_version

# Loading a program of a hundred megabytes takes long on a busy machine.
ANSWER_SECONDS = 60.0


def ask_version(program: Path, name: str) -> str:
    """The version that the program prints; empty when it does not run or prints none."""
    try:
        process = subprocess.run(
            [str(program), *ASKING.get(name, ASKING_OTHERS)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told_version(process.stdout) if process.returncode == 0 else ""


def hash_of(path: Path) -> str:
    """The sha256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def take_record(
    path: Path,
    *,
    version: str,
    source: Source,
    place: str,
    sha256: str = "",
    recipe: str = "",
) -> Record:
    """The record of a program for the manifest. Pass `sha256` when it has just been computed."""
    with path.open("rb") as file:
        # Taken before the file is read: a file that changes meanwhile must not match its record.
        status = os.fstat(file.fileno())
        digest = sha256 or hashlib.file_digest(file, "sha256").hexdigest()
    return Record(
        version=version,
        sha256=digest,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        source=source,
        place=place,
        recipe=recipe,
    )

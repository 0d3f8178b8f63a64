"""Paths of the unix sockets between the processes of one data directory."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from boatyard.model.errors import Unavailable

_LONGEST_PATH = 100  # of a unix socket, in bytes


def choose_socket_path(directory: Path, name: str) -> str:
    """The path of a socket in `directory`, or in a temporary directory of this user when that is too long."""
    path = directory / name
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        return str(path)
    mark = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    short = Path(tempfile.gettempdir()) / f"boatyard-{os.getuid()}-{mark}"
    short.mkdir(mode=0o700, exist_ok=True)
    if short.stat().st_uid != os.getuid():
        raise Unavailable(f"{short} belongs to somebody else; give --data a shorter path")
    return str(short / name)

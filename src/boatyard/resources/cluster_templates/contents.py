"""Unpacks published roles into folders, by digest. Called by the drivers that run roles."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from boatyard.model.errors import NotFound, Refused
from boatyard.roles.content import Files, digest_of, is_digest, unpack_files
from boatyard.roles.folder import read_folder
from boatyard.roles.mistakes import Mistake

FetchContent = Callable[[str], Awaitable[bytes | None]]  # such as `Ledger.contents.get`


class ContentFolders:
    """Folders under `root`, one per digest, each created on first use.

    `root` must be writable for us only: a user that runs roles gets the right to read, not to write.
    """

    def __init__(self, root: Path, fetch: FetchContent) -> None:
        self._root = root
        self._fetch = fetch

    async def ensure_folder(self, digest: str) -> Path:
        """Returns a folder with exactly the files of the digest; a damaged folder is replaced.

        May be called any number of times, concurrently, also from other processes. Raises NotFound when nothing of
        that digest was published. Callers must not write into the folder.
        """
        if not is_digest(digest):
            raise Refused(f"{digest[:80]!r} is not the digest of a template's content")
        place = self._root / digest.removeprefix("sha256:")
        if await asyncio.to_thread(_has_digest, place, digest):
            return place
        packed = await self._fetch(digest)
        if packed is None:
            raise NotFound(f"no content {digest} was published here")
        await asyncio.to_thread(_write_folder, place, unpack_files(packed, digest), digest)
        return place


def _has_digest(place: Path, digest: str) -> bool:
    if not place.is_dir():
        return False
    mistakes: list[Mistake] = []
    return digest_of(read_folder(place, mistakes, everything=True)) == digest and not mistakes


def _write_folder(place: Path, files: Files, digest: str) -> None:
    """Creates the folder atomically: written under a temporary name, then renamed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
    try:
        for name, file in files.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
            path.chmod(0o555 if file.executable else 0o444)
        for folder, _, _ in os.walk(beside):
            os.chmod(folder, 0o755)
        try:
            beside.rename(place)
        except OSError:
            if _has_digest(place, digest):  # another process was faster
                return
            spoilt = Path(tempfile.mkdtemp(prefix=".old-", dir=place.parent))
            place.rename(spoilt / "content")
            beside.rename(place)
            shutil.rmtree(spoilt, ignore_errors=True)
    finally:
        shutil.rmtree(beside, ignore_errors=True)

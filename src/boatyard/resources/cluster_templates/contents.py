"""The content of a published role as a folder. Asked by whoever runs roles, for the digest an order carries."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from boatyard.model.errors import NotFound, Refused
from boatyard.roles.content import Files, digest_of, is_digest, unpack
from boatyard.roles.folder import read_folder
from boatyard.roles.mistakes import Mistake

Fetch = Callable[[str], Awaitable[bytes | None]]  # such as `Ledger.contents.get`


class ContentFolders:
    """Folders under `root`, one per digest, each made when it is first asked for.

    `root` belongs to us: who runs roles under another user gives them rights to read, not to write.
    """

    def __init__(self, root: Path, fetch: Fetch) -> None:
        self._root = root
        self._fetch = fetch

    async def folder(self, digest: str) -> Path:
        """The role's files, exactly those of the digest; it is looked at each time, and mended.

        May be called any number of times, by several at once, also from other processes. NotFound when nothing of
        that digest was ever published. Nobody may write into the folder.
        """
        if not is_digest(digest):
            raise Refused(f"{digest[:80]!r} is not the digest of a template's content")
        place = self._root / digest.removeprefix("sha256:")
        if await asyncio.to_thread(_is_good, place, digest):
            return place
        packed = await self._fetch(digest)
        if packed is None:
            raise NotFound(f"no content {digest} was published here")
        await asyncio.to_thread(_put, place, unpack(packed, digest), digest)
        return place


def _is_good(place: Path, digest: str) -> bool:
    if not place.is_dir():
        return False
    mistakes: list[Mistake] = []
    return digest_of(read_folder(place, mistakes, everything=True)) == digest and not mistakes


def _put(place: Path, files: Files, digest: str) -> None:
    """Whole or not at all: made beside, then renamed."""
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
            if _is_good(place, digest):  # another was quicker
                return
            spoilt = Path(tempfile.mkdtemp(prefix=".old-", dir=place.parent))
            place.rename(spoilt / "content")
            beside.rename(place)
            shutil.rmtree(spoilt, ignore_errors=True)
    finally:
        shutil.rmtree(beside, ignore_errors=True)

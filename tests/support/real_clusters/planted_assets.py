"""The installed programs in a directory of a test's own, of which some can be made useless."""

from __future__ import annotations

from pathlib import Path

import msgspec

from boatyard.assets import Assets
from boatyard.assets.manifest import add_records, read_manifest
from tests.support.assets import put


class PlantedAssets:
    def __init__(self, assets: Assets, directory: Path) -> None:
        self._real = assets
        self.directory = directory
        for version in assets.versions():
            folder = directory / version
            folder.mkdir()
            for file in assets.folder(version).iterdir():
                (folder / file.name).symlink_to(file)

    def break_program(self, version: str, name: str, words: str) -> None:
        """Instead of it a shell script runs."""
        path = self.directory / version / name
        path.unlink()
        put(path, f"#!/bin/sh\n{words}\n".encode())
        found = path.stat()
        record = msgspec.structs.replace(
            read_manifest(path.parent).programs[name],
            size=found.st_size,
            mtime_ns=found.st_mtime_ns,
        )
        add_records(path.parent, {name: record})

    def mend(self, version: str, name: str) -> None:
        path = self.directory / version / name
        path.unlink(missing_ok=True)
        path.symlink_to(self._real.folder(version) / name)
        add_records(path.parent, {name: read_manifest(self._real.folder(version)).programs[name]})

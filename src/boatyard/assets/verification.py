"""Checks installed programs thoroughly: every byte, and the version they print. Called by `boatyard assets verify`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from boatyard.assets.installed_programs import Assets
from boatyard.assets.manifest import read_manifest
from boatyard.assets.program_identity import ask_version, hash_file
from boatyard.assets.releases import PROGRAMS, release_of


@dataclass(frozen=True)
class ProgramCheckResult:
    """The result for one program of one version; `wrong` is empty when it is good."""

    version: str
    program: str
    problem: str = ""


def verify_programs(assets: Assets, version: str) -> Iterator[ProgramCheckResult]:
    """Checks the programs of a version one by one, which takes seconds each."""
    release = release_of(version)
    folder = assets.folder(version)
    records = read_manifest(folder).programs
    hashes: dict[tuple[int, int], str] = {}
    for name in PROGRAMS:
        problem = (
            _find_problem(folder / name, hashes, records[name].sha256)
            if name in records
            else "missing"
        )
        if not problem:
            version_text = ask_version(folder / name, name)
            if version_text != release.version_of(name):
                problem = f"says {version_text or 'no version'}, not {release.version_of(name)}"
        yield ProgramCheckResult(release.kubernetes, name, problem)


def _find_problem(path: Path, hashes: dict[tuple[int, int], str], expected: str) -> str:
    """What is wrong with a file; empty when nothing is. A file with several names is read once."""
    try:
        status = path.stat()
        key = (status.st_dev, status.st_ino)
        if key not in hashes:
            hashes[key] = hash_file(path)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if hashes[key] == expected else "has changed since it was installed (sha256)"

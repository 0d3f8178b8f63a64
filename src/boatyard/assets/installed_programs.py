"""Finds installed programs, for the local platform, templates and demo. Reads a few small files, starts nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from boatyard.assets.cache import cache_directory
from boatyard.assets.manifest import ProgramRecord, read_manifest
from boatyard.assets.releases import (
    CONTROL_PLANE_PROGRAMS,
    DEFAULT_VERSION,
    PINNED_VERSIONS,
    PROGRAMS,
    KubernetesRelease,
    release_of,
)
from boatyard.model.errors import Refused


def default_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """$BOATYARD_ASSETS, else `assets` in the cache directory."""
    override = environ.get("BOATYARD_ASSETS")
    return (
        Path(override).expanduser().absolute() if override else cache_directory(environ) / "assets"
    )


class Assets:
    """The programs of every pinned version in one directory: `<directory>/<version>/<program>`.

    A program counts as installed when `boatyard assets install` recorded it and it has not changed since.
    `path` is where an installation looks for programs that are already on the machine.
    """

    def __init__(self, directory: Path | None = None, path: str | None = None) -> None:
        self.directory = (directory or default_directory()).absolute()
        self.path = os.environ.get("PATH", "") if path is None else path

    def versions(self) -> tuple[str, ...]:
        """The Kubernetes versions whose control plane can be started, ascending."""
        return tuple(
            version
            for version in PINNED_VERSIONS
            if not set(CONTROL_PLANE_PROGRAMS) & set(self.missing(version))
        )

    def missing(self, version: str) -> tuple[str, ...]:
        """The programs of a version that are not installed, or have changed since."""
        recorded = self.installed_records(version)
        return tuple(name for name in PROGRAMS if name not in recorded)

    def program(self, version: str, name: str) -> Path:
        """The path of a program. Refused, with the command that installs it, when it is not installed."""
        release = release_of(version)
        if name not in PROGRAMS:
            raise Refused(f"{name} is not one of the programs: {', '.join(PROGRAMS)}")
        if name not in self.installed_records(version):
            raise Refused(
                f"{name} of Kubernetes {release.kubernetes} is not installed; run: {format_install_command(release)}",
                reason="AssetsMissing",
            )
        return self.folder(version) / name

    def folder(self, version: str) -> Path:
        """Where the programs of a version are, or would be."""
        return self.directory / release_of(version).kubernetes

    def installed_records(self, version: str) -> dict[str, ProgramRecord]:
        """The records of the programs that are installed, unchanged and of the pinned version."""
        release = release_of(version)
        folder = self.folder(version)
        return {
            name: record
            for name, record in read_manifest(folder).programs.items()
            if record.version == release.version_of(name) and record.matches_file(folder / name)
        }


def format_install_command(release: KubernetesRelease) -> str:
    """The command that installs the programs of a release."""
    command = "boatyard assets install"
    return (
        command
        if release.kubernetes == DEFAULT_VERSION
        else f"{command} --version {release.kubernetes}"
    )

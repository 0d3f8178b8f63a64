"""Installs the programs of a release: found on the machine, else downloaded, else built."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from boatyard.assets import go_build
from boatyard.assets.cache import (
    CachedBuild,
    DamagedBuild,
    cache_directory,
    hold_lock,
    make_directory,
)
from boatyard.assets.downloads import (
    DownloadRetryPolicy,
    download_file,
    download_text,
    remove_partial_file,
)
from boatyard.assets.installed_programs import Assets
from boatyard.assets.manifest import ProgramRecord, ProgramSource, add_records, read_manifest
from boatyard.assets.mirrors import Mirrors, ReleaseFile
from boatyard.assets.program_identity import ask_version, make_record
from boatyard.assets.progress import ProgressReporter
from boatyard.assets.releases import ETCD_PROGRAMS, PROGRAMS, KubernetesRelease, release_of
from boatyard.model.errors import Refused, Unavailable

LOCK_FILE = ".lock"
DOWNLOADS_DIRECTORY = ".download"


class InstallMethod(StrEnum):
    """How programs are installed; tried in this order."""

    FOUND = "found"
    DOWNLOAD = "download"
    BUILD = "build"


_FAILURE_TEXTS = {
    InstallMethod.FOUND: "not found",
    InstallMethod.DOWNLOAD: "not downloaded",
    InstallMethod.BUILD: "not built",
}


@dataclass(frozen=True)
class InstallOptions:
    """What an installation may use."""

    methods: tuple[InstallMethod, ...] = tuple(InstallMethod)
    search_directory: Path | None = None  # looked at before PATH
    mirrors: Mirrors = field(default_factory=Mirrors)
    retry_policy: DownloadRetryPolicy = field(default_factory=DownloadRetryPolicy)
    recipes: Path = go_build.RECIPES_DIRECTORY
    cache: Path = field(default_factory=cache_directory)


def install_programs(
    assets: Assets, version: str, options: InstallOptions, progress: ProgressReporter
) -> None:
    """Installs and records every program of a version. Quick, and without a write, when all are installed.

    Two at once wait for each other. Refused or Unavailable when a program is missing at the end; those
    installed by then stay.
    """
    release = release_of(version)
    folder = assets.folder(release.kubernetes)
    installation = _Installation(assets, release, folder, options, progress)
    if not installation.is_complete():
        with (
            _refuse_write_errors(assets.directory),
            _hold_directory_lock(assets.directory, progress),
        ):
            make_directory(folder)
            folder.chmod(0o755)  # clusters run their programs under user ids of their own
            installation.run()
    installation.report_ready()


def cached_build(recipe: go_build.Recipe, cache: Path) -> CachedBuild:
    """The build of this recipe in the cache, whether it exists or not."""
    version = recipe.release.kubernetes
    return CachedBuild(cache=cache, name="kubernetes", version=version, recipe=recipe.digest())


class _Installation:
    """Installs one release into one directory. The caller holds the lock."""

    def __init__(
        self,
        assets: Assets,
        release: KubernetesRelease,
        folder: Path,
        options: InstallOptions,
        progress: ProgressReporter,
    ) -> None:
        self._assets = assets
        self._release = release
        self._folder = folder
        self._options = options
        self._progress = progress
        self._recipe = go_build.Recipe(release, options.recipes)
        self._cached_build = cached_build(self._recipe, options.cache)

    def is_complete(self) -> bool:
        return not self._list_outstanding()

    def run(self) -> None:
        self._adopt_unrecorded()
        steps = (
            (InstallMethod.FOUND, self._install_found),
            (
                InstallMethod.BUILD,
                self._try_install_from_cache,
            ),  # takes seconds and needs no network
            (InstallMethod.DOWNLOAD, self._download),
            (InstallMethod.BUILD, self._build),
        )
        failures: list[str] = []
        for way, step in steps:
            if way not in self._options.methods or self.is_complete():
                continue
            try:
                step()
            except Unavailable as error:
                failures.append(str(error))
                if way is not self._options.methods[-1]:
                    self._report(f"{_FAILURE_TEXTS[way]}: {error}")
        self._check_complete(failures)

    def report_ready(self) -> None:
        self._report(f"{len(self._installed_records())} programs ready in {self._folder}")

    def _check_complete(self, failures: Sequence[str]) -> None:
        missing, stale = self._list_missing(), self._list_outstanding()
        if missing:
            problem = f"{self._release.kubernetes} lacks {', '.join(missing)}"
        elif stale:
            problem = f"{self._release.kubernetes} still works, but its recipe has changed since"
        else:
            return
        raise Unavailable("; ".join([problem, *failures]))

    def _list_outstanding(self) -> tuple[str, ...]:
        """The programs that are missing, or were built from a recipe that has changed since."""
        recorded = self._installed_records()
        stale = {
            name
            for name, record in recorded.items()
            if record.source is ProgramSource.BUILT and record.recipe != self._cached_build.recipe
        }
        return tuple(name for name in PROGRAMS if name not in recorded or name in stale)

    def _installed_records(self) -> dict[str, ProgramRecord]:
        return self._assets.installed_records(self._release.kubernetes)

    # --- what is in place ---------------------------------------------------------------------

    def _adopt_unrecorded(self) -> None:
        """Records programs that are in the directory without a record, when they are of the right version."""
        recorded = self._installed_records()
        manifest_records = read_manifest(self._folder).programs
        records = {}
        for name in PROGRAMS:
            path = self._folder / name
            if name in recorded or not os.access(path, os.X_OK):
                continue
            if self._has_right_version(path, name):
                source = ProgramSource.BUILT if _is_built(path) else ProgramSource.FOUND
                records[name] = self._make_record(name, source, place=str(path.resolve()))
            elif name in manifest_records:
                self._report(f"{name} is no longer what was installed, and is replaced")
        self._save_records(records)

    # --- found --------------------------------------------------------------------------------

    def _install_found(self) -> None:
        """Links to programs that are already on the machine, in the given directory or on PATH."""
        records = {}
        for name in self._list_missing():
            for candidate in self._candidates(name):
                version = ask_version(candidate, name)
                if version == self._release.version_of(name):
                    _link(self._folder / name, candidate)
                    records[name] = self._make_record(
                        name, ProgramSource.FOUND, place=str(candidate)
                    )
                    break
                self._report(
                    f"{candidate} {f'is {version}' if version else 'says no version'}: left alone"
                )
        self._save_records(records)
        if records:
            self._report(f"found {', '.join(records)}")

    def _candidates(self, name: str) -> Iterator[Path]:
        folder_option = self._options.search_directory
        folders = [folder_option / self._release.kubernetes, folder_option] if folder_option else []
        folders += [Path(text) for text in self._assets.path.split(os.pathsep) if text]
        own_folder = self._folder.resolve()
        checked_paths = set()
        for folder in folders:
            path = folder.absolute() / name
            # The directory itself may be on PATH: a link to itself would be no program.
            if folder.resolve() == own_folder or path in checked_paths:
                continue
            checked_paths.add(path)
            if path.is_file() and os.access(path, os.X_OK):
                yield path

    # --- downloaded ---------------------------------------------------------------------------

    def _download(self) -> None:
        patience = self._options.retry_policy
        # All checksums first: an unreachable mirror is noticed before a large download starts.
        offers = list(
            self._options.mirrors.list_files(
                self._release, self._list_missing(), read=lambda url: download_text(url, patience)
            )
        )
        work = self._folder / DOWNLOADS_DIRECTORY
        work.mkdir(exist_ok=True)
        for offer in offers:
            part = download_file(offer, work, self._progress, patience)
            self._install_downloaded(offer, part)
            remove_partial_file(part)
            self._report(f"downloaded {', '.join(offer.programs)}, checksum good")
        shutil.rmtree(work)

    def _install_downloaded(self, offer: ReleaseFile, part: Path) -> None:
        """Installs the programs of a downloaded file, once all of them have printed the right version."""
        staged = part.parent / "staged"
        staged.mkdir(exist_ok=True)
        for name in offer.programs:
            if name in ETCD_PROGRAMS:
                _extract(part, f"{offer.file_name.removesuffix('.tar.gz')}/{name}", staged / name)
            else:
                os.replace(part, staged / name)
            (staged / name).chmod(0o755)
            self._check_version(staged / name, name, offer.url)
        for name in offer.programs:
            os.replace(staged / name, self._folder / name)
        self._save_records(
            {
                name: self._make_record(name, ProgramSource.DOWNLOADED, place=offer.url)
                for name in offer.programs
            }
        )

    # --- built --------------------------------------------------------------------------------

    def _build(self) -> None:
        """Builds the release into the cache, unless another process has meanwhile, and installs it from there."""
        with (
            _refuse_write_errors(self._options.cache, _CACHE_REMEDY),
            self._cached_build.hold_build_lock(self._report_waiting) as work,
        ):
            try:
                if self._install_from_cache():
                    return
            except DamagedBuild as damage:
                self._report(f"{self._cached_build.directory} is damaged and built again: {damage}")
            compiler = go_build.find_compiler(self._recipe, self._assets.path)
            self._report(f"building with {compiler.version}; the first time takes minutes")
            with go_build.build_binary(
                self._recipe, compiler, work, self._progress, path=self._assets.path
            ) as binary:
                for name in PROGRAMS:
                    _link(binary.with_name(name), Path(go_build.BINARY_NAME))
                    self._check_version(binary.with_name(name), name, compiler.version)
                self._cached_build.store({go_build.BINARY_NAME: binary}, compiler.version)
            try:
                self._install_from_cache()
            except DamagedBuild as damage:
                raise Unavailable(
                    f"{self._cached_build.directory} does not last: {damage}"
                ) from damage

    def _try_install_from_cache(self) -> None:
        """Installs the release from the cache when it is there and not damaged. `_build` replaces a damaged one."""
        with suppress(DamagedBuild):
            self._install_from_cache()

    def _install_from_cache(self) -> bool:
        """Installs the release from the cache; False when it is not there. DamagedBuild when it is not as stored."""
        # Names that link to the old binary change with it, so they are recorded again too.
        names = [
            name
            for name in PROGRAMS
            if name in self._list_outstanding() or _is_built(self._folder / name)
        ]
        with (
            _refuse_write_errors(self._assets.directory),
            go_build.make_work_directory(self._folder) as work,
        ):
            manifest = self._cached_build.install_into(work)
            if manifest is None:
                return False
            if go_build.BINARY_NAME not in manifest.files:
                raise DamagedBuild(f"{go_build.BINARY_NAME} is not in its manifest")
            for name in names:
                _link(work / name, Path(go_build.BINARY_NAME))
                if not self._has_right_version(work / name, name):
                    raise DamagedBuild(f"{name} does not say {self._release.version_of(name)}")
            os.replace(work / go_build.BINARY_NAME, self._folder / go_build.BINARY_NAME)
            for name in names:
                _link(self._folder / name, Path(go_build.BINARY_NAME))
            self._save_records(
                {
                    name: self._make_record(
                        name,
                        ProgramSource.BUILT,
                        place=manifest.compiler,
                        sha256=manifest.files[go_build.BINARY_NAME].sha256,
                        recipe=manifest.recipe,
                    )
                    for name in names
                }
            )
        self._report(f"{', '.join(names)} from {self._cached_build.directory}")
        return True

    def _report_waiting(self) -> None:
        self._report("another installation builds it; waiting for it")

    # --- remembering --------------------------------------------------------------------------

    def _list_missing(self) -> tuple[str, ...]:
        return self._assets.missing(self._release.kubernetes)

    def _has_right_version(self, path: Path, name: str) -> bool:
        return ask_version(path, name) == self._release.version_of(name)

    def _check_version(self, path: Path, name: str, place: str) -> None:
        version = ask_version(path, name)
        if version != self._release.version_of(name):
            raise Refused(
                f"{name} from {place} {f'is {version}' if version else 'says no version'}, "
                f"and {self._release.version_of(name)} is wanted; what was here is left as it was"
            )

    def _make_record(
        self, name: str, source: ProgramSource, *, place: str, sha256: str = "", recipe: str = ""
    ) -> ProgramRecord:
        return make_record(
            self._folder / name,
            version=self._release.version_of(name),
            source=source,
            place=place,
            sha256=sha256,
            recipe=recipe,
        )

    def _save_records(self, records: Mapping[str, ProgramRecord]) -> None:
        if records:
            add_records(self._folder, records)

    def _report(self, message: str) -> None:
        self._progress.show_line(f"{self._release.kubernetes}: {message}")


def _is_built(path: Path) -> bool:
    return path.is_symlink() and os.readlink(path) == go_build.BINARY_NAME


def _link(path: Path, target: Path) -> None:
    """Makes `path` a symbolic link to `target`; replaces what was there."""
    new_link = path.with_name(f".{path.name}.new")
    new_link.unlink(missing_ok=True)
    new_link.symlink_to(target)
    os.replace(new_link, path)


def _extract(archive: Path, member: str, target: Path) -> None:
    """Extracts one regular file of an archive and nothing else."""
    try:
        with tarfile.open(archive, "r:gz") as tar:
            source = tar.extractfile(member) if tar.getmember(member).isreg() else None
            if source is None:
                raise Unavailable(f"{archive.name} has no file {member}")
            with source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
                file.flush()
                os.fsync(file.fileno())
    except (tarfile.TarError, KeyError, EOFError) as error:
        raise Unavailable(f"{archive.name} cannot be unpacked: {error}") from error


# --- the directory ----------------------------------------------------------------------------


@contextmanager
def _hold_directory_lock(directory: Path, progress: ProgressReporter) -> Iterator[None]:
    """Holds the lock of the directory, so that one installation runs at a time."""
    make_directory(directory)
    message = f"another installation is at work in {directory}; waiting for it"
    with hold_lock(directory / LOCK_FILE, on_wait=lambda: progress.show_line(message)):
        yield


_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DIRECTORY_REMEDY = "--dir names another directory"
_CACHE_REMEDY = "BOATYARD_CACHE names another directory"


@contextmanager
def _refuse_write_errors(directory: Path, remedy: str = _DIRECTORY_REMEDY) -> Iterator[None]:
    """Turns errors of the file system into Refused with one line. Errors of the network do not get here."""
    try:
        yield
    except OSError as error:
        problem = "there is no room in" if error.errno in _DISK_FULL_ERRORS else "cannot write to"
        raise Refused(f"{problem} {directory}: {error.strerror or error}; {remedy}") from error

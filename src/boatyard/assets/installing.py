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

from boatyard.assets import building
from boatyard.assets.asking import ask_version, take_record
from boatyard.assets.cache import (
    CachedBuild,
    DamagedBuild,
    cache_directory,
    hold_lock,
    make_directory,
)
from boatyard.assets.fetching import Patience, fetch, forget, read_text
from boatyard.assets.found import Assets
from boatyard.assets.manifest import Record, Source, add_records, read_manifest
from boatyard.assets.mirrors import Mirrors, Offer
from boatyard.assets.releases import ETCD, PROGRAMS, Release, release_of
from boatyard.assets.telling import Teller
from boatyard.model.errors import Refused, Unavailable

LOCK = ".lock"
DOWNLOADS = ".download"


class Way(StrEnum):
    """How programs are installed; tried in this order."""

    FOUND = "found"
    DOWNLOAD = "download"
    BUILD = "build"


_NOT_DONE = {
    Way.FOUND: "not found",
    Way.DOWNLOAD: "not downloaded",
    Way.BUILD: "not built",
}


@dataclass(frozen=True)
class Means:
    """What an installation may use."""

    ways: tuple[Way, ...] = tuple(Way)
    folder: Path | None = None  # looked at before PATH
    mirrors: Mirrors = field(default_factory=Mirrors)
    patience: Patience = field(default_factory=Patience)
    recipes: Path = building.RECIPES
    cache: Path = field(default_factory=cache_directory)


def install(assets: Assets, version: str, means: Means, teller: Teller) -> None:
    """Installs and records every program of a version. Quick, and without a write, when all are installed.

    Two at once wait for each other. Refused or Unavailable when a program is missing at the end; those
    installed by then stay.
    """
    release = release_of(version)
    folder = assets.folder(release.kubernetes)
    installation = _Installation(assets, release, folder, means, teller)
    if not installation.is_complete():
        with _writing(assets.directory), _locked(assets.directory, teller):
            make_directory(folder)
            folder.chmod(0o755)  # clusters run their programs under user ids of their own
            installation.run()
    installation.say_ready()


def cached_build(recipe: building.Recipe, cache: Path) -> CachedBuild:
    """The build of this recipe in the cache, whether it exists or not."""
    version = recipe.release.kubernetes
    return CachedBuild(cache=cache, name="kubernetes", version=version, recipe=recipe.digest())


class _Installation:
    """Installs one release into one directory. The caller holds the lock."""

    def __init__(
        self, assets: Assets, release: Release, folder: Path, means: Means, teller: Teller
    ) -> None:
        self._assets = assets
        self._release = release
        self._folder = folder
        self._means = means
        self._teller = teller
        self._recipe = building.Recipe(release, means.recipes)
        self._cached = cached_build(self._recipe, means.cache)

    def is_complete(self) -> bool:
        return not self._wanted()

    def run(self) -> None:
        self._adopt()
        steps = (
            (Way.FOUND, self._look_around),
            (Way.BUILD, self._take_built),  # takes seconds and needs no network
            (Way.DOWNLOAD, self._download),
            (Way.BUILD, self._build),
        )
        failures: list[str] = []
        for way, step in steps:
            if way not in self._means.ways or self.is_complete():
                continue
            try:
                step()
            except Unavailable as error:
                failures.append(str(error))
                if way is not self._means.ways[-1]:
                    self._say(f"{_NOT_DONE[way]}: {error}")
        self._must_be_complete(failures)

    def say_ready(self) -> None:
        self._say(f"{len(self._recorded())} programs ready in {self._folder}")

    def _must_be_complete(self, failures: Sequence[str]) -> None:
        missing, stale = self._missing(), self._wanted()
        if missing:
            problem = f"{self._release.kubernetes} lacks {', '.join(missing)}"
        elif stale:
            problem = f"{self._release.kubernetes} still works, but its recipe has changed since"
        else:
            return
        raise Unavailable("; ".join([problem, *failures]))

    def _wanted(self) -> tuple[str, ...]:
        """The programs that are missing, or were built from a recipe that has changed since."""
        recorded = self._recorded()
        stale = {
            name
            for name, record in recorded.items()
            if record.source is Source.BUILT and record.recipe != self._cached.recipe
        }
        return tuple(name for name in PROGRAMS if name not in recorded or name in stale)

    def _recorded(self) -> dict[str, Record]:
        return self._assets.recorded(self._release.kubernetes)

    # --- what is in place ---------------------------------------------------------------------

    def _adopt(self) -> None:
        """Records programs that are in the directory without a record, when they are of the right version."""
        recorded = self._recorded()
        manifest_records = read_manifest(self._folder).programs
        records = {}
        for name in PROGRAMS:
            path = self._folder / name
            if name in recorded or not os.access(path, os.X_OK):
                continue
            if self._says_right(path, name):
                source = Source.BUILT if _is_built(path) else Source.FOUND
                records[name] = self._record(name, source, place=str(path.resolve()))
            elif name in manifest_records:
                self._say(f"{name} is no longer what was installed, and is replaced")
        self._remember(records)

    # --- found --------------------------------------------------------------------------------

    def _look_around(self) -> None:
        """Links to programs that are already on the machine, in the given directory or on PATH."""
        records = {}
        for name in self._missing():
            for candidate in self._candidates(name):
                version = ask_version(candidate, name)
                if version == self._release.version_of(name):
                    _link(self._folder / name, candidate)
                    records[name] = self._record(name, Source.FOUND, place=str(candidate))
                    break
                self._say(
                    f"{candidate} {f'is {version}' if version else 'says no version'}: left alone"
                )
        self._remember(records)
        if records:
            self._say(f"found {', '.join(records)}")

    def _candidates(self, name: str) -> Iterator[Path]:
        folder_option = self._means.folder
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
        patience = self._means.patience
        # All checksums first: an unreachable mirror is noticed before a large download starts.
        offers = list(
            self._means.mirrors.offers(
                self._release, self._missing(), read=lambda url: read_text(url, patience)
            )
        )
        work = self._folder / DOWNLOADS
        work.mkdir(exist_ok=True)
        for offer in offers:
            part = fetch(offer, work, self._teller, patience)
            self._unpack(offer, part)
            forget(part)
            self._say(f"downloaded {', '.join(offer.programs)}, checksum good")
        shutil.rmtree(work)

    def _unpack(self, offer: Offer, part: Path) -> None:
        """Installs the programs of a downloaded file, once all of them have printed the right version."""
        staged = part.parent / "staged"
        staged.mkdir(exist_ok=True)
        for name in offer.programs:
            if name in ETCD:
                _extract(part, f"{offer.file.removesuffix('.tar.gz')}/{name}", staged / name)
            else:
                os.replace(part, staged / name)
            (staged / name).chmod(0o755)
            self._must_say(staged / name, name, offer.url)
        for name in offer.programs:
            os.replace(staged / name, self._folder / name)
        self._remember(
            {
                name: self._record(name, Source.DOWNLOADED, place=offer.url)
                for name in offer.programs
            }
        )

    # --- built --------------------------------------------------------------------------------

    def _build(self) -> None:
        """Builds the release into the cache, unless another process has meanwhile, and installs it from there."""
        with _writing(self._means.cache, _OTHER_CACHE), self._cached.locked(self._wait) as work:
            try:
                if self._take():
                    return
            except DamagedBuild as damage:
                self._say(f"{self._cached.directory} is damaged and built again: {damage}")
            compiler = building.find_compiler(self._recipe, self._assets.path)
            self._say(f"building with {compiler.version}; the first time takes minutes")
            with building.built(
                self._recipe, compiler, work, self._teller, path=self._assets.path
            ) as binary:
                for name in PROGRAMS:
                    _link(binary.with_name(name), Path(building.BINARY))
                    self._must_say(binary.with_name(name), name, compiler.version)
                self._cached.store({building.BINARY: binary}, compiler.version)
            try:
                self._take()
            except DamagedBuild as damage:
                raise Unavailable(f"{self._cached.directory} does not last: {damage}") from damage

    def _take_built(self) -> None:
        """Installs the release from the cache when it is there and not damaged. `_build` replaces a damaged one."""
        with suppress(DamagedBuild):
            self._take()

    def _take(self) -> bool:
        """Installs the release from the cache; False when it is not there. DamagedBuild when it is not as stored."""
        # Names that link to the old binary change with it, so they are recorded again too.
        names = [
            name for name in PROGRAMS if name in self._wanted() or _is_built(self._folder / name)
        ]
        with _writing(self._assets.directory), building.workplace(self._folder) as work:
            manifest = self._cached.put_into(work)
            if manifest is None:
                return False
            if building.BINARY not in manifest.files:
                raise DamagedBuild(f"{building.BINARY} is not in its manifest")
            for name in names:
                _link(work / name, Path(building.BINARY))
                if not self._says_right(work / name, name):
                    raise DamagedBuild(f"{name} does not say {self._release.version_of(name)}")
            os.replace(work / building.BINARY, self._folder / building.BINARY)
            for name in names:
                _link(self._folder / name, Path(building.BINARY))
            self._remember(
                {
                    name: self._record(
                        name,
                        Source.BUILT,
                        place=manifest.compiler,
                        sha256=manifest.files[building.BINARY].sha256,
                        recipe=manifest.recipe,
                    )
                    for name in names
                }
            )
        self._say(f"{', '.join(names)} from {self._cached.directory}")
        return True

    def _wait(self) -> None:
        self._say("another installation builds it; waiting for it")

    # --- remembering --------------------------------------------------------------------------

    def _missing(self) -> tuple[str, ...]:
        return self._assets.missing(self._release.kubernetes)

    def _says_right(self, path: Path, name: str) -> bool:
        return ask_version(path, name) == self._release.version_of(name)

    def _must_say(self, path: Path, name: str, place: str) -> None:
        version = ask_version(path, name)
        if version != self._release.version_of(name):
            raise Refused(
                f"{name} from {place} {f'is {version}' if version else 'says no version'}, "
                f"and {self._release.version_of(name)} is wanted; what was here is left as it was"
            )

    def _record(
        self, name: str, source: Source, *, place: str, sha256: str = "", recipe: str = ""
    ) -> Record:
        return take_record(
            self._folder / name,
            version=self._release.version_of(name),
            source=source,
            place=place,
            sha256=sha256,
            recipe=recipe,
        )

    def _remember(self, records: Mapping[str, Record]) -> None:
        if records:
            add_records(self._folder, records)

    def _say(self, message: str) -> None:
        self._teller.say(f"{self._release.kubernetes}: {message}")


def _is_built(path: Path) -> bool:
    return path.is_symlink() and os.readlink(path) == building.BINARY


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
def _locked(directory: Path, teller: Teller) -> Iterator[None]:
    """Holds the lock of the directory, so that one installation runs at a time."""
    make_directory(directory)
    message = f"another installation is at work in {directory}; waiting for it"
    with hold_lock(directory / LOCK, on_wait=lambda: teller.say(message)):
        yield


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OTHER_DIRECTORY = "--dir names another directory"
_OTHER_CACHE = "BOATYARD_CACHE names another directory"


@contextmanager
def _writing(directory: Path, remedy: str = _OTHER_DIRECTORY) -> Iterator[None]:
    """Turns errors of the file system into Refused with one line. Errors of the network do not get here."""
    try:
        yield
    except OSError as error:
        problem = "there is no room in" if error.errno in _NO_ROOM else "cannot write to"
        raise Refused(f"{problem} {directory}: {error.strerror or error}; {remedy}") from error

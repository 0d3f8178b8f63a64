"""The cache directory and the builds in it. Used to install programs, and for Ansible's environment.

A build lies in `<cache>/built/<name>-<version>-<digest of its recipe>`, so several recipes lie side by side. Its
directory is put into place by one rename, with a manifest of every file: it is complete, or not there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from boatyard.assets.program_identity import hash_file

SYSTEM_CACHE = Path("/var/cache/boatyard")
BUILDS_DIRECTORY = "built"
MANIFEST_FILE = "manifest.json"

_DIGEST_LENGTH = 16
_LOCK_SUFFIX = ".lock"
_WORK_SUFFIX = ".work"
_LINK_ERRORS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)


def cache_directory(environ: Mapping[str, str] = os.environ, *, root: bool | None = None) -> Path:
    """$BOATYARD_CACHE, else /var/cache/boatyard for root and the user's own cache directory for others.

    Root's is not below its home: clusters run programs from it under user ids of their own.
    """
    override = environ.get("BOATYARD_CACHE")
    if override:
        return Path(override).expanduser().absolute()
    if os.geteuid() == 0 if root is None else root:
        return SYSTEM_CACHE
    home = Path(environ.get("HOME") or Path.home())
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "boatyard"


def make_directory(path: Path) -> None:
    """Creates a directory, and missing ones above it, that every user may read. Existing ones stay as they are."""
    if path.is_dir():
        return
    make_directory(path.parent)
    with suppress(FileExistsError):
        path.mkdir()
        path.chmod(0o755)  # whatever the umask says


@contextmanager
def hold_lock(file: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Holds a lock between processes; that of a killed process is released.

    Calls `on_wait` before it waits for another process; without it raises BlockingIOError instead of waiting.
    """
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait is None:
                raise
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class DamagedBuild(Exception):
    """A build in the cache is not as it was stored; the text says what is wrong."""


class CachedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a build, as it was stored."""

    sha256: str
    size: int


class BuildManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a build, the compiler that made them, and the digest of the recipe."""

    recipe: str
    compiler: str
    files: dict[str, CachedFile]


@dataclass(frozen=True)
class CachedBuild:
    """A build in the cache, identified by the digest of its recipe. It need not exist."""

    cache: Path
    name: str
    version: str
    recipe: str

    @property
    def key(self) -> str:
        return f"{self.name}-{self.version}-{self.recipe[:_DIGEST_LENGTH]}"

    @property
    def directory(self) -> Path:
        return self.cache / BUILDS_DIRECTORY / self.key

    def install_into(self, folder: Path) -> BuildManifest | None:
        """Puts every file of the build into `folder`; None when the build is not in the cache.

        DamagedBuild when a file is not what was stored. Needs no lock: the files are checked in `folder`.
        A file is a hard link where possible, since that takes no space and stays when the cache is
        emptied; a copy on another file system, or of another user's file.
        """
        if not self.directory.is_dir():
            return None
        manifest = self._read_manifest()
        for name, file in manifest.files.items():
            _link_or_copy(self.directory / name, folder / name)
            _check_file(folder / name, file)
        with suppress(OSError):  # the cache may belong to another user
            os.utime(self.directory)  # `prune` goes by it
        return manifest

    def _read_manifest(self) -> BuildManifest:
        try:
            text = (self.directory / MANIFEST_FILE).read_bytes()
            manifest = msgspec.json.decode(text, type=BuildManifest)
        except OSError as error:
            raise DamagedBuild(f"{MANIFEST_FILE}: {error.strerror}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedBuild(f"{MANIFEST_FILE} cannot be read") from error
        if manifest.recipe != self.recipe:
            raise DamagedBuild(f"{MANIFEST_FILE} is of another recipe")
        return manifest

    @contextmanager
    def hold_build_lock(self, on_wait: Callable[[], None] | None) -> Iterator[Path]:
        """Holds the lock for building; yields an empty work directory, which is removed afterwards."""
        make_directory(self.cache / BUILDS_DIRECTORY)
        with hold_lock(self._sibling_path(_LOCK_SUFFIX), on_wait):
            work = self._sibling_path(_WORK_SUFFIX)
            shutil.rmtree(work, ignore_errors=True)  # left by a killed process
            make_directory(work)
            try:
                yield work
            finally:
                shutil.rmtree(work, ignore_errors=True)

    def store(self, files: Mapping[str, Path], compiler: str) -> None:
        """Moves files from the work directory of `locked` into the cache; replaces an earlier build."""
        build_directory = self._sibling_path(_WORK_SUFFIX) / self.key
        make_directory(build_directory)
        cached_files = {}
        for name, path in files.items():
            os.replace(path, build_directory / name)
            size = (build_directory / name).stat().st_size
            cached_files[name] = CachedFile(sha256=hash_file(build_directory / name), size=size)
        manifest = BuildManifest(recipe=self.recipe, compiler=compiler, files=cached_files)
        with (build_directory / MANIFEST_FILE).open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        (build_directory / MANIFEST_FILE).chmod(0o644)
        self.remove()
        os.rename(build_directory, self.directory)

    def remove(self) -> None:
        """Removes the build; content when it is not there. Callers hold the lock."""
        with suppress(FileNotFoundError):
            os.rename(self.directory, self._sibling_path(_WORK_SUFFIX) / "old")

    def _sibling_path(self, suffix: str) -> Path:
        return self.directory.with_name(f".{self.key}{suffix}")


def prune_builds(cache: Path, keep: Collection[str], before: float) -> Iterator[tuple[str, int]]:
    """Removes builds that nobody has installed since `before` (seconds since 1970), but for the keys in `keep`.

    Yields the key and the size of each build it removes. Also removes what killed processes have left. Leaves alone
    what another process is building.
    """
    for directory in sorted((cache / BUILDS_DIRECTORY).glob("*-*-*")):
        key = directory.name.removeprefix(".").removesuffix(_WORK_SUFFIX)
        name, version, digits = key.rsplit("-", 2)
        build = CachedBuild(cache=cache, name=name, version=version, recipe=digits)
        is_build = key == directory.name
        if directory.suffix == _LOCK_SUFFIX or (is_build and _is_used(directory, keep, before)):
            continue
        with suppress(BlockingIOError), build.hold_build_lock(on_wait=None):
            if is_build:
                size = sum(file.stat().st_size for file in directory.iterdir())
                build.remove()
                yield key, size


def _is_used(directory: Path, keep: Collection[str], before: float) -> bool:
    return directory.name in keep or directory.stat().st_mtime >= before


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError as error:
        raise DamagedBuild(f"{source.name} is missing") from error
    except OSError as error:
        if error.errno not in _LINK_ERRORS:
            raise
        shutil.copy2(source, target)


def _check_file(path: Path, expected: CachedFile) -> None:
    status = path.stat()
    if status.st_size != expected.size:
        raise DamagedBuild(f"{path.name} has {status.st_size} bytes instead of {expected.size}")
    if hash_file(path) != expected.sha256:
        raise DamagedBuild(f"{path.name} has another sha256")
    if status.st_mode & 0o555 != 0o555:
        raise DamagedBuild(f"{path.name} cannot be run by everybody")

"""Finds the user's kubeconfig file, and changes it safely."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from boatyard.client.config import write_private_file
from boatyard.client.kubeconfig import list_contexts
from boatyard.model.errors import BoatyardError, Conflict, Refused

LOCK_SECONDS = 5.0
BACKUP_SUFFIX = ".before-boatyard"
_COMMENT = re.compile(r"(^|\s)#", re.MULTILINE)


@dataclass(frozen=True)
class EditResult:
    """The changed file, and its backup copy when comments were lost."""

    path: Path
    backup: Path | None = None


def find_kubeconfig(environ: Mapping[str, str] = os.environ) -> Path:
    """The first file that KUBECONFIG names, else the one in the home directory."""
    paths = [path for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    if paths:
        return Path(paths[0])
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    return home / ".kube" / "config"


def edit_kubeconfig(path: Path, change: Callable[[str], str]) -> EditResult:
    """Replaces the file atomically, under the lock that kubectl takes too; mode 0600.

    `change` gets the text, empty when there is no file; when it raises, the file stays as it is.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    real_path = Path(os.path.realpath(path))  # a link stays one
    with _lock_file(path):
        file_stat = _stat_regular_file(real_path)
        before = _read_text(real_path) if file_stat is not None else ""
        after = change(before)
        if after == before:
            return EditResult(path)
        owner = (
            (file_stat.st_uid, file_stat.st_gid)
            if file_stat is not None and os.geteuid() == 0
            else None
        )
        backup = None
        if _COMMENT.search(before):
            backup = real_path.with_name(real_path.name + BACKUP_SUFFIX)
            write_private_file(backup, before.encode(), owner=owner)
        write_private_file(real_path, after.encode(), owner=owner)
    return EditResult(path, backup)


def find_known_contexts(cluster: str, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Our contexts of the cluster with this id in the user's kubeconfig; empty when it cannot be read."""
    path = find_kubeconfig(environ)
    try:
        return (
            list_contexts(_read_text(path), cluster) if _stat_regular_file(path) is not None else ()
        )
    except (BoatyardError, OSError):
        return ()


def _stat_regular_file(path: Path) -> os.stat_result | None:
    """The file's stat; None when there is no file. Refused for a device or a directory, which must not be replaced."""
    try:
        file_stat = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(file_stat.st_mode):
        raise Refused(f"{path} is not a file; point KUBECONFIG to one, or write one with -o FILE")
    return file_stat


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Refused(f"{path} is not text; it is left as it is") from None


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    lock = path.with_name(path.name + ".lock")
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            if time.monotonic() > deadline:
                raise Conflict(
                    f"another program is changing {path}; if none is, remove {lock}"
                ) from None
            time.sleep(0.05)
            continue
        break
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)

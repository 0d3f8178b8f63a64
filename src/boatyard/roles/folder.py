"""Reads the folder of a role from disk, whatever it contains. Called for watched folders, by lint and publish."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from boatyard.roles.content import (
    LARGEST_FILE,
    MAX_FILES,
    Files,
    RoleFileContent,
    path_problem,
    size_problem,
)
from boatyard.roles.mistakes import Mistake

# Files of editors, Python and version control are no part of a role.
_IGNORED_NAMES = {".git", "__pycache__", ".DS_Store", ".idea", ".vscode", ".cache"}
_IGNORED_SUFFIXES = (".pyc", "~", ".swp", ".swo", ".orig")


def read_folder(folder: Path, mistakes: list[Mistake], *, everything: bool = False) -> Files:
    """The files by path. Links that lead out of the role and special files are mistakes and are never opened.

    `everything`: also the files that editors and Python leave behind.
    """
    root = Path(os.path.realpath(folder))
    files: dict[str, RoleFileContent] = {}
    for path in _walk(root, mistakes, everything):
        name = path.relative_to(root).as_posix()
        problem = path_problem(name)
        if problem:
            mistakes.append(Mistake(repr(name)[:200], 0, "", problem, "name it otherwise"))
            continue
        if len(files) == MAX_FILES:
            mistakes.append(Mistake("", 0, "", f"the role has more than {MAX_FILES} files"))
            break
        file = _read(root, path, name)
        if isinstance(file, Mistake):
            mistakes.append(file)
        else:
            files[name] = file
    problem = size_problem(files)
    if problem:
        mistakes.append(Mistake("", 0, "", f"the role {problem}"))
    return files


def is_ignored(name: str) -> bool:
    return name in _IGNORED_NAMES or name.endswith(_IGNORED_SUFFIXES)


def _walk(root: Path, mistakes: list[Mistake], everything: bool) -> Iterator[Path]:
    """Every file and link below `root`; links to folders are not followed."""
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except OSError as error:
        mistakes.append(Mistake(root.name, 0, "", f"cannot be read: {error.strerror}"))
        return
    for entry in entries:
        if is_ignored(entry.name) and not everything:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), mistakes, everything)
        else:
            yield Path(entry.path)


def _read(root: Path, path: Path, name: str) -> RoleFileContent | Mistake:
    def wrong(message: str, remedy: str = "") -> Mistake:
        return Mistake(name, 0, "", message, remedy)

    if path.is_symlink():
        target = Path(os.path.realpath(path))
        if not target.is_relative_to(root):
            return wrong("is a link that leads out of the role", "put the file itself there")
        if not target.is_file():
            return wrong("is a link to something that is no file", "put the file itself there")
        path = target
    try:
        # O_NOFOLLOW and O_NONBLOCK: it may have become a link or a pipe since the check.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return wrong(f"cannot be read: {error.strerror}")
    with open(handle, "rb") as stream:
        file_stat = os.fstat(handle)
        if not stat.S_ISREG(file_stat.st_mode):
            return wrong("is no file", "take it out of the role")
        data = stream.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        return wrong(f"has more than {LARGEST_FILE} bytes", "have the role fetch it instead")
    return RoleFileContent(data, bool(file_stat.st_mode & stat.S_IXUSR))

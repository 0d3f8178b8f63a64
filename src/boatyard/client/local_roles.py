"""Reads and checks roles in local folders, before they are sent. Used by the verbs about templates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from boatyard.model.errors import NotFound
from boatyard.roles.content import Files
from boatyard.roles.folder import read_folder
from boatyard.roles.mistakes import Mistake
from boatyard.roles.role import InvalidRole, TemplateRole, is_template, read_role


@dataclass(frozen=True)
class LocalRole:
    """The contents of a folder: its files, and the role that they make or the mistakes in them."""

    name: str
    files: Files
    role: TemplateRole | None
    mistakes: tuple[str, ...] = ()


def read_roles(path: Path) -> list[LocalRole]:
    """The role in this folder, or, in a folder of roles, all that are templates."""
    if not path.is_dir():
        raise NotFound(f"there is no folder {str(path)!r}")
    if (path / "meta").is_dir() or (path / "tasks").is_dir():
        return [_read_role(path)]
    roles = [_read_role(folder) for folder in sorted(path.iterdir()) if _is_role(folder)]
    if not roles:
        raise NotFound(f"there is no role in {str(path)!r}: a role has the folders meta and tasks")
    return roles


def _is_role(path: Path) -> bool:
    if not path.is_dir() or path.name.startswith("."):
        return False
    return is_template(read_folder(path, []))


def _read_role(path: Path) -> LocalRole:
    mistakes: list[Mistake] = []
    name = path.resolve().name
    files = read_folder(path, mistakes)
    match read_role(name, files, mistakes):
        case TemplateRole() as role:
            return LocalRole(name, files, role)
        case InvalidRole(mistakes=role_mistakes):
            return LocalRole(name, files, None, tuple(str(mistake) for mistake in role_mistakes))

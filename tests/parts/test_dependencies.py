"""What the product imports it asks for; what it asks for is locked by hash, without addresses."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSIDE = ROOT / "src/boatyard/automation/drivers/local/inside"  # runs in Ansible's environment
ADDRESS = re.compile(r"https?://|--(extra-)?index-url|--find-links", re.IGNORECASE)


def test_everything_imported_is_asked_for() -> None:
    asked = {name(line) for line in project()["dependencies"]}

    files = [path for path in (ROOT / "src").rglob("*.py") if INSIDE not in path.parents]
    assert missing(sorted(files), asked) == {}


def test_only_what_runs_in_its_environment_imports_ansible() -> None:
    assert "ansible" in {module for path in INSIDE.rglob("*.py") for module in imports(path)}
    outside = [path for path in (ROOT / "src").rglob("*.py") if INSIDE not in path.parents]
    assert [path for path in outside if "ansible" in imports(path)] == []
    assert [path for path in INSIDE.rglob("*.py") if "boatyard" in imports(path)] == []


def test_an_import_nobody_asked_for_is_found(tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text("import json\n\n\ndef late():\n    from hypothesis import given\n")

    assert missing([file], asked={"asyncpg"}) == {"hypothesis": str(file)}


def test_everything_asked_for_is_locked() -> None:
    locked = set(packages("run.txt"))

    assert {name(line) for line in project()["dependencies"]} <= locked
    assert locked <= set(packages("dev.txt"))
    assert set(packages("build.txt")) <= set(packages("dev.txt"))


@pytest.mark.parametrize("lock", ["uv.txt", "run.txt", "dev.txt", "build.txt", "ansible.txt"])
def test_a_lock_has_hashes_and_no_addresses(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()

    assert packages(lock)
    assert all("--hash=sha256:" in entry for entry in packages(lock).values())
    assert ADDRESS.search(text) is None


def missing(files: list[Path], asked: set[str]) -> dict[str, str]:
    """Each third-party module that no asked-for package brings, with a file that imports it."""
    brought_by = packages_distributions()
    found = {}
    for file in files:
        for module in imports(file) - sys.stdlib_module_names - {"boatyard"}:
            if not asked & {name(package) for package in brought_by.get(module, [])}:
                found[module] = str(file)
    return found


def imports(file: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module.partition(".")[0])
    return modules


def packages(lock: str) -> dict[str, str]:
    """The packages of a lock file, each with its entry."""
    text = (ROOT / "requirements" / lock).read_text()
    entries = re.split(r"^(?=\S+==)", text, flags=re.MULTILINE)[1:]
    return {name(entry): entry for entry in entries}


def name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def project() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found

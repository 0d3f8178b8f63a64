"""The roles that come with Boatyard are good, are described, and are in the wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from boatyard.app import demo
from boatyard.roles.folder import read_folder
from boatyard.roles.mistakes import Mistake
from boatyard.roles.role import TemplateRole, read_role

ROOT = Path(__file__).parents[2]
ROLES = ROOT / "templates" / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir())


def shipped(name: str) -> TemplateRole:
    mistakes: list[Mistake] = []
    found = read_role(name, read_folder(ROLES / name, mistakes), mistakes)
    assert isinstance(found, TemplateRole), found
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_role_says_all_that_its_readers_need(name: str) -> None:
    role, text = shipped(name), (ROLES / name / "README.md").read_text()

    assert role.metadata.id == name
    assert text.startswith(f"# {name}\n")
    assert "## What it makes\n" in text
    assert f"--template {name}" in text
    for option, about in role.form.options.items():
        assert f"| `{option}` |" in text
        assert about.description


def test_what_the_demo_orders_runs_nothing() -> None:
    """It must work where Ansible's environment cannot be had."""
    words = [word for act in (*demo.SIMULATED_STEPS, *demo.REAL_STEPS) for word in act.arguments]
    ordered = {words[index + 1] for index, word in enumerate(words) if word == "--template"}

    assert "kubernetes_small" in ordered
    for name in ordered & set(NAMES):
        assert shipped(name).phases == ()


def test_they_are_in_the_wheel() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]

    included = build["targets"]["wheel"]["force-include"]
    assert included["templates/roles"] == "boatyard/templates/roles"

"""Names of helpers in tests/: a class name stands once, and helpers are called what an engineer would guess."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# Content of roles under test, written as their authors would.
FOREIGN = ("faulty_roles", "good_role", "good_role_that_decides")
# Say environment, server, harness, recording…, scripted…, killed… instead.
UNUSUAL = {"yard", "site", "bench", "stage", "desk", "lab", "play", "notebook", "told", "dying"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Here the word is meant: a stage of an order's life.
MEANT = {"LifeStage"}


def sources(tests: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(tests.rglob("*.py")):
        if path.relative_to(tests).parts[0] not in FOREIGN:
            yield str(path.relative_to(tests)), ast.parse(path.read_text())


def class_names_twice(tests: Path) -> dict[str, list[str]]:
    places = defaultdict(list)
    for path, tree in sources(tests):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("Test"):
                places[node.name].append(f"{path}:{node.lineno}")
    return {name: found for name, found in places.items() if len(found) > 1}


def unusual_names(tests: Path) -> list[str]:
    """Classes and fixtures everywhere, and everything public in support/, whose name has an unusual word."""
    found = []
    for path, tree in sources(tests):
        in_support = path.startswith("support/")
        if in_support and words(Path(path).stem) & UNUSUAL:
            found.append(path)
        for node in ast.walk(tree):
            named = isinstance(node, ast.ClassDef) or (
                isinstance(node, FUNCTIONS) and (in_support or is_fixture(node))
            )
            if named and words(node.name) & UNUSUAL and node.name not in MEANT:
                found.append(f"{path}:{node.lineno} {node.name}")
    return found


def words(name: str) -> set[str]:
    """The words of a name in snake_case or CamelCase."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_no_helper_class_has_a_name_twice() -> None:
    assert class_names_twice(TESTS) == {}


def test_helpers_have_usual_names() -> None:
    assert unusual_names(TESTS) == []


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    (tmp_path / "support").mkdir()
    (tmp_path / "unit").mkdir()
    (tmp_path / "good_role").mkdir()
    return tmp_path


def test_a_class_name_that_stands_twice_is_found(planted: Path) -> None:
    (planted / "support" / "one.py").write_text("class Helper: ...\n")
    (planted / "unit" / "test_two.py").write_text("def test_it():\n    class Helper: ...\n")
    (planted / "good_role" / "plugin.py").write_text("class Helper: ...\n")
    assert class_names_twice(planted) == {"Helper": ["support/one.py:1", "unit/test_two.py:2"]}


def test_a_test_class_may_be_called_as_another(planted: Path) -> None:
    (planted / "support" / "one.py").write_text("class TestIt: ...\n")
    (planted / "unit" / "test_two.py").write_text("class TestIt: ...\n")
    assert class_names_twice(planted) == {}


@pytest.mark.parametrize(
    "path, text, expected",
    [
        ("support/local_yard.py", "", ["support/local_yard.py"]),
        ("support/one.py", "class HubLab: ...", ["support/one.py:1 HubLab"]),
        ("support/one.py", "def told_server(): ...", ["support/one.py:1 told_server"]),
        (
            "unit/conftest.py",
            "@pytest.fixture(scope='session')\nasync def dying_keeper(): ...",
            ["unit/conftest.py:2 dying_keeper"],
        ),
        ("unit/test_one.py", "def test_what_is_told(): ...", []),
        ("support/one.py", "def labels_of_boatyard(): ...", []),
    ],
    ids=["module", "class", "function", "fixture", "a sentence", "part of a word"],
)
def test_an_unusual_name_is_found(planted: Path, path: str, text: str, expected: list[str]) -> None:
    (planted / path).write_text(text)
    assert unusual_names(planted) == expected

"""tests/support/README.md shows the examples that the suites run, word for word, and names things that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
README = SUPPORT / "README.md"
EXAMPLES = (
    "tests/journeys/test_example.py",
    "tests/hub/test_example.py",
    "tests/local/test_example.py",
)
MOST_LINES = 15


def shown(readme: str) -> dict[str, str]:
    """Each example in the README, by the file its heading names."""
    sections = re.findall(
        r"^## \w+: (\S+)\n\n```python\n(.*?)```", readme, re.MULTILINE | re.DOTALL
    )
    return dict(sections)


def example_in(source: str) -> str:
    """The text of the one test in a file."""
    tests = [node for node in ast.parse(source).body if isinstance(node, ast.AsyncFunctionDef)]
    (test,) = tests
    return "\n".join(source.splitlines()[test.lineno - 1 : test.end_lineno]) + "\n"


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_readme_shows_the_example_that_is_run(path: str) -> None:
    example = example_in((ROOT / path).read_text())
    assert shown(README.read_text())[path] == example
    assert len(example.splitlines()) <= MOST_LINES


def test_an_example_that_differs_is_found() -> None:
    readme = "## simulated: tests/one.py\n\n```python\nasync def test_it():\n    old()\n```\n"
    assert shown(readme)["tests/one.py"] != example_in("async def test_it():\n    new()\n")


def test_every_class_and_file_the_readme_names_is_there() -> None:
    text = README.read_text()
    sources = {
        path.relative_to(SUPPORT).as_posix(): path.read_text() for path in SUPPORT.rglob("*.py")
    }
    classes = set(re.findall(r"^class (\w+)", "\n".join(sources.values()), re.MULTILINE))
    named = set(re.findall(r"`([A-Z]\w+)`", text))
    assert named
    assert named <= classes
    assert set(re.findall(r"`(\w+\.py)`", text)) <= sources.keys()

"""The tool that plants bugs: it tells killed from surviving, and counts nothing as killed that is not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.timeout(400)  # each run of the tool runs pytest several times

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "mutants" / "run.py"

RULES = """\
LIMIT = 3


def allowed(count: int) -> bool:
    return count < LIMIT


def shown(name: str) -> str:
    return name.strip()
"""
TESTS = """\
import pytest
from boatyard import rules


@pytest.fixture
def limit():
    assert rules.LIMIT == 3
    return rules.LIMIT


def test_the_limit_is_not_allowed():
    assert not rules.allowed(3)


def test_with_fixture(limit):
    assert limit


def test_shown():
    assert rules.shown("a") == "a"
"""
FAILING = """\
def test_passes():
    pass


def test_fails_always():
    raise AssertionError
"""
SKIPPING = """\
import pytest

def test_is_skipped():
    pytest.skip("no such program")
"""
BOUND = ("return count < LIMIT", "return count <= LIMIT")
RULES_TEST = "tests/unit/test_rules.py"

ENTRIES = {
    # id: (old, new, test, further lines)
    "noticed": (*BOUND, RULES_TEST, ""),
    "not-noticed": ("name.strip()", "name", RULES_TEST, ""),
    "not-noticed-and-open": ("name.strip()", "name", RULES_TEST, "survives = 'nobody asked yet'"),
    "noticed-though-open": (*BOUND, RULES_TEST, "survives = 'nobody asked yet'"),
    "moved": ("return counter < LIMIT", "return True", RULES_TEST, ""),
    "twice": ("LIMIT", "BOUND", RULES_TEST, ""),
    "without-tests": (*BOUND, "tests/unit/test_gone.py", ""),
    "fails-anyway": (*BOUND, "tests/unit/test_failing.py", ""),
    "no-python": ("return count < LIMIT", "return count <", RULES_TEST, ""),
    "no-such-name": ("return count < LIMIT", "return count < LIMITS", RULES_TEST, ""),
    "no-import": ("LIMIT = 3", "raise ImportError", RULES_TEST, ""),
    "fixture-only": ("LIMIT = 3", "LIMIT = 2", f"{RULES_TEST}::test_with_fixture", ""),
    "lacking": (*BOUND, "tests/unit/test_skipping.py", "needs = 'a program'"),
}
EXPECTED = {
    "noticed": "killed",
    "not-noticed": "SURVIVED",
    "not-noticed-and-open": "open",
    "noticed-though-open": "KILLED THOUGH OPEN",
    "moved": "STALE",
    "twice": "STALE",
    "without-tests": "STALE",
    "fails-anyway": "BROKEN",
    "no-python": "BROKEN",
    "no-such-name": "BROKEN",
    "no-import": "BROKEN",
    "fixture-only": "BROKEN",
    "lacking": "skipped",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path)


@pytest.fixture(scope="module")
def run_of_all(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """All entries in one run, by two workers."""
    tree = make_tree(tmp_path_factory.mktemp("mutants"))
    result = run(tree, write_list(tree, list(ENTRIES)))
    assert (tree / "src/boatyard/rules.py").read_text() == RULES
    return result


@pytest.mark.parametrize("id", ENTRIES)
def test_each_kind_of_entry_has_its_outcome(
    run_of_all: subprocess.CompletedProcess[str], id: str
) -> None:
    lines = [line for line in run_of_all.stdout.splitlines() if f" {id} " in line]

    assert lines, run_of_all.stdout + run_of_all.stderr
    assert all(f"{EXPECTED[id]} " in line for line in lines)


def test_a_run_in_which_all_are_noticed_is_good(tree: Path) -> None:
    assert run(tree, write_list(tree, ["noticed"])).returncode == 0


def test_a_bug_is_taken_out_before_the_next_is_planted(tree: Path) -> None:
    listed = write_list(tree, ["noticed", "not-noticed"])

    result = run(tree, listed, "--jobs", "1")

    assert "mutants: 1 SURVIVED, 1 killed" in result.stdout
    assert result.returncode == 1, "because of the survivor"


def test_a_sample_is_the_same_for_the_same_seed_and_never_slow(tree: Path) -> None:
    listed = write_list(tree, list(ENTRIES))

    samples = {seed: sample(tree, listed, 3, seed) for seed in "abcdefgh"}

    assert all(len(ids) == 3 for ids in samples.values())
    assert samples == {seed: sample(tree, listed, 3, seed) for seed in samples}
    assert len(set(samples.values())) > 1, "another seed is another sample"
    assert not set().union(*samples.values()) & {"not-noticed-and-open", "lacking"}


def test_a_sample_tells_of_all_that_moved(tree: Path) -> None:
    listed = write_list(tree, ["noticed", "not-noticed-and-open", "lacking", "moved"])

    result = run(tree, listed, "--sample", "9", "--seed", "b")

    assert outcomes(result) == {"STALE": 1, "killed": 1}
    assert result.returncode == 1, "because of the stale one"


def test_a_sample_tells_of_all_that_use_a_name_nobody_defines(tree: Path) -> None:
    listed = write_list(tree, ["noticed", "no-such-name"])

    assert outcomes(run(tree, listed, "--check")) == {"BROKEN": 1}
    assert outcomes(run(tree, listed, "noticed")) == {"BROKEN": 1, "killed": 1}


def test_another_tree_than_the_copy_is_not_judged(tree: Path) -> None:
    """Without the package in the copy, the installed one is imported."""
    (tree / "src" / "boatyard" / "__init__.py").unlink()
    (tree / "src" / "boatyard" / "rules.py").rename(tree / "src" / "rules.py")
    (tree / RULES_TEST).write_text("def test_nothing():\n    pass\n")
    path = tree / "entries" / "list.toml"
    path.parent.mkdir()
    path.write_text(
        entry("elsewhere", *ENTRIES["noticed"]).replace("src/boatyard/rules", "src/rules")
    )

    result = run(tree, path.parent)

    assert result.returncode == 1
    assert "not from the copy" in result.stdout


def test_every_entry_of_the_repository_applies() -> None:
    result = subprocess.run(
        [sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stdout


def make_tree(folder: Path) -> Path:
    files = {
        "src/boatyard/__init__.py": "",
        "src/boatyard/rules.py": RULES,
        RULES_TEST: TESTS,
        "tests/unit/test_failing.py": FAILING,
        "tests/unit/test_skipping.py": SKIPPING,
    }
    for name, text in files.items():
        path = folder / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "--quiet", folder / "tree"], check=True)
    return folder / "tree"


def outcomes(result: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """The last line as numbers."""
    words = result.stdout.splitlines()[-1].removeprefix("mutants: ").partition(";")[0]
    return {
        name: int(number) for number, name in (part.split(" ", 1) for part in words.split(", "))
    }


def sample(tree: Path, listed: Path, size: int, seed: str) -> tuple[str, ...]:
    """The ids that a run with this sample would try."""
    words = ["--tree", str(tree), "--list", str(listed), "--sample", str(size), "--seed", seed]
    tool = import_tool()
    chosen = tool.choose(tool.load(listed), tool._parser().parse_args(words))
    return tuple(mutant.id for mutant in chosen)


@cache
def import_tool() -> ModuleType:
    """The tool as a module; it imports what lies beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOL.parent)
        spec = importlib.util.spec_from_file_location("mutants_run", TOOL)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "mutants_run", module)
        spec.loader.exec_module(module)
    return module


def run(tree: Path, listed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, "--tree", tree, "--list", listed, *arguments],
        # The planted tests need no plugins, and to load them takes longer than to run the tests.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def write_list(tree: Path, ids: list[str]) -> Path:
    folder = tree.parent / "entries"
    folder.mkdir(exist_ok=True)
    (folder / "list.toml").write_text("\n".join(entry(id, *ENTRIES[id]) for id in ids))
    return folder


def entry(id: str, old: str, new: str, test: str, more: str) -> str:
    return (
        f"[[mutant]]\nid = '{id}'\nfile = 'src/boatyard/rules.py'\n"
        f"old = '''{old}'''\nnew = '''{new}'''\ntests = ['{test}']\n{more}\n"
    )

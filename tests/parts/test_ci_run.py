"""The judgement of .ci/run: an emptied environment, its own home, no skip that is not listed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PASSED = '<testcase classname="tests.unit.test_a" name="test_one"/>'
FAILED = '<testcase classname="t" name="test_two"><failure message="no"/></testcase>'
SKIPPED = (
    '<testcase classname="tests.unit.test_a" name="test_three">'
    '<skipped type="pytest.skip" message="no switch here"/></testcase>'
)
# Stands in for the real one: says what it was given, and tests nothing.
MAKEFILE = """\
setup:
\t@mkdir -p $(VENV)/bin && ln -s {python} $(VENV)/bin/python
check:
\t@{python} -c 'import json, os; json.dump(dict(os.environ), open("seen.json", "w"))'
\t@{check}
ansible:
\t@echo "BOATYARD_CACHE=$$BOATYARD_CACHE" > ansible.txt
assets:
\t@echo "ALL=$(ALL) BOATYARD_CACHE=$$BOATYARD_CACHE" > assets.txt
\t@mkdir -p $$HOME/go && touch $$HOME/go/module && chmod -R u-w $$HOME/go
\t@{assets}
mutants:
\t@echo "SAMPLE=$(SAMPLE)" > mutants.txt
test:
\t@echo "BOATYARD_CACHE=$$BOATYARD_CACHE" > test.txt
\t@mkdir -p build/reports/test && cp report.xml build/reports/test/unit.xml
"""


@pytest.mark.parametrize(
    "cases, allowed, code, closing",
    [
        pytest.param([PASSED], "", 0, " 1 passed, 0 skipped in ", id="all passed"),
        pytest.param([PASSED, FAILED], "", 1, " 1 failed, 1 passed, 0 skipped in ", id="failed"),
        pytest.param([PASSED, SKIPPED], "", 1, " 1 passed, 1 skipped in ", id="an unlisted skip"),
        pytest.param(
            [PASSED, SKIPPED],
            "tests.unit.test_a::test_three  # needs a switch",
            0,
            " 1 passed, 1 skipped in ",
            id="a listed skip",
        ),
        pytest.param(
            [PASSED, SKIPPED],
            "tests.unit.test_a::test_other",
            1,
            " 1 passed, 1 skipped in ",
            id="another test's line does not excuse it",
        ),
    ],
)
def test_skips_are_told_and_only_listed_ones_forgiven(
    tmp_path: Path, cases: list[str], allowed: str, code: int, closing: str
) -> None:
    result = ci_run(tmp_path, cases=cases, allowed=allowed)

    assert result.returncode == code, result.stdout + result.stderr
    last = result.stdout.splitlines()[-1]
    assert closing in last
    assert last.startswith("===")
    assert last.endswith("===")
    assert ("no switch here" in result.stdout) is (SKIPPED in cases)


def test_a_failed_check_fails_the_run_though_all_tests_pass(tmp_path: Path) -> None:
    result = ci_run(tmp_path, cases=[PASSED], check="exit 1")

    assert result.returncode == 1
    assert "check FAILED, 1 passed" in result.stdout.splitlines()[-1]


def test_tests_that_did_not_run_fail_the_run(tmp_path: Path) -> None:
    result = ci_run(tmp_path, cases=None)

    assert result.returncode == 1
    assert "the tests did not run" in result.stdout


def test_only_path_and_certificates_are_kept_and_the_home_is_its_own(tmp_path: Path) -> None:
    ci_run(tmp_path, cases=[PASSED])

    seen = json.loads((tmp_path / "seen.json").read_text())
    ours = {name for name in seen if not name.startswith("MAKE") and name != "MFLAGS"}
    made_on_the_way = {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE", "VENV"}
    assert ours - made_on_the_way == {"PATH", "HOME", "SSL_CERT_FILE"}
    assert seen["SSL_CERT_FILE"] == "/some/certificates"
    assert seen["HOME"] != os.environ.get("HOME")
    assert not Path(seen["HOME"]).exists(), "though Go write-protects what it fetches"


@pytest.mark.parametrize(
    "root, environ, cache",
    [
        pytest.param(True, {}, "", id="root: the system's, by default"),
        pytest.param(True, {"XDG_CACHE_HOME": "/x"}, "", id="root: never below a home"),
        pytest.param(True, {"BOATYARD_CACHE": "/c"}, "/c", id="root: named"),
        pytest.param(False, {"BOATYARD_CACHE": "/c"}, "/c", id="user: named"),
        pytest.param(False, {"XDG_CACHE_HOME": "/x"}, "/x/boatyard", id="user: XDG"),
        pytest.param(False, {}, "/home/of/the/caller/.cache/boatyard", id="user: of the caller"),
        pytest.param(False, {"HOME": ""}, "/known/.cache/boatyard", id="user: without a home"),
    ],
)
def test_the_programs_of_all_versions_come_from_the_cache_of_the_caller(
    tmp_path: Path, root: bool, environ: dict[str, str], cache: str
) -> None:
    result = ci_run(tmp_path, cases=[PASSED], root=root, environ=environ)

    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "assets.txt").read_text() == f"ALL=1 BOATYARD_CACHE={cache}\n"
    assert (tmp_path / "ansible.txt").read_text() == f"BOATYARD_CACHE={cache}\n"
    assert (tmp_path / "test.txt").read_text() == f"BOATYARD_CACHE={cache}\n"


def test_a_sample_of_planted_bugs_is_tried(tmp_path: Path) -> None:
    result = ci_run(tmp_path, cases=[PASSED])

    assert (tmp_path / "mutants.txt").read_text() == "SAMPLE=10\n"
    assert re.search(r"mutants +\d+\.\d\d of ", result.stdout), "the steps have budgets too"


def test_programs_that_cannot_be_had_fail_the_run_though_all_tests_pass(tmp_path: Path) -> None:
    result = ci_run(tmp_path, cases=[PASSED], assets="exit 1")

    assert result.returncode == 1
    assert "assets FAILED, 1 passed" in result.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "root, installed, asked",
    [
        pytest.param(True, False, ["-qq update", "-qq install"], id="root"),
        pytest.param(True, True, [], id="all there already"),
        pytest.param(False, False, [], id="not root"),
    ],
)
def test_what_real_nodes_need_is_installed_by_root(
    tmp_path: Path, root: bool, installed: bool, asked: list[str]
) -> None:
    result = ci_run(tmp_path, cases=[PASSED], root=root, installed=installed)

    assert result.returncode == 0, result.stdout + result.stderr
    calls = (tmp_path / "apt.txt").read_text().splitlines()
    assert [" ".join(call.split()[:2]) for call in calls] == asked
    assert not asked or "containerd runc containernetworking-plugins" in calls[-1]


TWO_LANES = {
    "hub = { lane = 2, workers = 1, minutes = 1.0 }",
    "nodes = { lane = 3, workers = 1, minutes = 1.0 }",
}

# Each waits for the other: one after the other, both would fail.
MEETING = """
import pathlib, time
def test_meets():
    folder = pathlib.Path(__file__).parents[1]
    (folder / "{mine}").touch()
    end = time.monotonic() + 60
    while not (folder / "{other}").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
"""


def test_suites_of_several_lanes_run_side_by_side(tmp_path: Path) -> None:
    result = suites_run(
        tmp_path,
        TWO_LANES,
        nodes=MEETING.format(mine="nodes-was-here", other="hub-was-here"),
        hub=MEETING.format(mine="hub-was-here", other="nodes-was-here"),
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("1 passed, 0 failed, 0 skipped") == 4, "at its end, and in the table"


# Fails when the other suite of its group runs at the same time.
ALONE_IN_ITS_GROUP = """
import pathlib, time
def test_alone():
    marker = pathlib.Path(__file__).parents[1] / "running"
    assert not marker.exists()
    marker.touch()
    time.sleep(1)
    marker.unlink()
"""


def test_suites_of_one_group_never_run_at_the_same_time(tmp_path: Path) -> None:
    group = 'workers = 1, group = "clusters", minutes = 1.0'
    result = suites_run(
        tmp_path,
        {f"hub = {{ lane = 2, {group} }}", f"nodes = {{ lane = 3, {group} }}"},
        nodes=ALONE_IN_ITS_GROUP,
        hub=ALONE_IN_ITS_GROUP,
    )

    assert result.returncode == 0, result.stdout + result.stderr


def test_without_a_group_they_would(tmp_path: Path) -> None:
    result = suites_run(tmp_path, TWO_LANES, nodes=ALONE_IN_ITS_GROUP, hub=ALONE_IN_ITS_GROUP)

    assert result.returncode == 1


def test_a_suite_that_failed_beside_others_is_shown_whole(tmp_path: Path) -> None:
    result = suites_run(
        tmp_path,
        nodes="def test_good(): print('good words')",
        hub="def test_bad(): assert not 'bad words'",
        folder_of_no_lane="def test_new(): pass",
    )

    assert result.returncode == 1
    assert "bad words" in result.stdout
    assert "good words" not in result.stdout
    assert re.search(r"folder_of_no_lane .* 1 passed", result.stdout)
    assert re.search(r"hub .* 0 passed, 1 failed", result.stdout)


# Fails the first time, like a test that is late on a full machine.
UNSTEADY = """
import pathlib
def test_late():
    marker = pathlib.Path(__file__).with_name("marker")
    first = not marker.exists()
    marker.touch()
    assert not first
"""


def test_a_failed_test_gets_no_second_chance(tmp_path: Path) -> None:
    result = suites_run(tmp_path, hub=UNSTEADY, nodes="def test_good(): pass")

    assert result.returncode == 1
    assert re.search(r"hub .* 0 passed, 1 failed", result.stdout)
    judgement = judged(tmp_path)
    assert judgement.returncode == 1
    assert "FAILED tests.hub.test_it::test_late" in judgement.stdout


# Fails when the other suite has not ended: it needs the machine for itself.
# The mark is put in place here, or the runner would look for quiet tests in this very file.
QUIET = """
import pathlib, pytest
@pytest.mark.MARK
def test_alone():
    assert (pathlib.Path(__file__).parents[1] / "ended").exists()
def test_beside_others():
    pass
""".replace("MARK", "quiet")
SLOW = """
import pathlib, time
def test_slow():
    time.sleep(1)
    (pathlib.Path(__file__).parents[1] / "ended").touch()
"""


def test_a_test_marked_quiet_runs_when_all_others_have_ended(tmp_path: Path) -> None:
    result = suites_run(tmp_path, hub=QUIET, nodes=SLOW)

    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"hub .* 1 passed, 0 failed", result.stdout)
    assert re.search(r"quiet .* 1 passed, 0 failed", result.stdout)


def test_a_test_marked_quiet_can_fail_the_run(tmp_path: Path) -> None:
    result = suites_run(tmp_path, hub=QUIET.replace('"ended"', '"never"'), nodes=SLOW)

    assert result.returncode == 1
    assert re.search(r"quiet .* 0 passed, 1 failed", result.stdout)


def test_minutes_stand_beside_budgets_and_suites_over_them_are_named(tmp_path: Path) -> None:
    suites_run(tmp_path, hub="def test_good(): pass", nodes="def test_good(): pass")
    table = tmp_path / ".ci" / "suites.toml"
    rows = re.sub(r"(?m)^hub .*$", "hub = { lane = 2, minutes = 0.0001 }", table.read_text())
    table.write_text(rows)

    result = judged(tmp_path)

    assert result.returncode == 0, "being over a budget is a warning"
    assert re.search(r"tests/nodes +\d+\.\d\d of \d", result.stdout)
    (warning,) = [line for line in result.stdout.splitlines() if line.startswith("OVER BUDGET")]
    assert "tests/hub" in warning
    assert "tests/nodes" not in warning


def test_every_suite_has_a_budget() -> None:
    rows = tomllib.loads((ROOT / ".ci" / "suites.toml").read_text())["suites"]
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}

    assert folders == rows.keys() - {"quiet"}


def judged(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ".ci/report.py", "build/reports/run"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def suites_run(
    folder: Path, rows: Collection[str] = (), **suites: str
) -> subprocess.CompletedProcess[str]:
    """.ci/suites.py in a folder with these suites of one file each; `rows` replace lines of suites.toml.

    Each suite is a pytest of its own, with none of the installed plugins but xdist: to load them takes longer than
    all else.
    """
    shutil.copytree(ROOT / ".ci", folder / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    table = folder / ".ci" / "suites.toml"
    # A worker more would only cost the time to start it.
    table.write_text(re.sub(r"workers = \d", "workers = 1", table.read_text()))
    for row in rows:
        name = row.split()[0]
        table.write_text(re.sub(rf"(?m)^{name} .*$", row, table.read_text()))
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib -p xdist.plugin\nmarkers = quiet\n"
    )
    for name, text in suites.items():
        (folder / "tests" / name).mkdir(parents=True)
        (folder / "tests" / name / "test_it.py").write_text(text)
    return subprocess.run(
        [sys.executable, ".ci/suites.py"],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def ci_run(
    folder: Path,
    *,
    cases: list[str] | None,
    allowed: str = "",
    check: str = "true",
    assets: str = "true",
    root: bool = True,
    installed: bool = True,
    environ: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """.ci/run in a folder whose make says what it was given and answers with `cases`."""
    shutil.copytree(ROOT / ".ci", folder / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".ci" / "allowed-skips").write_text(allowed)
    (folder / "Makefile").write_text(
        MAKEFILE.format(python=sys.executable, check=check, assets=assets)
    )
    (folder / "apt.txt").write_text("")
    machine = {
        "apt-get": f'echo "$*" >> {folder}/apt.txt',
        "dpkg": "exit 0" if installed else "exit 1",
        "id": f"echo {0 if root else 1000}",
        "getent": '[ "$*" = "passwd 1000" ] && echo "user:x:1000:1000::/known:/bin/sh"',
    }
    (folder / "bin").mkdir()
    for name, line in machine.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / "bin" / name).chmod(0o755)
    if cases is not None:
        report = f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"
        (folder / "report.xml").write_text(report)
    return subprocess.run(
        [folder / ".ci" / "run"],
        env={
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": "/home/of/the/caller",
            "SSL_CERT_FILE": "/some/certificates",
            "PYTHONPATH": "/somewhere/else",
            "BOATYARD_TOKEN": "stray",
            **(environ or {}),
        },
        capture_output=True,
        text=True,
        check=False,
    )

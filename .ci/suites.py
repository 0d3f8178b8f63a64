"""Runs the suites, one folder of tests/ after another, with the minutes of each. See Makefile."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The quick suites first: what breaks early is cheap to mend. Others come in between, by name.
FIRST = ("unit", "contracts")
LAST = ("journeys", "e2e")
# Suites that start whole sets of processes have the machine for themselves.
ALONE = frozenset({"eda", "hub", "nodes", "real"})

# Suites that mostly wait for what others do in their own time: so many files at once.
BY_FILE = {"automation": 2, "e2e": 2, "faults": 4, "kube": 2, "local": 2}


@dataclass(frozen=True)
class Report:
    """What one JUnit file says."""

    passed: int
    failed: int
    skipped: tuple[tuple[str, str], ...] = field(default=())
    """Each skipped test with its reason."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=".ci/suites.py", description=__doc__)
    parser.add_argument("suites", nargs="*", help="folders of tests/; all when none is named")
    parser.add_argument("--reports", default="build/reports/run", help="where JUnit files go")
    options = parser.parse_args(arguments)

    tests, reports = ROOT / "tests", ROOT / options.reports
    strays = sorted(path.relative_to(ROOT) for path in tests.glob("test_*.py"))
    if strays:
        print(f"these tests belong to no suite; move them into a folder of tests/: {strays}")
        return 1
    suites = options.suites or find_suites(tests)
    unknown = sorted(set(suites) - set(find_suites(tests)))
    if unknown:
        print(f"no such suite: {', '.join(unknown)}; there are: {', '.join(find_suites(tests))}")
        return 2
    reports.mkdir(parents=True, exist_ok=True)
    for old in reports.glob("*.xml"):
        old.unlink()
    return run(suites, reports)


def find_suites(tests: Path) -> list[str]:
    """The folders of tests/ that hold tests, in the order in which they run."""
    names = {path.name for path in tests.iterdir() if any(path.rglob("test_*.py"))}
    between = sorted(names - {*FIRST, *LAST})
    return [name for name in (*FIRST, *between, *LAST) if name in names]


def run(suites: Sequence[str], reports: Path) -> int:
    lines, broken = [], False
    for suite in suites:
        print(f"\n== tests/{suite}", flush=True)
        report = reports / f"{suite}.xml"
        start = time.monotonic()
        code = subprocess.run(command(suite, report), cwd=ROOT, check=False).returncode
        minutes = (time.monotonic() - start) / 60
        broken = broken or code != 0
        lines.append(f"{suite:<12} {minutes:6.2f} min   {outcome(report, code)}")
    print("\nminutes per suite")
    print("\n".join(f"  {line}" for line in lines), flush=True)
    return 1 if broken else 0


def command(suite: str, report: Path) -> list[str]:
    parallel = ["-n", "2", "--dist", "worksteal"]
    if suite in ALONE:
        parallel = []
    elif suite in BY_FILE:
        parallel = ["-n", str(BY_FILE[suite]), "--dist", "loadfile"]
    options = ["-q", f"--junitxml={report}", "-o", f"junit_suite_name={suite}"]
    return [sys.executable, "-m", "pytest", f"tests/{suite}", *options, *parallel]


def outcome(report: Path, code: int) -> str:
    if not report.exists():
        return f"FAILED without a report (exit code {code})"
    found = read_report(report)
    words = f"{found.passed} passed, {found.failed} failed, {len(found.skipped)} skipped"
    # A suite may fail with no failed test: nothing collected, a crash at the end, an interrupt.
    return words if code == 0 else f"{words}; FAILED (exit code {code})"


def read_report(path: Path) -> Report:
    passed = failed = 0
    skipped: list[tuple[str, str]] = []
    for case in ElementTree.parse(path).iter("testcase"):
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skip is None:
            passed += 1
        elif skip.get("type") != "pytest.xfail":
            skipped.append((test_id(case), skip.get("message") or "no reason given"))
    return Report(passed=passed, failed=failed, skipped=tuple(skipped))


def test_id(case: ElementTree.Element) -> str:
    return "::".join(filter(None, [case.get("classname"), case.get("name")]))


def read_reports(folder: Path) -> Iterator[tuple[str, Report]]:
    for path in sorted(folder.glob("*.xml")):
        yield path.stem, read_report(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

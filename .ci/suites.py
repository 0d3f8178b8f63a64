"""Runs the suites, folders of tests/, side by side in lanes, with the minutes of each. See Makefile."""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Suites of one lane run one after another, lanes side by side: most suites wait for API servers, roles or
# machines that boot, and what waits costs no core. The first lane computes; a new folder joins it. Real clusters
# come last: they have a small share of the processors.
LANES = (
    ("unit", "contracts", "parts", "ledger", "api", "journeys"),
    ("kube", "hub", "faults"),
    ("automation", "eda", "nodes", "real", "local", "e2e"),
)
# Suites that start whole sets of processes: one test after another.
ALONE = frozenset({"eda", "hub", "nodes", "real"})
# Suites that mostly wait for what others do in their own time: so many files at once.
BY_FILE = {"automation": 2, "e2e": 3, "faults": 4, "kube": 2, "local": 2}
PROGRESS_SECONDS = 30
SLOWEST = 15


@dataclass(frozen=True)
class Report:
    """What one JUnit file says."""

    passed: int
    failed: int
    skipped: tuple[tuple[str, str], ...] = field(default=())
    """Each skipped test with its reason."""
    seconds: tuple[tuple[float, str], ...] = field(default=())
    """How long each test took."""


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
    """The folders of tests/ that hold tests, in the order of their lanes."""
    names = {path.name for path in tests.iterdir() if any(path.rglob("test_*.py"))}
    return [name for lane in lanes_of(sorted(names)) for name in lane]


def lanes_of(suites: Sequence[str]) -> list[list[str]]:
    """The suites as they are run: those of one list one after another, the lists side by side."""
    lanes = [[name for name in lane if name in suites] for lane in LANES]
    lanes[0] += [name for name in suites if not any(name in lane for lane in LANES)]
    return [lane for lane in lanes if lane]


def run(suites: Sequence[str], reports: Path) -> int:
    lanes = lanes_of(suites)
    start = time.monotonic()
    ended = run_one_by_one(suites, reports) if len(lanes) == 1 else run_side_by_side(lanes, reports)
    minutes = (time.monotonic() - start) / 60
    found = [read_report(one.report) for one in ended if one.report.exists()]
    slowest = sorted((pair for report in found for pair in report.seconds), reverse=True)
    if len(lanes) > 1:
        print("\nslowest tests")
        print("\n".join(f"  {seconds:6.1f} s  {test}" for seconds, test in slowest[:SLOWEST]))
    print(f"\nminutes per suite, {minutes:.1f} together")
    print("\n".join(f"  {one.line()}" for one in ended), flush=True)
    return 1 if any(one.code != 0 for one in ended) else 0


@dataclass(frozen=True)
class Ended:
    """A suite that has been run."""

    suite: str
    report: Path
    code: int
    minutes: float

    def line(self) -> str:
        return f"{self.suite:<12} {self.minutes:6.2f} min   {outcome(self.report, self.code)}"


def run_one_by_one(suites: Sequence[str], reports: Path) -> list[Ended]:
    """Before the reader's eyes."""
    ended = []
    for suite in suites:
        print(f"\n== tests/{suite}", flush=True)
        report = reports / f"{suite}.xml"
        start = time.monotonic()
        code = subprocess.run(command(suite, report), cwd=ROOT, check=False).returncode
        ended.append(Ended(suite, report, code, (time.monotonic() - start) / 60))
    return ended


@dataclass(frozen=True)
class Running:
    """A suite at work; what it prints goes to a file."""

    suite: str
    process: subprocess.Popen[bytes]
    report: Path
    log: Path
    start: float

    def progress(self) -> str:
        told = re.findall(r"\[ *(\d+)%\]", self.log.read_text(errors="replace"))
        return f"{self.suite} {told[-1] if told else 0}%"


def run_side_by_side(lanes: Sequence[Sequence[str]], reports: Path) -> list[Ended]:
    """A line of progress now and then; what a suite printed is shown whole when it has failed."""
    waiting = [deque(lane) for lane in lanes]
    running: list[Running | None] = [None] * len(lanes)
    ended: list[Ended] = []
    start = told = time.monotonic()
    try:
        while any(waiting) or any(running):
            for number, lane in enumerate(waiting):
                one = running[number]
                if one is not None and one.process.poll() is not None:
                    ended.append(end(one))
                    one = running[number] = None
                if one is None and any(waiting):
                    # A lane that has come to its end helps the longest: it takes what comes last there.
                    suite = lane.popleft() if lane else max(waiting, key=len).pop()
                    running[number] = begin(suite, reports)
            if time.monotonic() - told > PROGRESS_SECONDS:
                told = time.monotonic()
                at = " · ".join(one.progress() for one in running if one is not None)
                print(f"  {(told - start) / 60:4.1f} min  {at}", flush=True)
            time.sleep(0.2)
    finally:
        for one in running:
            if one is not None:
                # As Ctrl-C: fixtures take down what they have started.
                one.process.send_signal(signal.SIGINT)
                one.process.wait()
    return ended


def begin(suite: str, reports: Path) -> Running:
    report, log = reports / f"{suite}.xml", reports / f"{suite}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command(suite, report), cwd=ROOT, stdout=out, stderr=subprocess.STDOUT
        )
    return Running(suite, process, report, log, time.monotonic())


def end(one: Running) -> Ended:
    code = one.process.returncode
    ended = Ended(one.suite, one.report, code, (time.monotonic() - one.start) / 60)
    if code != 0:
        print(f"\n== tests/{one.suite}\n{one.log.read_text(errors='replace')}")
    print(f"  {ended.line()}", flush=True)
    return ended


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
    seconds: list[tuple[float, str]] = []
    for case in ElementTree.parse(path).iter("testcase"):
        skip = case.find("skipped")
        seconds.append((float(case.get("time") or 0), test_id(case)))
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skip is None:
            passed += 1
        elif skip.get("type") != "pytest.xfail":
            skipped.append((test_id(case), skip.get("message") or "no reason given"))
    return Report(passed=passed, failed=failed, skipped=tuple(skipped), seconds=tuple(seconds))


def test_id(case: ElementTree.Element) -> str:
    return "::".join(filter(None, [case.get("classname"), case.get("name")]))


def read_reports(folder: Path) -> Iterator[tuple[str, Report]]:
    for path in sorted(folder.glob("*.xml")):
        yield path.stem, read_report(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

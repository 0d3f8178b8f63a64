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
from dataclasses import dataclass, replace
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
AGAIN = "again"  # below the reports: those of tests that were run again
PROGRESS_SECONDS = 30
SLOWEST = 15
MOST_AGAIN = (
    10  # tests that failed beside others and are run again; more than these are no accident
)


@dataclass(frozen=True)
class Report:
    """What one JUnit file says, and that of the tests that were run again."""

    passed: int
    failures: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    """Failed beside others, and passed alone. Counted among those that passed."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Each skipped test with its reason."""
    seconds: tuple[tuple[float, str], ...] = ()
    """How long each test took."""

    @property
    def failed(self) -> int:
        return len(self.failures)


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
    for old in (*reports.glob("*.xml"), *(reports / AGAIN).glob("*.xml")):
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
    beside = len(lanes) > 1
    ended = run_side_by_side(lanes, reports) if beside else run_one_by_one(suites, reports)
    if beside:
        ended = run_again(ended)
    minutes = (time.monotonic() - start) / 60
    found = [read_report(one.report) for one in ended if one.report.exists()]
    slowest = sorted((pair for report in found for pair in report.seconds), reverse=True)
    if beside:
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
    if found.unsteady:
        words += f", {len(found.unsteady)} only when run again alone"
    # A suite may fail with no failed test: nothing collected, a crash at the end, an interrupt.
    return words if code == 0 else f"{words}; FAILED (exit code {code})"


def run_again(ended: Sequence[Ended]) -> list[Ended]:
    """Tests that failed beside others run once more, alone, before the reader's eyes.

    A full machine makes some of them late. Those that pass now are told as unsteady: they are to be mended, but they do
    not keep back whoever has changed something else.
    """
    failed = {
        one.suite: read_report(one.report).failures
        for one in ended
        if one.code == 1 and one.report.exists()
    }
    if not 0 < sum(map(len, failed.values())) <= MOST_AGAIN:
        return list(ended)
    return [again(one, failed[one.suite]) if failed.get(one.suite) else one for one in ended]


def again(one: Ended, failures: Sequence[str]) -> Ended:
    report = one.report.parent / AGAIN / one.report.name
    report.parent.mkdir(exist_ok=True)
    print(f"\n== tests/{one.suite}, again: {', '.join(failures)}", flush=True)
    words = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"]
    done = subprocess.run([*words, *map(node_of, failures)], cwd=ROOT, check=False)
    # No longer broken only if each of them was found and has passed.
    return replace(one, code=done.returncode or (1 if read_report(one.report).failures else 0))


def node_of(test: str) -> str:
    """`tests.unit.test_a::test_b` as pytest wants to hear it."""
    module, _, name = test.partition("::")
    parts = module.split(".")
    for count in range(len(parts), 0, -1):
        file = Path(*parts[:count]).with_suffix(".py")
        if (ROOT / file).is_file():
            return "::".join([str(file), *parts[count:], name])
    return test


def read_report(path: Path) -> Report:
    """With what is said of tests that were run again."""
    said = _read(path)
    second = path.parent / AGAIN / path.name
    if not said.failures or not second.exists():
        return said
    failures = set(_read(second).failures)
    seen = {test for _, test in _read(second).seconds}
    unsteady = tuple(test for test in said.failures if test in seen - failures)
    left = tuple(test for test in said.failures if test not in unsteady)
    return replace(said, passed=said.passed + len(unsteady), failures=left, unsteady=unsteady)


def _read(path: Path) -> Report:
    passed = 0
    failures: dict[str, None] = {}  # one that fails at its end too is named once
    skipped: list[tuple[str, str]] = []
    seconds: list[tuple[float, str]] = []
    for case in ElementTree.parse(path).iter("testcase"):
        skip = case.find("skipped")
        seconds.append((float(case.get("time") or 0), test_id(case)))
        if case.find("failure") is not None or case.find("error") is not None:
            failures[test_id(case)] = None
        elif skip is None:
            passed += 1
        elif skip.get("type") != "pytest.xfail":
            skipped.append((test_id(case), skip.get("message") or "no reason given"))
    return Report(
        passed=passed,
        failures=tuple(failures),
        skipped=tuple(skipped),
        seconds=tuple(seconds),
    )


def test_id(case: ElementTree.Element) -> str:
    return "::".join(filter(None, [case.get("classname"), case.get("name")]))


def read_reports(folder: Path) -> Iterator[tuple[str, Report]]:
    for path in sorted(folder.glob("*.xml")):
        yield path.stem, read_report(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

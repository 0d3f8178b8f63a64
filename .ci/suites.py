"""Runs the suites, folders of tests/, in lanes side by side and reports the minutes of each. See Makefile.

A failed test fails the run: nothing is tried a second time. A test that needs a quiet machine carries the mark
`quiet` and runs after all lanes have ended, with nothing beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_name("suites.toml")
MINUTES = "minutes.json"  # beside the reports: what .ci/report.py reads
QUIET = "quiet"
PROGRESS_SECONDS = 30
SLOWEST = 15


@dataclass(frozen=True)
class Suite:
    """One line of suites.toml."""

    name: str
    lane: int = 1
    workers: int = 2
    by: str = "test"
    group: str = ""
    minutes: float | None = None


@dataclass(frozen=True)
class Report:
    """The content of one JUnit file."""

    passed: int
    failures: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    """Each skipped test with its reason."""
    seconds: tuple[tuple[float, str], ...] = ()
    """The duration of each test."""

    @property
    def failed(self) -> int:
        return len(self.failures)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=".ci/suites.py", description=__doc__)
    parser.add_argument("suites", nargs="*", help="folders of tests/; all when none is named")
    parser.add_argument("--reports", default="build/reports/run", help="where JUnit files go")
    options = parser.parse_args(arguments)

    tests, reports = ROOT / "tests", ROOT / options.reports
    loose_files = sorted(path.relative_to(ROOT) for path in tests.glob("test_*.py"))
    if loose_files:
        print(f"these tests belong to no suite; move them into a folder of tests/: {loose_files}")
        return 1
    names = options.suites or find_suites(tests)
    unknown = sorted(set(names) - set(find_suites(tests)))
    if unknown:
        print(f"no such suite: {', '.join(unknown)}; there are: {', '.join(find_suites(tests))}")
        return 2
    # Whoever ends a run with SIGTERM wants the same as with Ctrl-C, which a background process may ignore.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    reports.mkdir(parents=True, exist_ok=True)
    for old in (*reports.glob("*.xml"), *reports.glob("*.log"), reports / MINUTES):
        old.unlink(missing_ok=True)
    return run(names, reports)


def read_table() -> dict[str, Suite]:
    rows = tomllib.loads(TABLE.read_text())["suites"]
    return {name: Suite(name, **row) for name, row in rows.items()}


def find_suites(tests: Path) -> list[str]:
    """The folders of tests/ that hold tests, in the order of their lanes."""
    names = {path.name for path in tests.iterdir() if any(path.rglob("test_*.py"))}
    return [suite.name for lane in lanes_of(sorted(names)) for suite in lane]


def lanes_of(names: Sequence[str]) -> list[list[Suite]]:
    """The suites as they run: those of one list one after another, the lists side by side."""
    table = read_table()
    suites = [suite for name, suite in table.items() if name in names]
    suites += [Suite(name) for name in names if name not in table]
    lanes = [[s for s in suites if s.lane == lane] for lane in sorted({s.lane for s in suites})]
    return [lane for lane in lanes if lane]


def run(names: Sequence[str], reports: Path) -> int:
    lanes = lanes_of(names)
    start = time.monotonic()
    several = len(lanes) > 1
    ends = run_side_by_side(lanes, reports) if several else run_one_by_one(lanes[0], reports)
    ends += run_quiet_tests(names, reports)
    minutes = (time.monotonic() - start) / 60
    if several:
        print_slowest(ends)
    print(f"\nminutes per suite, {minutes:.1f} together")
    print("\n".join(f"  {end.line()}" for end in ends), flush=True)
    rows = {end.suite.name: {"minutes": end.minutes, "cpu": end.cpu_minutes} for end in ends}
    (reports / MINUTES).write_text(json.dumps(rows, indent=1))
    return 1 if any(end.code != 0 for end in ends) else 0


def print_slowest(ends: Sequence[End]) -> None:
    durations = [pair for end in ends if end.report.exists() for pair in _seconds(end.report)]
    print("\nslowest tests")
    for seconds, test in sorted(durations, reverse=True)[:SLOWEST]:
        print(f"  {seconds:6.1f} s  {test}")


def _seconds(path: Path) -> tuple[tuple[float, str], ...]:
    return read_report(path).seconds


@dataclass(frozen=True)
class End:
    """How a suite ended."""

    suite: Suite
    report: Path
    code: int
    minutes: float
    cpu_minutes: float

    def line(self) -> str:
        cpu = f"{self.cpu_minutes:5.1f} of CPU"
        return f"{self.suite.name:<12} {self.minutes:6.2f} min {cpu}   {self.outcome()}"

    def outcome(self) -> str:
        if not self.report.exists():
            return f"FAILED without a report (exit code {self.code})"
        report = read_report(self.report)
        words = f"{report.passed} passed, {report.failed} failed, {len(report.skipped)} skipped"
        # A suite may fail with no failed test: nothing collected, a crash at the end, an interrupt.
        return words if self.code == 0 else f"{words}; FAILED (exit code {self.code})"


class Process:
    """A suite while it runs."""

    def __init__(self, suite: Suite, command: Sequence[str], reports: Path, *, shown: bool) -> None:
        self.suite = suite
        self.report = reports / f"{suite.name}.xml"
        self.log = reports / f"{suite.name}.log"
        self._start = time.monotonic()
        with self.log.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdout=None if shown else file,
                stderr=None if shown else subprocess.STDOUT,
            )

    def poll(self) -> End | None:
        return self._wait(os.WNOHANG)

    def wait(self) -> End:
        try:
            end = self._wait(0)
        except KeyboardInterrupt:
            self.interrupt()
            raise
        assert end is not None
        return end

    def interrupt(self) -> None:
        """Like Ctrl-C: fixtures take down what they have started."""
        self._process.send_signal(signal.SIGINT)
        self._wait(0)

    def progress(self) -> str:
        percentages = re.findall(r"\[ *(\d+)%\]", self.log.read_text(errors="replace"))
        return f"{self.suite.name} {percentages[-1] if percentages else 0}%"

    def _wait(self, flags: int) -> End | None:
        # wait4 and not Popen.wait: it also reports the CPU time of the suite and its children.
        pid, status, usage = os.wait4(self._process.pid, flags)
        if pid == 0:
            return None
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        minutes = (time.monotonic() - self._start) / 60
        cpu_minutes = (usage.ru_utime + usage.ru_stime) / 60
        return End(self.suite, self.report, code, minutes, cpu_minutes)


def run_one_by_one(suites: Sequence[Suite], reports: Path) -> list[End]:
    """Runs suites with their output shown."""
    ends = []
    for suite in suites:
        print(f"\n== tests/{suite.name}", flush=True)
        ends.append(Process(suite, command(suite, reports), reports, shown=True).wait())
    return ends


def run_side_by_side(lanes: Sequence[Sequence[Suite]], reports: Path) -> list[End]:
    """Prints a line of progress now and then; the output of a suite is shown whole when it has failed."""
    queues = [deque(lane) for lane in lanes]
    processes: list[Process | None] = [None] * len(lanes)
    ends: list[End] = []
    start = last_progress = time.monotonic()
    try:
        while any(queues) or any(processes):
            for number, queue in enumerate(queues):
                process = processes[number]
                if process is not None and (end := process.poll()):
                    show_end(process, end)
                    ends.append(end)
                    process = processes[number] = None
                if process is None and (suite := next_suite(queue, queues, processes)):
                    processes[number] = Process(
                        suite, command(suite, reports), reports, shown=False
                    )
            if time.monotonic() - last_progress > PROGRESS_SECONDS:
                last_progress = time.monotonic()
                places = " · ".join(process.progress() for process in processes if process)
                print(f"  {(last_progress - start) / 60:4.1f} min  {places}", flush=True)
            time.sleep(0.2)
    finally:
        for process in processes:
            if process is not None:
                process.interrupt()
    return ends


def next_suite(
    queue: deque[Suite], queues: Sequence[deque[Suite]], processes: Sequence[Process | None]
) -> Suite | None:
    """Takes the next suite of a lane, or of the longest other lane when the lane has nothing left.

    None while everything left belongs to a group of which a suite runs.
    """
    busy = {process.suite.group for process in processes if process and process.suite.group}
    source = queue or max(queues, key=len)
    # From another lane comes what is last there: its first one is about to start where it is.
    for suite in list(source) if source is queue else list(reversed(source)):
        if suite.group not in busy:
            source.remove(suite)
            return suite
    return None


def show_end(process: Process, end: End) -> None:
    if end.code != 0:
        print(f"\n== tests/{end.suite.name}\n{process.log.read_text(errors='replace')}")
    print(f"  {end.line()}", flush=True)


def run_quiet_tests(names: Sequence[str], reports: Path) -> list[End]:
    """Runs the tests marked `quiet` of these suites, one after another, now that nothing else runs."""
    files = [
        str(path.relative_to(ROOT))
        for name in names
        for path in sorted((ROOT / "tests" / name).rglob("test_*.py"))
        if re.search(rf"\bmark\.{QUIET}\b", path.read_text())
    ]
    if not files:
        return []
    suite = read_table().get(QUIET, Suite(QUIET))
    print(f"\n== tests that need a quiet machine: {', '.join(files)}", flush=True)
    words = [*pytest_words(suite, reports), "-m", QUIET, *files]
    return [Process(suite, words, reports, shown=True).wait()]


def command(suite: Suite, reports: Path) -> list[str]:
    distribution = {"test": "worksteal", "file": "loadfile"}[suite.by]
    parallel = ["-n", str(suite.workers), "--dist", distribution] if suite.workers > 1 else []
    return [
        *pytest_words(suite, reports),
        *("-m", f"not {QUIET}"),
        *parallel,
        f"tests/{suite.name}",
    ]


def pytest_words(suite: Suite, reports: Path) -> list[str]:
    report = reports / f"{suite.name}.xml"
    options = ["-q", f"--junitxml={report}", "-o", f"junit_suite_name={suite.name}"]
    return [sys.executable, "-m", "pytest", *options]


def read_report(path: Path) -> Report:
    passed = 0
    failures: dict[str, None] = {}  # a test that also fails in its teardown is named once
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

"""Names every skipped test with its reason; fails on one that is not on the list. Ends .ci/run."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Sequence
from pathlib import Path

from suites import read_reports


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=".ci/skips.py", description=__doc__)
    parser.add_argument("reports", type=Path, help="folder of JUnit files")
    parser.add_argument("--allowed", type=Path, default=Path(__file__).with_name("allowed-skips"))
    parser.add_argument("--seconds", type=float, default=0.0, help="for the closing line")
    parser.add_argument("--broken", default="", help="what has failed already")
    options = parser.parse_args(arguments)

    reports = [report for _, report in read_reports(options.reports)]
    if not reports:
        print(f"no reports in {options.reports}: the tests did not run")
        return 1
    patterns = read_patterns(options.allowed)
    skipped = [skip for report in reports for skip in report.skipped]
    unlisted = 0
    for test, reason in skipped:
        allowed = any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns)
        unlisted += not allowed
        print(f"SKIPPED {'' if allowed else 'and not on the list: '}{test}: {reason}")
    if unlisted:
        print(f"make them run, or put them with their reason on {options.allowed.name}")

    for test in (test for report in reports for test in report.unsteady):
        print(f"UNSTEADY {test}: failed beside others, passed alone; make it bear a full machine")

    passed = sum(report.passed for report in reports)
    failed = sum(report.failed for report in reports)
    counts = [f"{options.broken} FAILED"] if options.broken else []
    counts += [f"{failed} failed"] if failed else []
    counts += [f"{passed} passed", f"{len(skipped)} skipped"]
    words = f" {', '.join(counts)} in {options.seconds:.2f}s "
    print(words.center(80, "="))
    return 1 if failed or unlisted or options.broken else 0


def read_patterns(path: Path) -> list[str]:
    """The test ids on the list, one per line, `*` for any text; after a # comes the reason."""
    lines = (line.split("#", 1)[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

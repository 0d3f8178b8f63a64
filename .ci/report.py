"""Ends .ci/run: minutes against budgets, every skip with its reason; fails on a skip that is not on the list."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from suites import MINUTES, TABLE, read_reports, read_table


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=".ci/report.py", description=__doc__)
    parser.add_argument("reports", type=Path, help="folder of JUnit files")
    parser.add_argument("--allowed", type=Path, default=Path(__file__).with_name("allowed-skips"))
    parser.add_argument("--steps", type=Path, help="file with a step and its seconds per line")
    parser.add_argument("--seconds", type=float, default=0.0, help="of the whole run")
    parser.add_argument("--broken", default="", help="the steps that have failed")
    options = parser.parse_args(arguments)

    reports = [report for _, report in read_reports(options.reports)]
    if not reports:
        print(f"no reports in {options.reports}: the tests did not run")
        return 1
    print_minutes(suite_minutes(options.reports), step_minutes(options.steps, options.seconds))

    patterns = read_patterns(options.allowed)
    skipped = [skip for report in reports for skip in report.skipped]
    unlisted = 0
    for test, reason in skipped:
        allowed = any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns)
        unlisted += not allowed
        print(f"SKIPPED {'' if allowed else 'and not on the list: '}{test}: {reason}")
    if unlisted:
        print(f"make them run, or put them with their reason on {options.allowed.name}")
    for test in (test for report in reports for test in report.failures):
        print(f"FAILED {test}")

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


def suite_minutes(reports: Path) -> dict[str, float]:
    path = reports / MINUTES
    rows = json.loads(path.read_text()) if path.exists() else {}
    return {f"tests/{name}": row["minutes"] for name, row in rows.items()}


def step_minutes(path: Path | None, seconds: float) -> dict[str, float]:
    lines = path.read_text().splitlines() if path and path.exists() else []
    pairs = (line.split() for line in lines)
    return {name: float(number) / 60 for name, number in pairs} | {"all": seconds / 60}


def budgets() -> dict[str, float]:
    steps: Mapping[str, float] = tomllib.loads(TABLE.read_text())["steps"]
    suites = {f"tests/{suite.name}": suite.minutes for suite in read_table().values()}
    return {name: minutes for name, minutes in (suites | dict(steps)).items() if minutes}


def print_minutes(suites: Mapping[str, float], steps: Mapping[str, float]) -> None:
    """Prints each suite and step with its minutes and budget; being over one is a warning."""
    limits = budgets()
    over = []
    print("\nminutes of budget")
    for name, minutes in (dict(suites) | dict(steps)).items():
        limit = limits.get(name)
        print(f"  {name:<18} {minutes:6.2f} of {f'{limit:.2f}' if limit else 'no budget'}")
        if limit and minutes > limit:
            over.append(f"{name} ({minutes:.1f} of {limit:g} minutes)")
    if over:
        print(f"OVER BUDGET: {', '.join(over)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A pytest plugin that writes down how tests ended. Loaded by run.py in the copy of the tree."""

from __future__ import annotations

import importlib.util
import json
import os
from collections import Counter
from pathlib import Path

import pytest

VERDICT = "MUTANTS_VERDICT"  # the file to write
TREE = "MUTANTS_TREE"  # the copy that must be under test
ELSEWHERE = 77  # the exit code when another tree than the copy is imported

_counts: Counter[str] = Counter()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Ends the run unless `boatyard` is imported from the copy."""
    spec = importlib.util.find_spec("boatyard")
    origin = Path(spec.origin) if spec is not None and spec.origin else Path("/")
    if not origin.resolve().is_relative_to(Path(os.environ[TREE]).resolve()):
        pytest.exit(f"boatyard is imported from {origin.parent}, not from the copy", ELSEWHERE)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _counts[f"failed in {report.when}"] += 1
    elif report.skipped:
        _counts["skipped"] += 1
    elif report.when == "call":
        _counts["passed"] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    Path(os.environ[VERDICT]).write_text(json.dumps(_counts))

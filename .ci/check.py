"""The checks of a minute: format, lint, types, imports, unit and contract tests. See Makefile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from suites import find_suites

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
QUICK = ("unit", "contracts")
# On the twin: programs of real clusters that happen to be installed are for `make test`.
ENVIRONMENT = {**os.environ, "BOATYARD_ASSETS": "/nonexistent/boatyard-assets"}


def main() -> int:
    suites = [suite for suite in find_suites(ROOT / "tests") if suite in QUICK]
    steps = {
        "format": [BIN / "ruff", "format", "--check", "."],
        "lint": [BIN / "ruff", "check", "."],
        "types": [BIN / "mypy"],
        "imports": [BIN / "lint-imports", "--no-logo"],
        "tests": [sys.executable, ".ci/suites.py", "--reports", "build/reports/check", *suites],
    }
    start = time.monotonic()
    # All of them, always: one run tells everything that is to be mended.
    broken = [name for name, command in steps.items() if not passes(name, command)]
    seconds = time.monotonic() - start
    print(f"\nchecked in {seconds:.0f} s: " + (f"{', '.join(broken)} FAILED" if broken else "good"))
    return 1 if broken else 0


def passes(name: str, command: list[str | Path]) -> bool:
    start = time.monotonic()
    result = subprocess.run(
        command, cwd=ROOT, check=False, capture_output=name != "tests", env=ENVIRONMENT
    )
    if name == "tests":
        return result.returncode == 0
    print(f"{name:<8} {'ok' if result.returncode == 0 else 'FAILED':<7}", end="")
    print(f"{time.monotonic() - start:5.1f} s", flush=True)
    if result.returncode != 0:
        sys.stdout.write((result.stdout + result.stderr).decode(errors="replace"))
    return result.returncode == 0


if __name__ == "__main__":
    sys.exit(main())

"""Exit codes for each kind of failure, and error messages on stderr."""

from __future__ import annotations

import sys
from typing import TextIO

from boatyard.cli.text_format import clean
from boatyard.client.config import NotConfigured
from boatyard.model import errors

DONE = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
REFUSED = 4
CONFLICT = 5
CAPACITY = 6
STILL_RUNNING = 7
INTERRUPTED = 130

# The first class that fits counts, so the narrower ones come first.
_EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (NotConfigured, USAGE),
    (errors.NotFound, NOT_FOUND),
    (errors.Unauthenticated, REFUSED),
    (errors.Denied, REFUSED),
    (errors.Exists, CONFLICT),
    (errors.Conflict, CONFLICT),
    (errors.Precondition, CONFLICT),
    (errors.Exhausted, CAPACITY),
    (errors.Refused, USAGE),  # the request is wrong: repeating it will not help
)

_REMEDIES: tuple[tuple[type[BaseException], str], ...] = (
    (errors.Unauthenticated, "log in with `boatyard login ADDRESS`, or set BOATYARD_TOKEN"),
    (errors.Denied, "`boatyard whoami` tells who you are; your role does not allow this"),
)


class StillRunning(errors.BoatyardError):
    """The timeout is over, the work goes on. The exit code differs when it waits for capacity."""

    def __init__(self, message: str, *, code: int = STILL_RUNNING) -> None:
        super().__init__(message)
        self.code = code


class Unsuccessful(errors.BoatyardError):
    """The work ended, but not as requested. Carries the exit code."""

    def __init__(self, message: str, *, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def exit_code_for(error: BaseException) -> int:
    """The exit code for a failure."""
    if isinstance(error, StillRunning | Unsuccessful):
        return error.code
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), FAILED)


def report_error(error: BaseException, stream: TextIO | None = None) -> int:
    """Prints the error, with each field violation on a line of its own, and returns the exit code."""
    out = stream or sys.stderr
    for line in format_error(error):
        print(line, file=out)
    return exit_code_for(error)


def format_error(error: BaseException) -> list[str]:
    """The error as lines for stderr, control characters escaped."""
    violations = getattr(error, "violations", ())
    if violations:
        lines = [f"boatyard: {_count_things(len(violations))} wrong with the request"]
        lines += [f"  {clean(str(violation))}" for violation in violations]
    else:
        lines = [f"boatyard: {clean(str(error)) or type(error).__name__}"]
    remedy = next((text for kind, text in _REMEDIES if isinstance(error, kind)), "")
    return [*lines, f"  {remedy}"] if remedy else lines


def _count_things(number: int) -> str:
    return "one thing is" if number == 1 else f"{number} things are"

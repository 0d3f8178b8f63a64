"""The ways something can fail. Pick one of these; the API edge maps each to one code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    """One thing wrong with a request: where, what, and what to do about it."""

    path: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text}; {self.remedy}" if self.remedy else text


class BoatyardError(Exception):
    """What all of ours have in common."""


class Refused(BoatyardError):
    """Only the author of the request can mend it; never retried."""

    def __init__(self, message: str, *violations: Violation, reason: str = "Refused") -> None:
        super().__init__(message or "; ".join(str(violation) for violation in violations))
        self.violations = violations
        self.reason = reason


class Precondition(Refused):
    """The request is well formed, but what it is about is not in a state for it (in use, deleting)."""


class Exhausted(Refused):
    """A quota or a limit is used up."""


class Unavailable(BoatyardError):
    """Something outside did not answer or is not ready; retried, ever more patiently."""

    def __init__(self, message: str, *, reason: str = "Unavailable") -> None:
        super().__init__(message)
        self.reason = reason


class NotFound(BoatyardError):
    """There is no such thing, or the caller may not know of it."""


class Exists(BoatyardError):
    """The id or name is taken."""


class Conflict(BoatyardError):
    """Somebody else changed it in the meantime: look again."""


class LeaseLost(Conflict):
    """This worker's lease has passed to another; its result is thrown away."""


class Denied(BoatyardError):
    """The caller is known, and may not."""


class Unauthenticated(BoatyardError):
    """The caller is not known."""

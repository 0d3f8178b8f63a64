"""The ways something can fail. Pick one of these; the API edge maps each to one code."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Violation:
    """One thing wrong with a request: where, what, and what to do about it."""

    path: str
    message: str
    remedy: str = ""
    missing: bool = field(
        default=False, compare=False
    )  # nothing was given, where something must be

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text}; {self.remedy}" if self.remedy else text


class BoatyardError(Exception):
    """The base class of all our errors."""


class Refused(BoatyardError):
    """The request cannot be carried out as it is. Only its author can fix it, so it is never retried."""

    def __init__(self, message: str, *violations: Violation, reason: str = "Refused") -> None:
        super().__init__(message or "; ".join(str(violation) for violation in violations))
        self.violations = violations
        self.reason = reason


class Precondition(Refused):
    """The request is well formed, but what it is about is not in a state for it (in use, deleting)."""


class Exhausted(Refused):
    """A quota or a limit is used up."""


class Unavailable(BoatyardError):
    """Something outside did not answer or is not ready. Retried with growing delays."""

    def __init__(self, message: str, *, reason: str = "Unavailable") -> None:
        super().__init__(message)
        self.reason = reason


class NotFound(BoatyardError):
    """There is no such thing, or the caller may not know of it."""


class Exists(BoatyardError):
    """The id or name is taken."""


class Conflict(BoatyardError):
    """Somebody else changed the object since it was read: read it again."""


class LeaseLost(Conflict):
    """Another worker may hold this worker's lease; the result is discarded."""


class Denied(BoatyardError):
    """The caller is known and lacks the permission."""


class Unauthenticated(BoatyardError):
    """The caller is not known."""

"""With what a run that decides asks its order for steps. Made by `app` for one start of one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from boatyard.model.errors import Unavailable


@dataclass(frozen=True)
class Pass:
    """The way to the API, and a token that is good for this run only."""

    url: str
    token: str = field(repr=False)
    ca: str = ""  # certificates to trust there (PEM); empty: those that the system trusts
    expires: float = 0.0  # seconds since 1970; then the token is worth nothing


# (key of the run, attempt, seconds that it may take) to a pass; Unavailable where none can be made.
Passes = Callable[[str, int, float], Pass]


def no_passes(_key: str, _attempt: int, _seconds: float) -> Pass:
    raise Unavailable("roles that decide what is done cannot be run here", reason="NoPasses")

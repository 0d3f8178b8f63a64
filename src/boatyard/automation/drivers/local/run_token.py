"""The token with which a run requests steps of its order. Made by `app` for one start of one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from boatyard.model.errors import Unavailable


@dataclass(frozen=True)
class RunToken:
    """The address of the API, and a token that is valid for this run only."""

    url: str
    token: str = field(repr=False)
    ca: str = ""  # CA certificates for the API (PEM); empty: those of the system
    expires: float = 0.0  # when the token expires; seconds since 1970


# Takes the key of the run, its attempt and its time limit in seconds. Unavailable where no token can be made.
MakeRunToken = Callable[[str, int, float], RunToken]


def refuse_run_token(_key: str, _attempt: int, _seconds: float) -> RunToken:
    raise Unavailable("roles that decide what is done cannot be run here", reason="NoPasses")

"""Answers the automation port where another machine runs the roles. Made by `app` for a worker that shall run none.

What is kept of a run lies on the machine that runs it. A worker on another one can neither find it nor end it: it
says so, and a later look is made by the one that can.
"""

from __future__ import annotations

from collections.abc import Sequence

from boatyard.automation.port import RunEvent, RunWanted
from boatyard.model.outcome import Outcome, Owned, Waiting

ELSEWHERE = Waiting("the worker that runs roles has not looked yet", reason="Elsewhere")


class AutomationElsewhere:
    """Starts nothing, and calls nothing ended: both are for the machine that runs roles to say."""

    async def check_ready(self) -> None:
        """It is never asked to run anything."""

    async def caution(self) -> str:
        return ""

    async def ensure_run(self, key: str, spec: RunWanted) -> Outcome:
        return ELSEWHERE

    async def release_run(self, key: str) -> Outcome:
        return ELSEWHERE

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return ()

    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        return ()

    async def close(self) -> None:
        """Nothing is held."""

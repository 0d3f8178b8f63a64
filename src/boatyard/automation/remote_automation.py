"""The automation port in a worker that runs no roles, because another machine does. Made by `app`.

The records of a run are on the machine that runs it. A worker on another machine can neither find nor end it: it
answers Waiting, and the worker that runs roles looks later.
"""

from __future__ import annotations

from collections.abc import Sequence

from boatyard.automation.port import RunEvent, RunSpec
from boatyard.model.outcome import Outcome, OwnedObject, Waiting

WAITING_FOR_REMOTE_WORKER = Waiting(
    "the worker that runs roles has not looked yet", reason="Elsewhere"
)


class RemoteAutomation:
    """Starts nothing and never answers Done: only the machine that runs roles knows."""

    async def check_ready(self) -> None:
        """Always ready: it runs nothing."""

    async def get_isolation_warning(self) -> str:
        return ""

    async def ensure_run(self, key: str, spec: RunSpec) -> Outcome:
        return WAITING_FOR_REMOTE_WORKER

    async def release_run(self, key: str) -> Outcome:
        return WAITING_FOR_REMOTE_WORKER

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return ()

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        return ()

    async def close(self) -> None:
        """Does nothing: there are no connections."""

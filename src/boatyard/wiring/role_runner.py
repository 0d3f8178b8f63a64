"""Runs the roles of templates on this machine, for all hubs of this process. Used by `worker.py`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.limits import Limits, Pace
from boatyard.automation.drivers.local.passes import Passes, no_passes
from boatyard.automation.drivers.local.workshop import Workshop
from boatyard.automation.elsewhere import AutomationElsewhere
from boatyard.automation.port import Automation
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Unavailable
from boatyard.wiring.settings import Settings
from boatyard.wiring.template_folders import content_folders

RUNS = "automation"  # in the data directory: what is kept of runs
_FETCH_SECONDS = 20.0


class Runs(Protocol):
    """What a worker needs of a runner of roles."""

    def for_hub(self, hub_id: str) -> Automation:
        """The automation of a hub; the same object each time."""

    async def close(self) -> None:
        """Closes the runner. Runs that have started go on."""


class RolesElsewhere:
    """Runs no roles: another machine does."""

    def for_hub(self, hub_id: str) -> Automation:
        return AutomationElsewhere()

    async def close(self) -> None:
        """There is nothing to close."""


class RoleRunner:
    """Runs roles on this machine. Created in the ledger's event loop, where threads that start runs fetch content."""

    def __init__(self, ledger: Ledger, settings: Settings, passes: Passes = no_passes) -> None:
        self._folders = content_folders(ledger, settings)
        self._loop = asyncio.get_running_loop()
        pace = Pace(
            at_once=settings.runs_at_once,
            at_once_per_hub=settings.runs_per_hub,
            at_once_per_template=settings.runs_per_template,
            starts_per_minute_per_hub=settings.run_starts_per_minute,
            starts_per_minute_per_template=settings.run_starts_per_minute,
        )
        self.workshop = Workshop(
            settings.data_dir / RUNS,
            self._content,
            limits=Limits(longest=settings.role_minutes * 60),
            pace=pace,
            passes=passes,
        )
        self._made: dict[str, LocalAutomation] = {}

    def for_hub(self, hub_id: str) -> LocalAutomation:
        if hub_id not in self._made:
            self._made[hub_id] = LocalAutomation(self.workshop, hub_id)
        return self._made[hub_id]

    async def close(self) -> None:
        """Closes the runner. Runs that have started go on, and the next runner finds them."""
        for automation in self._made.values():
            await automation.close()
        await asyncio.to_thread(self.workshop.close)

    def _content(self, digest: str) -> Path:
        future = asyncio.run_coroutine_threadsafe(self._folders.folder(digest), self._loop)
        try:
            return future.result(_FETCH_SECONDS)
        except TimeoutError:
            future.cancel()
            raise Unavailable("the content of the template did not come in time") from None

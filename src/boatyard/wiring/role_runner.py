"""Runs the roles of templates on this machine, for all hubs of this process. Used by `worker.py`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.limits import RunLimits, RunRateLimits
from boatyard.automation.drivers.local.run_token import MakeRunToken, refuse_run_token
from boatyard.automation.drivers.local.runner import LocalRunner
from boatyard.automation.port import Automation
from boatyard.automation.remote_automation import RemoteAutomation
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Unavailable
from boatyard.wiring.settings import Settings
from boatyard.wiring.template_folders import content_folders

RUNS_FOLDER = "automation"  # in the data directory: what is kept of runs
_FETCH_SECONDS = 20.0


class RoleRunnerProtocol(Protocol):
    """What a worker needs of a runner of roles."""

    def for_hub(self, hub_id: str) -> Automation:
        """The automation of a hub; the same object each time."""

    async def close(self) -> None:
        """Closes the runner. Runs that have started go on."""


class NoRoleRunner:
    """Runs no roles: another machine does."""

    def for_hub(self, hub_id: str) -> Automation:
        return RemoteAutomation()

    async def close(self) -> None:
        """There is nothing to close."""


class RoleRunner:
    """Runs roles on this machine. Created in the ledger's event loop, where threads that start runs fetch content."""

    def __init__(
        self, ledger: Ledger, settings: Settings, make_run_token: MakeRunToken = refuse_run_token
    ) -> None:
        self._folders = content_folders(ledger, settings)
        self._loop = asyncio.get_running_loop()
        pace = RunRateLimits(
            max_runs=settings.runs_at_once,
            max_runs_per_hub=settings.runs_per_hub,
            max_runs_per_template=settings.runs_per_template,
            starts_per_minute_per_hub=settings.run_starts_per_minute,
            starts_per_minute_per_template=settings.run_starts_per_minute,
        )
        self.local_runner = LocalRunner(
            settings.data_dir / RUNS_FOLDER,
            self._fetch_content,
            limits=RunLimits(max_seconds=settings.role_minutes * 60),
            rate_limits=pace,
            make_run_token=make_run_token,
        )
        self._automations_by_hub: dict[str, LocalAutomation] = {}

    def for_hub(self, hub_id: str) -> LocalAutomation:
        if hub_id not in self._automations_by_hub:
            self._automations_by_hub[hub_id] = LocalAutomation(self.local_runner, hub_id)
        return self._automations_by_hub[hub_id]

    async def close(self) -> None:
        """Closes the runner. Runs that have started go on, and the next runner finds them."""
        for automation in self._automations_by_hub.values():
            await automation.close()
        await asyncio.to_thread(self.local_runner.close)

    def _fetch_content(self, digest: str) -> Path:
        future = asyncio.run_coroutine_threadsafe(self._folders.ensure_folder(digest), self._loop)
        try:
            return future.result(_FETCH_SECONDS)
        except TimeoutError:
            future.cancel()
            raise Unavailable("the content of the template did not come in time") from None

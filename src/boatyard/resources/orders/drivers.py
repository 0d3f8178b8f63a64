"""The drivers of one hub, as the order's steps use them. Built by app."""

from __future__ import annotations

from dataclasses import dataclass

from boatyard.automation.port import Automation
from boatyard.checks.port import Checks
from boatyard.infra.dns.port import Dns
from boatyard.infra.inventory.port import Inventory
from boatyard.infra.l2.port import L2
from boatyard.infra.l3.port import L3
from boatyard.platforms.port import Platform


@dataclass(frozen=True)
class HubDrivers:
    inventory: Inventory
    l2: L2
    l3: L3
    dns: Dns
    platform: Platform
    checks: Checks
    automation: Automation | None = (
        None  # runs the roles of templates; None when the hub has no such driver
    )

    async def check_ready(self) -> None:
        """Asks each driver in the order of the steps. The first that cannot work raises why."""
        for driver in (
            self.inventory,
            self.l2,
            self.l3,
            self.dns,
            self.platform,
            self.checks,
        ):
            await driver.check_ready()

"""A Boatyard that does nothing but ask for one run: `CONTENT DATA ANSIBLE KEY TEMPLATE`. Tests kill it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.environment import Environment
from boatyard.automation.drivers.local.workshop import Workshop
from boatyard.automation.port import RunWanted


async def main(content: Path, data: Path, ansible: Path, key: str, template: str) -> None:
    shop = Workshop(data, lambda digest: content / digest, environment=Environment(ansible))
    driver = LocalAutomation(shop, "hub")
    wanted = RunWanted(action="post_install", template=template, digest=template)
    while True:
        print(await driver.ensure_run(key, wanted), flush=True)
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(main(*map(Path, arguments[:3]), *arguments[3:]))

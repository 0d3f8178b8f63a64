"""A Boatyard that does nothing but ask for one run: `RUN_CONTENT DATA ANSIBLE KEY TEMPLATE`. Tests kill it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.runner import LocalRunner
from boatyard.automation.port import RunSpec


async def main(content: Path, data: Path, ansible: Path, key: str, template: str) -> None:
    shop = LocalRunner(
        data, lambda digest: content / digest, environment=AnsibleEnvironment(ansible)
    )
    driver = LocalAutomation(shop, "hub")
    wanted = RunSpec(action="post_install", template=template, digest=template)
    while True:
        print(await driver.ensure_run(key, wanted), flush=True)
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(main(*map(Path, arguments[:3]), *arguments[3:]))

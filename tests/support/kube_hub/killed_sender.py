"""Asks for a run in a process of its own and dies by SIGKILL at the place it is told (tests/hub/test_eda_crashes.py).

python -m tests.support.kube_hub.killed_sender '{"kubeconfig": …, "system": …, "settings": {…}, "key": …, "dies": …}'
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
from datetime import UTC, datetime
from typing import Any

from boatyard.automation.drivers.eda.driver import EdaAutomation
from boatyard.automation.drivers.eda.webhook import WebhookSender
from boatyard.automation.external_runs import ExternalRunStore
from boatyard.automation.port import RunSpec
from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig

PLACES = (
    "before the record",
    "after the record",
    "before the post",
    "after the post",
    "after the mark",
)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _plant(owner: Any, verb: str, *, before: bool) -> None:
    whole = getattr(owner, verb)

    async def planted(self: Any, *args: Any, **words: Any) -> Any:
        if before:
            _die()
        await whole(self, *args, **words)
        _die()

    setattr(owner, verb, planted)


async def main(arguments: dict[str, Any]) -> None:
    match arguments["dies"]:
        case "before the record":
            _plant(ExternalRunStore, "add", before=True)
        case "after the record":
            _plant(ExternalRunStore, "add", before=False)
        case "before the post":
            _plant(WebhookSender, "post_event", before=True)
        case "after the post":
            _plant(WebhookSender, "post_event", before=False)
        case "after the mark":
            _plant(ExternalRunStore, "change", before=False)
    driver = EdaAutomation(
        KubeClient(read_kubeconfig(arguments["kubeconfig"])),
        arguments["settings"],
        "hub-1",
        namespace=arguments["system"],
        now=lambda: datetime.now(UTC),
        new_secret=lambda: secrets.token_hex(32),
    )
    await driver.ensure_run(arguments["key"], RunSpec("act", "", values={"text": "{{ x }}"}))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))

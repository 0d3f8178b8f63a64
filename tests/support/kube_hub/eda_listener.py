"""Stands where a rulebook stands: takes events, and reports as a playbook does. For tests of the driver `eda`.

On purpose without the product's own signing: what is checked must not check itself.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from boatyard.automation.drivers.eda.driver import EdaAutomation
from boatyard.automation.external_runs import ExternalRunStore
from boatyard.kube.client import KubeClient
from boatyard.operator.callbacks import RunResultHandler, serve_run_results


@dataclass
class EdaEvent:
    action: str
    payload: dict[str, Any]
    headers: Mapping[str, str] = field(repr=False)

    @property
    def content(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(base64.b64decode(self.payload["boatyard"]["content"]))
        return found

    @property
    def run(self) -> str:
        return str(self.content["run"]["id"])

    async def report(self, body: object, **how: Any) -> tuple[int, Any]:
        return await report(self.content["callback"], body, **how)


async def report(
    callback: Mapping[str, str],
    body: object,
    *,
    method: str = "POST",
    secret: str = "",
    timestamp: str = "",
    signature: str | None = None,
) -> tuple[int, Any]:
    """The status and what was said. With `body` None nothing is sent."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    timestamp = timestamp or str(int(time.time()))
    signed = f"{timestamp}.".encode() + data
    key = (secret or callback["secret"]).encode()
    made = f"sha256={hmac.new(key, signed, hashlib.sha256).hexdigest()}"
    headers = {
        "X-Boatyard-Timestamp": timestamp,
        "X-Boatyard-Signature": made if signature is None else signature,
    }
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, callback["url"], data=data or None, headers=headers) as answer,
    ):
        said = await answer.read()
        return answer.status, json.loads(said) if said.startswith(b"{") else said.decode()


class EdaListener:
    """Answers every event with 200 unless its `status` is another."""

    def __init__(self) -> None:
        self.events: list[EdaEvent] = []
        self.status = 200
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        if self.status == 200:
            payload = await request.json()
            self.events.append(
                EdaEvent(request.match_info["action"], payload, dict(request.headers))
            )
        return web.Response(status=self.status)


@asynccontextmanager
async def listening() -> AsyncIterator[EdaListener]:
    listener = EdaListener()
    door = web.Application(client_max_size=2**24)
    door.router.add_post("/{action}", listener.take)
    runner = web.AppRunner(door, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        listener.url = f"http://{host}:{port}"
        yield listener
    finally:
        await runner.cleanup()


@dataclass
class EdaHarness:
    """A driver on a real API server, a listener for its events, and the door for results."""

    client: KubeClient
    system: str
    listener: EdaListener
    settings: dict[str, str]
    runs: ExternalRunStore
    door: str
    hub: str = "hub-1"
    ahead: float = 0.0  # seconds that the driver's clock is ahead

    def driver(self, **settings: str) -> EdaAutomation:
        """As another process would have it: it remembers nothing."""
        driver_settings = {
            name.replace("__", ".").replace("_", "-"): said for name, said in settings.items()
        }
        return EdaAutomation(
            self.client,
            {**self.settings, **driver_settings},
            self.hub,
            namespace=self.system,
            now=lambda: datetime.fromtimestamp(time.time() + self.ahead, UTC),
            new_secret=lambda: secrets.token_hex(32),
        )


@asynccontextmanager
async def eda_harness(client: KubeClient, system: str) -> AsyncIterator[EdaHarness]:
    runs = ExternalRunStore(client, system)
    door = RunResultHandler(runs, lambda: datetime.now(UTC))
    async with listening() as listener, serve_run_results("127.0.0.1:0", door) as port:
        address = f"http://127.0.0.1:{port}"
        settings = {
            "eda.url": listener.url,
            "eda.callback-url": address,
            "eda.per-second": "1000",
        }
        yield EdaHarness(client, system, listener, settings, runs, address)

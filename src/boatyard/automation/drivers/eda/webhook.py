"""Posts an event to the webhook of a rulebook. Called by the driver."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import aiohttp
import msgspec

from boatyard.automation.drivers.eda.settings import SECRET, URL, EdaSettings
from boatyard.automation.external_runs import ExternalRun
from boatyard.automation.port import RunSpec
from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import SECRETS
from boatyard.model.errors import NotFound, Refused, Unavailable

TIMEOUT_SECONDS = 5.0  # a port call must be short; the webhook answers before it runs anything
_DEFAULT_PORTS = {"http": 80, "https": 443}


def build_event(
    run: ExternalRun, spec: RunSpec, *, secret: str, callback_url: str
) -> dict[str, object]:
    """The event: the order as rulebooks know it, with our own part under `boatyard`.

    The playbooks read only its `content`. It is encoded, so that the values of tenants pass through Ansible as data;
    Ansible would evaluate plain text as a template.
    """
    metadata = spec.order.get("metadata")
    order_metadata: Mapping[str, object] = metadata if isinstance(metadata, Mapping) else {}
    content = {
        "run": {"id": run.id, "key": run.key, "action": run.action, "attempt": run.attempt},
        "order": {name: order_metadata.get(name) or "" for name in ("name", "namespace", "uid")},
        "callback": {"url": f"{callback_url}/automation/runs/{run.id}", "secret": secret},
        **spec.values,
    }
    encoded = base64.b64encode(msgspec.json.encode(content)).decode()
    boatyard_part = {
        "run": run.id,
        "action": run.action,
        "attempt": run.attempt,
        "content": encoded,
    }
    return {**spec.order, "boatyard": boatyard_part}


class WebhookSender:
    """Posts events. Reads the webhook's token and CA from a Secret on the hub, again for each event."""

    def __init__(self, client: KubeClient, namespace: str, settings: EdaSettings) -> None:
        self._client = client
        self._namespace = namespace
        self._settings = settings

    async def check_connection(self) -> None:
        """Unavailable when nothing listens at the address of the webhook. Sends nothing."""
        await self._read_credentials()
        parts = urlsplit(self._settings.url)
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                _, writer = await asyncio.open_connection(parts.hostname, port)
        except (OSError, TimeoutError) as error:
            raise _no_answer_error() from error
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def post_event(self, action: str, body: Mapping[str, object]) -> None:
        """Returns when the webhook has accepted the event. Unavailable when that is not known."""
        headers, tls = await self._read_credentials()
        headers["Content-Type"] = "application/json"
        address = f"{self._settings.url}/{action}"
        try:
            async with (
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
                ) as session,
                session.post(
                    address,
                    data=msgspec.json.encode(body),
                    headers=headers,
                    ssl=tls,
                    allow_redirects=False,
                ) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _no_answer_error() from error
        if not 200 <= status < 300:
            # Without the body of the response: a proxy in between may quote the token.
            raise Unavailable(
                f"the hub's automation answers {status} to {action}; look at {URL} and {SECRET}",
                reason="AutomationRefuses",
            )

    async def _read_credentials(self) -> tuple[dict[str, str], ssl.SSLContext | bool]:
        name = self._settings.secret
        if not name:
            return {}, True
        try:
            data = (await self._client.get(SECRETS, name, self._namespace)).get("data") or {}
        except NotFound:
            raise Unavailable(
                f"there is no Secret {self._namespace}/{name} ({SECRET})", reason="NoSecret"
            ) from None
        try:
            token = base64.b64decode(data.get("token", "")).decode("ascii").strip()
            authority = base64.b64decode(data.get("ca.crt", "")).decode("ascii")
            tls = ssl.create_default_context(cadata=authority) if authority else True
            if any(not " " < letter < "\x7f" for letter in token):
                raise ValueError
        except (ValueError, ssl.SSLError):
            # Not chained: the error may quote the secret.
            raise Refused(
                f"Secret {self._namespace}/{name} ({SECRET}): `token` or `ca.crt` cannot be read",
                reason="BadSettings",
            ) from None
        return ({"Authorization": f"Bearer {token}"} if token else {}), tls


def _no_answer_error() -> Unavailable:
    # Without the address: tenants read this.
    return Unavailable(
        f"the hub's automation does not answer; look at {URL}", reason="AutomationSilent"
    )

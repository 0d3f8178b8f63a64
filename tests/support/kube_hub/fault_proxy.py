"""A proxy between somebody and a kube-apiserver that misbehaves as told. For tests of faults.

Whoever has the kubeconfig of the proxy speaks to it as to the API server: TLS with a certificate of the same
authority, credentials passed on as they are (tokens; a client certificate cannot pass). What happens to each request is
one `Fault`; `heal` takes it away.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from aiohttp import web

from tests.support.control_plane import Authority, ControlPlane, free_port

REFUSED = "refused"  # every connection is closed at once
SILENT = (
    "silent"  # nothing is answered; what was asked meanwhile arrives when the way is free again
)

_NOT_PASSED_ON = ("host", "connection", "transfer-encoding", "content-length", "accept-encoding")
_NOT_PASSED_BACK = ("connection", "transfer-encoding", "content-length", "content-encoding")
_GONE = {"code": 410, "reason": "Expired", "message": "too old resource version"}


@dataclass(frozen=True)
class Fault:
    """What is wrong. All that is set happens together; as it stands, nothing is."""

    cut: str = ""  # REFUSED or SILENT
    latency: float = 0.0  # seconds, on every request and on every piece of a watch
    code: int = 0  # requests are answered with it, `share` of them
    share: float = 1.0
    late: bool = False  # half of those answers come after the request was carried out
    retry_after: int = 0
    watch_seconds: float = 0.0  # every watch is closed after so long
    gone: bool = False  # every watch is answered with an ERROR event 410


@dataclass(frozen=True)
class ProxiedRequest:
    """One request that came, and when by `time.monotonic`."""

    at: float
    method: str
    path: str
    watch: bool


Hook = Callable[[ProxiedRequest, bytes], None]


class FaultProxy:
    """`asked` are all requests that came since the start. `hook` is called with each before anything is done to it."""

    def __init__(self, plane: ControlPlane, seed: int = 1) -> None:
        self._plane = plane
        self._port = free_port()
        self._chance = random.Random(seed)
        self._fault = Fault()
        self._changed = asyncio.Event()
        self._held: set[asyncio.Task[None]] = set()
        self._transports: set[asyncio.Transport] = set()  # with a request under way
        self._watches: set[asyncio.Transport] = set()  # those of them that are watches
        self._deaf_until = 0.0
        self._session: aiohttp.ClientSession
        self.asked: list[ProxiedRequest] = []
        self.faulted = 0  # requests that something was done to
        self.hook: Hook | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, plane: ControlPlane, seed: int = 1) -> AsyncIterator[FaultProxy]:
        proxy = cls(plane, seed)
        trust = ssl.create_default_context(cadata=plane.ca.pem.decode())
        connector = aiohttp.TCPConnector(ssl=trust, limit=0)
        whole = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=whole) as proxy._session:
            server = web.Server(proxy._serve, handler_cancellation=True, access_log=None)
            runner = web.ServerRunner(server)
            await runner.setup()
            tls = server_tls(plane.ca)
            await web.TCPSite(runner, "127.0.0.1", proxy._port, ssl_context=tls).start()
            try:
                yield proxy
            finally:
                proxy.set(cut=REFUSED)
                for task in proxy._held:
                    task.cancel()
                await asyncio.gather(*proxy._held, return_exceptions=True)
                await runner.cleanup()
        await asyncio.sleep(0.05)  # the moment TLS takes to part

    def kubeconfig(self, direct: Mapping[str, Any]) -> dict[str, Any]:
        """The same credentials, by way of the proxy."""
        found: dict[str, Any] = json.loads(json.dumps(direct))
        for cluster in found["clusters"]:
            cluster["cluster"]["server"] = f"https://127.0.0.1:{self._port}"
        return found

    # --- what is wrong ---------------------------------------------------------------------------

    def set(self, **fault: Any) -> None:
        """From now on this is wrong, and nothing else. A cut ends or silences what is open, too."""
        self._fault = replace(Fault(), **fault)
        self._changed.set()
        self._changed = asyncio.Event()
        if self._fault.cut == REFUSED:
            self._hang_up(self._transports)
        if self._fault.gone or self._fault.watch_seconds:
            self._hang_up(self._watches)

    def heal(self) -> None:
        """All is well; what hung in a silent cut is carried out now, and whoever asked has to ask again."""
        was = self._fault.cut
        self.set()
        if was == SILENT:
            self._hang_up(self._transports)

    def silence_watches(self) -> None:
        """Those that are open say nothing any more, and nobody closes them; all else is served."""
        self._deaf_until = time.monotonic()

    def _hang_up(self, transports: set[asyncio.Transport]) -> None:
        for transport in list(transports):
            transport.abort()

    def count(self, since: float, until: float) -> int:
        """How many requests came in that time."""
        return sum(since <= one.at < until for one in self.asked)

    def most_per_second(self, since: float, until: float, window: float = 5.0) -> float:
        """The most requests per second in any window of that length."""
        times = [one.at for one in self.asked if since <= one.at < until]
        within = (sum(first <= one < first + window for one in times) for first in times)
        return max(within, default=0) / window

    # --- one request -----------------------------------------------------------------------------

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        watch = request.query.get("watch") == "true"
        body = await request.read()
        asked = ProxiedRequest(time.monotonic(), request.method, request.path, watch)
        self.asked.append(asked)
        if self.hook is not None:
            self.hook(asked, body)
        transport = request.transport
        assert transport is not None
        self._transports.add(transport)
        if watch:
            self._watches.add(transport)
        try:
            return await self._answer(request, body, watch=watch)
        except (aiohttp.ClientError, ConnectionError):
            transport.abort()  # the API server is away: so are we
            return web.Response(status=502)
        finally:
            self._transports.discard(transport)
            self._watches.discard(transport)

    async def _answer(
        self, request: web.BaseRequest, body: bytes, *, watch: bool
    ) -> web.StreamResponse:
        fault = self._fault
        if fault.cut or fault.latency or fault.code or (watch and fault != Fault()):
            self.faulted += 1
        if fault.cut == REFUSED:
            assert request.transport is not None
            request.transport.abort()
            return web.Response(status=502)
        if fault.cut == SILENT:
            if not watch:
                self._hold(request, body)
            await asyncio.Event().wait()  # until the client gives up, or we hang up
        if fault.latency:
            await asyncio.sleep(fault.latency)
        if watch and fault.gone:
            event = {"type": "ERROR", "object": {"kind": "Status", "status": "Failure", **_GONE}}
            return web.Response(text=json.dumps(event) + "\n", content_type="application/json")
        if fault.code and self._chance.random() < fault.share:
            if fault.late and self._chance.random() < 0.5:
                await self._send(request, body)
            return self._failure(fault)
        if watch:
            return await self._watch(request)
        code, headers, content = await self._send(request, body)
        return web.Response(status=code, headers=headers, body=content)

    def _failure(self, fault: Fault) -> web.Response:
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": fault.code,
            "reason": "TooManyRequests" if fault.code == 429 else "InternalError",
            "message": "so it was told",
        }
        headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
        return web.json_response(status, status=fault.code, headers=headers)

    def _hold(self, request: web.BaseRequest, body: bytes) -> None:
        """Carried out once the way is free: by then nobody waits for the answer."""

        async def later() -> None:
            while self._fault.cut:
                await self._changed.wait()
            with contextlib.suppress(aiohttp.ClientError):
                await self._send(request, body)

        task = asyncio.create_task(later())
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    def _forward(self, request: web.BaseRequest, body: bytes) -> Any:
        return self._session.request(
            request.method,
            f"{self._plane.url}{request.raw_path}",
            data=body or None,
            headers={k: v for k, v in request.headers.items() if k.lower() not in _NOT_PASSED_ON},
            allow_redirects=False,
        )

    async def _send(
        self, request: web.BaseRequest, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        async with self._forward(request, body) as answer:
            return answer.status, _headers(answer), await answer.read()

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        async with self._forward(request, b"") as answer:
            response = web.StreamResponse(status=answer.status, headers=_headers(answer))
            await response.prepare(request)
            end = time.monotonic() + (self._fault.watch_seconds or 3600.0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(end - time.monotonic()):
                    await self._pass_on(answer, response)
            return response

    async def _pass_on(self, answer: aiohttp.ClientResponse, to: web.StreamResponse) -> None:
        opened = time.monotonic()
        while piece := await answer.content.readany():
            if self._fault.latency:
                await asyncio.sleep(self._fault.latency)
            while self._fault.cut:
                await self._changed.wait()
            if opened < self._deaf_until:
                await asyncio.Event().wait()  # until the client gives up
            await to.write(piece)


def _headers(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {k: v for k, v in answer.headers.items() if k.lower() not in _NOT_PASSED_BACK}


def server_tls(ca: Authority) -> ssl.SSLContext:
    """What a server on this machine shows, signed by the authority."""
    certificate, key = ca.issue("fault-proxy", names=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    memory = os.memfd_create("fault-proxy")
    try:
        os.write(memory, certificate + b"\n" + key)
        context.load_cert_chain(f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)
    return context

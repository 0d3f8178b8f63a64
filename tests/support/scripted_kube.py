"""A Kubernetes API that answers from a script, one answer per request in turn, and remembers what was asked."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig


@dataclass(frozen=True)
class RecordedRequest:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    connection: int = 0


@dataclass(frozen=True)
class Says:
    """An answer with a body."""

    body: Any = field(default_factory=dict)
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    async def give(self, request: web.Request) -> web.StreamResponse:
        raw = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        headers = {"Content-Type": "application/json", **self.headers}
        return web.Response(status=self.code, body=raw, headers=headers)


@dataclass(frozen=True)
class Watches:
    """A stream of events, and how it goes on after the last one: ends, is cut, or hangs without a sign."""

    events: tuple[Any, ...] = ()
    then: str = "end"  # "end", "cut", "hang"

    async def give(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for event in self.events:
            raw = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
            # In two pieces: an event may come in any number of them.
            for piece in (raw[: len(raw) // 2], raw[len(raw) // 2 :]):
                await response.write(piece)
                await asyncio.sleep(0)
        if self.then == "hang":
            await asyncio.Event().wait()
        if self.then == "cut":
            assert request.transport is not None
            request.transport.abort()
        return response


@dataclass(frozen=True)
class Silence:
    """No answer at all: the request hangs, or its connection is cut."""

    cut: bool = False

    async def give(self, request: web.Request) -> web.StreamResponse:
        if self.cut:
            assert request.transport is not None
            request.transport.abort()
        await asyncio.Event().wait()
        raise AssertionError("never")


Answer = Says | Watches | Silence


def failure(code: int, reason: str = "", message: str = "", **more: Any) -> Says:
    """A Status object as the API server sends it; `retry` becomes the Retry-After header."""
    headers = {"Retry-After": str(more.pop("retry"))} if "retry" in more else {}
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return Says({**status, "reason": reason, "message": message, **more}, code, headers)


def thing(name: str, version: int, **more: Any) -> dict[str, Any]:
    about = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, **more}


def event(type_: str, name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"type": type_, "object": thing(name, version, **more)}


def bookmark(version: int, *, initial: bool = False) -> dict[str, Any]:
    about: dict[str, Any] = {"resourceVersion": str(version)}
    if initial:
        about["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"type": "BOOKMARK", "object": {"kind": "ConfigMap", "metadata": about}}


def gone() -> dict[str, Any]:
    """How a real server says that a watch starts too far back: HTTP 200 and this event."""
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    return {"type": "ERROR", "object": status}


def listing(version: int, *items: Any, more: str = "") -> Says:
    about = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return Says({"kind": "ConfigMapList", "metadata": about, "items": list(items)})


class ScriptedKube:
    def __init__(self) -> None:
        self.asked: list[RecordedRequest] = []
        self.url = ""
        self.pauses: list[float] = []
        """What the client of `connected` waited between tries."""
        self._answers: list[Answer] = []
        self._asked_more = asyncio.Condition()

    def tell(self, *answers: Answer) -> None:
        """One answer per request to come. A request beyond the last hangs."""
        self._answers += answers

    async def until_asked(self, count: int) -> None:
        """Returns once so many requests have come in."""
        async with self._asked_more:
            await asyncio.wait_for(
                self._asked_more.wait_for(lambda: len(self.asked) >= count), timeout=10
            )

    async def handle(self, request: web.Request) -> web.StreamResponse:
        seen = RecordedRequest(
            request.method,
            request.raw_path.partition("?")[0],
            dict(request.query),
            request.headers,
            await request.read(),
            id(request.transport),
        )
        async with self._asked_more:
            self.asked.append(seen)
            self._asked_more.notify_all()
        answer = self._answers.pop(0) if self._answers else Silence()
        return await answer.give(request)


@asynccontextmanager
async def scripted_kube(tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedKube]:
    server = ScriptedKube()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"{'https' if tls else 'http'}://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(**more: Any) -> AsyncIterator[tuple[ScriptedKube, KubeClient]]:
    """A scripted server and a client of it, whose pauses between tries take no time."""
    async with scripted_kube() as server:

        async def pause(seconds: float) -> None:
            server.pauses.append(seconds)

        client = KubeClient(KubeConfig(server.url), pause=pause, **more)
        try:
            yield server, client
        finally:
            await client.close()


async def until(true: Callable[[], object]) -> None:
    """Lets everybody else go on until something in this process is so."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - what is watched has no event to wait for
            await asyncio.sleep(0)

"""The door for kubelet and Prometheus: /healthz, /readyz, /metrics. Started by the operator's run."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from boatyard.model.errors import Refused
from boatyard.operator.metrics import Metrics

Answer = Callable[[], str]  # empty while all is well, else why not


@asynccontextmanager
async def open_probes(
    address: str, *, healthy: Answer, ready: Answer, metrics: Metrics
) -> AsyncIterator[int]:
    """Answers on HOST:PORT until left; the port. Refused when the address cannot be had."""

    async def healthz(_: web.Request) -> web.Response:
        return _told(healthy())

    async def readyz(_: web.Request) -> web.Response:
        return _told(ready())

    async def shown(_: web.Request) -> web.Response:
        return web.Response(text=metrics.text(), content_type="text/plain")

    door = web.Application()
    door.router.add_get("/healthz", healthz)
    door.router.add_get("/readyz", readyz)
    door.router.add_get("/metrics", shown)
    async with listen(address, door, what="probes") as port:
        yield port


@asynccontextmanager
async def listen(address: str, door: web.Application, *, what: str) -> AsyncIterator[int]:
    """Opens the door on HOST:PORT until left; the port. Refused when the address cannot be had."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise Refused(f"{address!r} is no address for {what}; give HOST:PORT")
    runner = web.AppRunner(door, access_log=None)
    await runner.setup()
    try:
        listening = _listen(host.strip("[]"), int(port), address, what)
        await web.SockSite(runner, listening).start()  # closes it at the end
        yield int(listening.getsockname()[1])
    finally:
        await runner.cleanup()


def _listen(host: str, port: int, address: str, what: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise Refused(f"{what} cannot listen on {address}: {error.strerror}") from error
    return made


def _told(why_not: str) -> web.Response:
    return web.Response(text=f"{why_not or 'ok'}\n", status=503 if why_not else 200)

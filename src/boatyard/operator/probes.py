"""The HTTP server for kubelet and Prometheus: /healthz, /readyz, /metrics. Started by the operator's run."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from boatyard.model.errors import Refused
from boatyard.operator.metrics import Metrics

FindProblem = Callable[[], str]  # empty while all is well, else the problem


@asynccontextmanager
async def serve_probes(
    address: str, *, healthy: FindProblem, ready: FindProblem, metrics: Metrics
) -> AsyncIterator[int]:
    """Serves probes on HOST:PORT while the block runs. Yields the port. Refused when the address cannot be bound."""

    async def healthz(_: web.Request) -> web.Response:
        return _make_response(healthy())

    async def readyz(_: web.Request) -> web.Response:
        return _make_response(ready())

    async def serve_metrics(_: web.Request) -> web.Response:
        return web.Response(text=metrics.render(), content_type="text/plain")

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", serve_metrics)
    async with serve_app(address, app, purpose="probes") as port:
        yield port


@asynccontextmanager
async def serve_app(address: str, app: web.Application, *, purpose: str) -> AsyncIterator[int]:
    """Serves `app` on HOST:PORT while the block runs. Yields the port. Refused when the address cannot be bound."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise Refused(f"{address!r} is no address for {purpose}; give HOST:PORT")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        listener = _bind_socket(host.strip("[]"), int(port), address, purpose)
        await web.SockSite(runner, listener).start()  # closes the listener at the end
        yield int(listener.getsockname()[1])
    finally:
        await runner.cleanup()


def _bind_socket(host: str, port: int, address: str, purpose: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise Refused(f"{purpose} cannot listen on {address}: {error.strerror}") from error
    return listener


def _make_response(problem: str) -> web.Response:
    return web.Response(text=f"{problem or 'ok'}\n", status=503 if problem else 200)

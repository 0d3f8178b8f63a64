"""uvicorn in the event loop of the process that started it. Called by the REST server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from boatyard.model.errors import Unavailable


class HttpServer:
    def __init__(self, app: Any, address: str, tls: Any | None) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            h11_max_incomplete_event_size=64 * 1024,
            timeout_graceful_shutdown=1,
            ssl_certfile=str(tls.certificate) if tls is not None else None,
            ssl_keyfile=str(tls.key) if tls is not None else None,
        )
        self._server = _UvicornServer(config)
        self._serve_task: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Starts to listen and returns the port."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # asyncio switches Nagle off only for sockets that say TCP: an answer in two writes would
        # wait 40 ms for the acknowledgement of the first.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._host, self._port))
        except OSError as error:
            listener.close()
            raise Unavailable(f"cannot listen on {self._host}:{self._port}: {error}") from error
        port: int = listener.getsockname()[1]
        self._serve_task = asyncio.create_task(
            self._server.serve(sockets=[listener]), name="rest server"
        )
        while not self._server.started:
            if self._serve_task.done():
                self._serve_task.result()
                raise Unavailable(f"cannot serve on {self._host}:{port}")
            await asyncio.sleep(0.005)
        return port

    async def stop(self, grace: float) -> None:
        if self._serve_task is None:
            return
        self._server.config.timeout_graceful_shutdown = max(1, round(grace))
        self._server.should_exit = True
        await self._serve_task


class _UvicornServer(uvicorn.Server):
    """Leaves signal handlers alone: signals are handled by the process, not by its HTTP server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

"""How the REST door holds its connections."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from boatyard.api.http_server import HttpServer


async def answer(_scope: Any, receive: Any, send: Any) -> None:
    await receive()
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


async def test_the_second_half_of_an_answer_does_not_wait_for_the_first_to_be_acknowledged() -> (
    None
):
    server = HttpServer(answer, "127.0.0.1:0", None)
    port = await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        (connection,) = server._server.server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    finally:
        writer.close()
        await server.stop(0)

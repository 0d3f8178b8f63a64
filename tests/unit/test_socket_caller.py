"""A call to another process of ours that is lost on the way is told as such."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from boatyard.model.errors import Unavailable
from boatyard.processes.socket_client import SocketClient
from boatyard.processes.socket_protocol import FrameDecoder, decode_call, encode_response


@pytest.fixture
async def socket_path() -> AsyncIterator[Path]:
    """A process that answers `echo`, and hangs up at any other verb."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameDecoder()
        while data := await reader.read(4096):
            for frame in frames.feed(data):
                number, verb, arguments = decode_call(frame)
                if verb != "echo":
                    writer.close()
                    return
                writer.write(encode_response(number, arguments, None))
        writer.close()

    with tempfile.TemporaryDirectory(prefix="by-", dir="/tmp") as folder:
        path = Path(folder) / "socket"
        server = await asyncio.start_unix_server(serve, path)
        yield path
        server.close()
        await server.wait_closed()


async def test_a_call_whose_connection_breaks_is_unavailable_and_the_next_connects_anew(
    socket_path: Path,
) -> None:
    caller = SocketClient(socket_path, timeout=30)
    assert await caller.call("echo", word="a") == {"word": "a"}

    with pytest.raises(Unavailable, match="was lost"):
        await caller.call("hang up")

    assert await caller.call("echo", word="b") == {"word": "b"}
    await caller.close()

"""The server of our protocol: private to its user, outlived by no socket, and no answer is lost at its end."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from boatyard.model.errors import Refused, Unavailable
from boatyard.processes.serving import ServedConnection, SocketServer
from boatyard.processes.socket_client import SocketClient
from boatyard.processes.socket_protocol import decode_call, encode_call, encode_response


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="by-", dir="/tmp") as folder:
        yield Path(folder) / "socket"


@pytest.fixture
async def server(path: Path) -> AsyncIterator[SocketServer]:
    server = SocketServer(path)
    yield server
    server.close()
    await asyncio.sleep(0)  # transports tell in the next iteration that they are closed


def echo(connection: ServedConnection, payload: bytes) -> None:
    number, _, arguments = decode_call(payload)
    connection.send(encode_response(number, arguments, None))


async def test_calls_of_several_clients_are_answered(path: Path, server: SocketServer) -> None:
    await server.listen(echo)
    callers = [SocketClient(path, timeout=30) for _ in range(3)]

    answers = await asyncio.gather(
        *(caller.call("echo", number=number) for number, caller in enumerate(callers * 2))
    )

    assert answers == [{"number": number} for number in range(6)]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for caller in callers:
        await caller.close()


async def test_a_socket_of_a_killed_server_is_replaced_and_ours_is_removed(
    path: Path, server: SocketServer
) -> None:
    os.mknod(path)
    await server.listen(echo)
    assert stat.S_ISSOCK(os.stat(path).st_mode)

    server.close()
    assert os.listdir(path.parent) == []

    os.mknod(path)  # of the next server
    server.close()
    assert os.listdir(path.parent) == ["socket"]


async def test_what_was_called_before_listening_stopped_is_answered(
    path: Path, server: SocketServer
) -> None:
    calls: asyncio.Queue[tuple[ServedConnection, bytes]] = asyncio.Queue()
    await server.listen(lambda connection, payload: calls.put_nowait((connection, payload)))
    caller = SocketClient(path, timeout=30)
    answer = asyncio.create_task(caller.call("echo", word="a"))
    call = await calls.get()

    server.stop_listening()
    echo(*call)
    server.close()  # what was sent in this iteration leaves too

    assert await answer == {"word": "a"}
    with pytest.raises(Unavailable):
        await caller.call("echo", word="b")
    await caller.close()


async def test_a_client_accepted_just_before_listening_stopped_is_cut_off(
    path: Path, server: SocketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_connection = ServedConnection.connection_made

    def at_the_end(connection: ServedConnection, transport: asyncio.BaseTransport) -> None:
        server.stop_listening()
        make_connection(connection, transport)

    monkeypatch.setattr(ServedConnection, "connection_made", at_the_end)
    await server.listen(echo)
    caller = SocketClient(path, timeout=30)

    with pytest.raises(Unavailable, match="was lost"):
        await caller.call("echo", word="a")

    await caller.close()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param(b"\0\0\0\1\xc1", id="a frame that is no call"),
    ],
)
async def test_a_client_that_does_not_speak_the_protocol_is_cut_off_alone(
    path: Path, server: SocketServer, data: bytes
) -> None:
    await server.listen(echo)
    caller = SocketClient(path, timeout=30)
    reader, writer = await asyncio.open_unix_connection(path)

    writer.write(encode_call(1, "echo", {}) + data)

    answers = await reader.read()
    assert answers == encode_response(1, {}, None), "the good call first"
    assert await caller.call("echo", word="a") == {"word": "a"}
    writer.close()
    await caller.close()


def test_a_path_too_long_for_the_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="shorter"):
        SocketServer(tmp_path / ("x" * 120))

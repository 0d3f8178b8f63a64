"""Client of another process of ours over its unix socket: one connection, many concurrent calls."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

from boatyard.model.errors import Unavailable
from boatyard.processes.socket_protocol import (
    BadFrame,
    FrameDecoder,
    check_socket_path,
    decode_response,
    encode_call,
)

CALL_TIMEOUT_SECONDS = 10.0


class SocketClient:
    """Connects at the first call, and again after the connection was lost.

    A call that gets no answer in time, or whose connection breaks, raises Unavailable: its effect may
    have happened. No call is repeated automatically.
    """

    peer_name = "the process"  # the name of the other process in error texts

    def __init__(self, socket_path: Path, *, timeout: float = CALL_TIMEOUT_SECONDS) -> None:
        check_socket_path(socket_path)
        self._path = socket_path
        self._timeout = timeout
        self._connection: _Connection | None = None
        self._connect_lock = asyncio.Lock()
        self._call_numbers = itertools.count(1)

    async def call(self, verb: str, /, **args: Any) -> Any:
        try:
            async with asyncio.timeout(self._timeout):
                connection = self._connection
                if connection is None or connection.lost:
                    connection = await self._connect()
                return await connection.call(next(self._call_numbers), verb, args)
        except TimeoutError as error:
            raise Unavailable(
                f"{self.peer_name} did not answer {verb} in {self._timeout:g} s"
            ) from error

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> _Connection:
        async with self._connect_lock:
            if self._connection is not None and not self._connection.lost:
                return self._connection
            try:
                _, connection = await asyncio.get_running_loop().create_unix_connection(
                    lambda: _Connection(self.peer_name), str(self._path)
                )
            except OSError as error:
                raise Unavailable(
                    f"{self.peer_name} cannot be reached at {self._path}: {error.strerror or error}"
                ) from error
            self._connection = connection
            return connection


class _Connection(asyncio.Protocol):
    """Sends all calls of one event-loop iteration in one write; matches answers to callers by number."""

    def __init__(self, peer: str) -> None:
        self.lost = False
        self._peer_name = peer
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._frames = FrameDecoder()
        self._unsent_frames: list[bytes] = []
        self._pending_calls: dict[int, asyncio.Future[Any]] = {}
        self._transport: asyncio.Transport | None = None

    async def call(self, number: int, verb: str, args: dict[str, Any]) -> Any:
        caller = self._pending_calls[number] = self._loop.create_future()
        if not self._unsent_frames:
            self._loop.call_soon(self._flush)
        self._unsent_frames.append(encode_call(number, verb, args))
        try:
            return await caller
        finally:
            self._pending_calls.pop(number, None)

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            await self._closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._transport = None
        for caller in self._pending_calls.values():
            if not caller.done():
                caller.set_exception(Unavailable(f"the connection to {self._peer_name} was lost"))
        if not self._closed.done():
            self._closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._frames.feed(data):
                self._deliver_response(*decode_response(payload))
        except BadFrame:
            if self._transport is not None:
                self._transport.abort()

    def _deliver_response(self, number: int, value: Any, error: BaseException | None) -> None:
        caller = self._pending_calls.get(number)
        if caller is None or caller.done():
            return  # the caller has given up waiting
        if error is not None:
            caller.set_exception(error)
        else:
            caller.set_result(value)

    def _flush(self) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(self._unsent_frames))
        self._unsent_frames.clear()

"""Client of another process of ours over its unix socket: one connection, many concurrent calls."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

from boatyard.model.errors import Unavailable
from boatyard.processes.wire import BadFrame, Frames, check_socket_path, decode_answer, encode_call

TIMEOUT = 10.0


class SocketCaller:
    """Connects at the first call, and again after the connection was lost.

    A call that gets no answer in time, or whose connection breaks, raises Unavailable: its effect may
    have happened. No call is repeated automatically.
    """

    what = "the process"  # the name of the other process in error texts

    def __init__(self, socket_path: Path, *, timeout: float = TIMEOUT) -> None:
        check_socket_path(socket_path)
        self._path = socket_path
        self._timeout = timeout
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()
        self._numbers = itertools.count(1)

    async def call(self, verb: str, /, **args: Any) -> Any:
        try:
            async with asyncio.timeout(self._timeout):
                connection = self._connection
                if connection is None or connection.lost:
                    connection = await self._connect()
                return await connection.call(next(self._numbers), verb, args)
        except TimeoutError as error:
            raise Unavailable(
                f"{self.what} did not answer {verb} in {self._timeout:g} s"
            ) from error

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> _Connection:
        async with self._connecting:
            if self._connection is not None and not self._connection.lost:
                return self._connection
            try:
                _, connection = await asyncio.get_running_loop().create_unix_connection(
                    lambda: _Connection(self.what), str(self._path)
                )
            except OSError as error:
                raise Unavailable(
                    f"{self.what} cannot be reached at {self._path}: {error.strerror or error}"
                ) from error
            self._connection = connection
            return connection


class _Connection(asyncio.Protocol):
    """Sends all calls of one event-loop iteration in one write; matches answers to callers by number."""

    def __init__(self, peer: str) -> None:
        self.lost = False
        self._what = peer
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._frames = Frames()
        self._outgoing: list[bytes] = []
        self._callers: dict[int, asyncio.Future[Any]] = {}
        self._transport: asyncio.Transport | None = None

    async def call(self, number: int, verb: str, args: dict[str, Any]) -> Any:
        caller = self._callers[number] = self._loop.create_future()
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(encode_call(number, verb, args))
        try:
            return await caller
        finally:
            self._callers.pop(number, None)

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
        for caller in self._callers.values():
            if not caller.done():
                caller.set_exception(Unavailable(f"the connection to {self._what} was lost"))
        if not self._closed.done():
            self._closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._frames.feed(data):
                self._answer(*decode_answer(payload))
        except BadFrame:
            if self._transport is not None:
                self._transport.abort()

    def _answer(self, number: int, value: Any, error: BaseException | None) -> None:
        caller = self._callers.get(number)
        if caller is None or caller.done():
            return  # the caller has given up waiting
        if error is not None:
            caller.set_exception(error)
        else:
            caller.set_result(value)

    def _flush(self) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

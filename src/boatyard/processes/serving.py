"""Server of our own protocol on a unix socket. Used by the twin and the keeper; `calling` is its client."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from boatyard.processes.socket_protocol import BadFrame, FrameDecoder, check_socket_path

logger = logging.getLogger(__name__)

OnCall = Callable[
    ["ServedConnection", bytes], None
]  # may raise BadFrame, which ends the connection


class SocketServer:
    """Listens on one path, for our own user only, and hands each call to `on_call` with its connection.

    The caller holds a lock that allows one server per path: a socket that is there is one of a killed server.
    """

    def __init__(self, socket_path: Path) -> None:
        check_socket_path(socket_path)
        self._path = socket_path
        self._listener: asyncio.Server | None = None
        self._connections: set[ServedConnection] = set()

    async def listen(self, on_call: OnCall) -> None:
        self._path.unlink(missing_ok=True)
        self._listener = await asyncio.get_running_loop().create_unix_server(
            lambda: ServedConnection(on_call, self._made, self._connections.discard),
            path=str(self._path),
        )
        os.chmod(self._path, 0o600)

    def stop_listening(self) -> None:
        """Accepts no more connections and removes the socket. Calls under way can still be answered."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Stops listening, sends what is on its way out, and closes all connections."""
        self.stop_listening()
        for connection in list(self._connections):
            connection.close()

    def _made(self, connection: ServedConnection) -> None:
        self._connections.add(connection)
        if self._listener is None:  # accepted just before the listener closed
            connection.abort()


class ServedConnection(asyncio.Protocol):
    """The connection of one client. Answers of one iteration of the event loop leave in one write."""

    def __init__(
        self,
        on_call: OnCall,
        on_made: Callable[[ServedConnection], None],
        on_lost: Callable[[ServedConnection], None],
    ) -> None:
        self._on_call = on_call
        self._on_made = on_made
        self._on_lost = on_lost
        self._frames = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._on_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._on_lost(self)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._frames.feed(data):
                self._on_call(self, payload)
        except BadFrame as error:
            logger.warning("client does not speak our protocol", extra={"what": str(error)})
            self.close()

    def send(self, answer: bytes) -> None:
        """Sends an encoded answer; nothing when it is empty or the client has gone."""
        if self._transport is None or not answer:
            return
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(answer)

    def close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        if self._transport is not None and self._outgoing:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

"""A minimal HTTP client for heartbeats, over a few connections of its own. Used by the tender.

A thousand nodes send a hundred heartbeats a second, all day. Through the Kubernetes client each costs three times the
CPU, nearly all of it for generality that a heartbeat does not need. This is only an optimisation: for anything but a
plain success it returns None, and the caller repeats the request through the client, which handles errors.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import msgspec

from boatyard.kube.config import KubeConfig
from boatyard.kube.credentials import CredentialSource
from boatyard.kube.transport import make_tls_context
from boatyard.model.errors import BoatyardError

CONNECTIONS = 16
_JSON = "Content-Type: application/json\r\nContent-Length: "
_END = b"\r\n\r\n"
_LENGTH = b"\r\nContent-Length: "
_UNAUTHORIZED = b"HTTP/1.1 401"


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _WrittenObject(msgspec.Struct):
    metadata: _Metadata


_DECODER = msgspec.json.Decoder(_WrittenObject)


class HeartbeatClient:
    """Works only with a server given by host and port and a user with a certificate, as in our own clusters."""

    def __init__(self, config: KubeConfig, *, agent: str, timeout: float = 5.0) -> None:
        self._config = config
        self._timeout = timeout
        self._idle_connections: list[_Connection] = []
        self._connection_limit = asyncio.Semaphore(CONNECTIONS)
        server = urlsplit(config.server)
        self._host, self._port = server.hostname or "", server.port or 443
        self._head = f"User-Agent: {agent}\r\nHost: {server.netloc}\r\n{_JSON}".encode()
        self._is_usable = (
            server.scheme == "https"
            and not server.path.strip("/")
            and bool(config.certificate or config.certificate_file)
            and not (config.token or config.token_file or config.impersonate_user)
        )

    async def put(self, path: str, body: bytes) -> str | None:
        """Writes an object. Returns its new resource version; None when it is not known to be written."""
        if not self._is_usable:
            return None
        head = b"PUT %b HTTP/1.1\r\n%b%d\r\n\r\n" % (path.encode(), self._head, len(body))
        try:
            async with self._connection_limit, asyncio.timeout(self._timeout):
                connection = await self._get_connection()
                answer = await connection.send_request(head + body)
                if answer.startswith(_UNAUTHORIZED):
                    connection.close()  # it was opened with a certificate that has expired since
                if not connection.lost:
                    self._idle_connections.append(connection)
        except (TimeoutError, OSError, BoatyardError):
            return None
        return _version(answer)

    def close(self) -> None:
        for connection in self._idle_connections:
            connection.close()
        self._idle_connections.clear()

    async def _get_connection(self) -> _Connection:
        while self._idle_connections:
            connection = self._idle_connections.pop()
            if not connection.lost:
                return connection
        credentials = await CredentialSource(self._config).get_credential()
        context = await asyncio.to_thread(
            make_tls_context, credentials, insecure=self._config.insecure
        )
        _, new_connection = await asyncio.get_running_loop().create_connection(
            _Connection,
            self._host,
            self._port,
            ssl=context,
            server_hostname=self._config.tls_server_name or self._host,
        )
        return new_connection


class _Connection(asyncio.Protocol):
    """One HTTP connection, for one request at a time. A cancelled request closes it."""

    def __init__(self) -> None:
        self.lost = False
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._waiter: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None

    async def send_request(self, request: bytes) -> bytes:
        """Sends a request and returns the whole response with its head. OSError when the connection ends before."""
        if self._transport is None or self.lost:
            raise ConnectionResetError
        self._waiter = self._loop.create_future()
        self._transport.write(request)
        try:
            return await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._waiter = None

    def close(self) -> None:
        self.lost = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        self._buffer = buffer = self._buffer + data if self._buffer else data
        end = buffer.find(_END)
        if end < 0:
            return
        position = buffer.find(_LENGTH, 0, end)
        if position < 0 or self._waiter is None or self._waiter.done():
            self.close()  # an unreadable response, or one without a request
            return
        position += len(_LENGTH)
        length = int(buffer[position : buffer.index(b"\r", position)])
        if len(buffer) >= end + len(_END) + length:
            self._buffer = b""
            self._waiter.set_result(buffer)


def _version(answer: bytes) -> str | None:
    if not answer.startswith(b"HTTP/1.1 200"):
        return None
    try:
        body = answer[answer.index(_END) + len(_END) :]
        return _DECODER.decode(body).metadata.resource_version
    except msgspec.MsgspecError:
        return None

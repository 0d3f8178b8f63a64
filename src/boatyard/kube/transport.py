"""Sends one request and returns its response: sessions, TLS, credentials. Called by the client, which retries."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlencode

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from boatyard.kube.circuit_breaker import CircuitBreaker
from boatyard.kube.config import KubeConfig
from boatyard.kube.credentials import Credential, CredentialSource, Now, wall_clock
from boatyard.model.errors import Refused, Unavailable

Query = Mapping[str, str]
MOST_CONNECTIONS = 32
MOST_WATCHES = 128
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True)
class KubeResponse:
    code: int
    headers: CIMultiDictProxy[str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class KubeRequest:
    """A request as it goes over the wire."""

    method: str
    path: str
    query: Query = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    content_type: str = "application/json"
    accept: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_secret(self) -> bool:
        """Whether the request is about a Secret or a token: then error texts must not quote contents."""
        return "/secrets" in self.path or self.path.endswith("/token")


@lru_cache(maxsize=256)
def _encode_query(query: tuple[tuple[str, str], ...]) -> str:
    """The query string. Cached: most queries are one of a few."""
    return urlencode(query)


class ConnectionCut(Unavailable):
    """The connection was lost; the request may or may not have been carried out."""


class Transport:
    """Sends requests to one API server. Opens its connections at the first request, within the running loop."""

    def __init__(
        self,
        config: KubeConfig,
        *,
        agent: str,
        timeout: float,
        now: Now = wall_clock,
        plugin_seconds: float = 30.0,
        circuit_breaker: CircuitBreaker | None = None,
    ) -> None:
        self.config = config
        self._circuit_breaker = circuit_breaker
        self._agent = agent
        self._timeout = timeout
        self._credentials = CredentialSource(config, now=now, plugin_seconds=plugin_seconds)
        self._sessions: tuple[aiohttp.ClientSession, aiohttp.ClientSession] | None = None
        self._tls: tuple[Credential, ssl.SSLContext] | None = None
        self._streams: set[aiohttp.ClientResponse] = set()
        self.closed = asyncio.Event()

    async def exchange(self, request: KubeRequest) -> KubeResponse:
        """The server's response, whatever its code. After a 401, renews the credential and sends the request once more.

        Unavailable when there is no response within the timeout, Cut when the connection is lost.
        """
        proof = await self._credentials.get_credential()
        response = await self._exchange_once(request, proof)
        if response.code == 401 and await self._credentials.renew(proof):
            response = await self._exchange_once(request, await self._credentials.get_credential())
        return response

    async def _exchange_once(self, request: KubeRequest, proof: Credential) -> KubeResponse:
        with self._through_circuit_breaker(request) as record_status, self._map_errors(request):
            async with (
                asyncio.timeout(self._timeout),
                await self._send(request, proof, watch=False) as http_response,
            ):
                response = KubeResponse(
                    http_response.status, http_response.headers, await http_response.read()
                )
                record_status(response.code)
                return response

    @asynccontextmanager
    async def stream(
        self, request: KubeRequest, *, silence: float
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """The code of the response, and its body in pieces as they arrive.

        Iterating raises Unavailable when nothing arrives for `silence` seconds or the connection is lost.
        """
        proof = await self._credentials.get_credential()
        async with contextlib.AsyncExitStack() as stack:
            http_response = await self._open_stream(stack, request, proof)
            if http_response.status == 401 and await self._credentials.renew(proof):
                http_response.close()
                proof = await self._credentials.get_credential()
                http_response = await self._open_stream(stack, request, proof)
            self._streams.add(http_response)
            stack.callback(self._streams.discard, http_response)
            yield http_response.status, self._read_pieces(http_response, request, silence)

    async def close(self) -> None:
        """Ends all requests and streams under way with Unavailable. May be called twice."""
        self.closed.set()
        sessions, self._sessions = self._sessions, None
        # Closing a session does not wake a reader that waits for the next piece.
        for http_response in self._streams:
            http_response.content.set_exception(
                ConnectionCut("the client was closed", reason="Closed")
            )
        for session in sessions or ():
            await session.close()

    async def _open_stream(
        self, stack: contextlib.AsyncExitStack, request: KubeRequest, proof: Credential
    ) -> aiohttp.ClientResponse:
        with self._through_circuit_breaker(request) as record_status, self._map_errors(request):
            async with asyncio.timeout(self._timeout):
                exchange = await self._send(request, proof, watch=True)
                http_response = await stack.enter_async_context(exchange)
                record_status(http_response.status)
                return http_response

    async def _read_pieces(
        self, http_response: aiohttp.ClientResponse, request: KubeRequest, silence: float
    ) -> AsyncIterator[bytes]:
        while True:
            with self._map_errors(request):
                try:
                    async with asyncio.timeout(silence):
                        piece = await http_response.content.readany()
                except (
                    RuntimeError
                ) as error:  # raised by aiohttp after we closed the session ourselves
                    if not self.closed.is_set():
                        raise
                    raise ConnectionCut(
                        f"{request}: the client was closed", reason="Closed"
                    ) from error
            if not piece:
                return
            yield piece

    async def _send(
        self, request: KubeRequest, proof: Credential, *, watch: bool
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        config = self.config
        headers = CIMultiDict({"Accept": request.accept})
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if proof.token:
            headers["Authorization"] = f"Bearer {proof.token}"
        if config.impersonate_user:
            headers["Impersonate-User"] = config.impersonate_user
        for group in config.impersonate_groups:
            headers.add("Impersonate-Group", group)
        tls = await self._get_tls_context(proof) if config.server.startswith("https:") else True
        session = self._get_session(watch=watch)
        return session.request(
            request.method,
            self._make_url(request),
            data=request.body,
            headers=headers,
            ssl=tls,
            server_hostname=config.tls_server_name or None,
            allow_redirects=False,  # the credential must not reach another server
        )

    def _make_url(self, request: KubeRequest) -> URL:
        query = f"?{_encode_query(tuple(request.query.items()))}" if request.query else ""
        return URL(f"{self.config.server}{request.path}{query}", encoded=True)

    def _get_session(self, *, watch: bool) -> aiohttp.ClientSession:
        if self.closed.is_set():
            raise Unavailable("the Kubernetes client is closed", reason="Closed")
        if self._sessions is None:
            # Watches have connections of their own: a hundred of them must not starve the requests.
            self._sessions = self._new_session(MOST_CONNECTIONS), self._new_session(MOST_WATCHES)
        return self._sessions[watch]

    def _new_session(self, limit: int) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limit),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            headers={"User-Agent": self._agent},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
        )
        # By default aiohttp repeats a request whose connection was cut: past the circuit breaker, and a DELETE that
        # succeeded would then be reported as "not found". There is no public option; a test fails if this one stops
        # working.
        session._retry_connection = False
        return session

    async def _get_tls_context(self, proof: Credential) -> ssl.SSLContext:
        """The TLS context, the same object while the certificates are the same: connections are pooled by it."""
        # Without the token: a renewed token must not open new connections.
        tls_material = Credential(certificate=proof.certificate, key=proof.key, ca=proof.ca)
        if self._tls is None or self._tls[0] != tls_material:
            context = await asyncio.to_thread(
                make_tls_context, tls_material, insecure=self.config.insecure
            )
            if self._tls is None or self._tls[0] != tls_material:
                self._tls = tls_material, context
        return self._tls[1]

    @contextlib.contextmanager
    def _through_circuit_breaker(self, request: KubeRequest) -> Iterator[Callable[[int], None]]:
        """Asks the circuit breaker before a request and reports the outcome. Yields a function that takes the code."""
        gate = self._circuit_breaker
        if gate is None:
            yield lambda code: None
            return
        gate.check_allowed(str(request))
        # An eviction that a disruption budget forbids is answered 429; that is no failure of the server.
        is_eviction = request.path.endswith("/eviction")
        try:
            yield lambda code: gate.record_response(200 if is_eviction and code == 429 else code)
        except Unavailable as error:
            if not self.closed.is_set():
                gate.record_failure(str(error).removeprefix(f"{request}: "))
            raise

    @contextlib.contextmanager
    def _map_errors(self, request: KubeRequest) -> Iterator[None]:
        """Turns errors of aiohttp and of sockets into Unavailable or Cut."""
        server = self.config.server
        try:
            yield
        except TimeoutError as error:
            text = f"{request}: {server} did not answer in time"
            raise Unavailable(text, reason="Timeout") from error
        except aiohttp.ClientConnectorCertificateError as error:
            text = (
                f"{request}: the certificate of {server} is not trusted: {error.certificate_error}"
            )
            raise Unavailable(text, reason="CertificateNotTrusted") from error
        except aiohttp.ClientConnectorError as error:
            text = f"{request}: {server} cannot be reached: {error.os_error.strerror or 'no connection'}"
            raise Unavailable(text, reason="Unreachable") from error
        except (aiohttp.ClientError, OSError) as error:
            text = f"{request}: the connection to {server} was cut ({type(error).__name__})"
            raise ConnectionCut(text, reason="Cut") from error


def make_tls_context(proof: Credential, *, insecure: bool = False) -> ssl.SSLContext:
    """A TLS context with the same checks as kubectl. Refused when certificate, key or CA cannot be parsed."""
    try:
        context = ssl.create_default_context(cadata=proof.ca.decode() if proof.ca else None)
    except (ssl.SSLError, ValueError) as error:
        raise Refused("the certificate authority of the kubeconfig is no certificate") from error
    # Like Go's verifier: every listed certificate is a trust anchor, also one that is no CA; no stricter than RFC 5280.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if proof.certificate:
        # OpenSSL's loader needs a path: a file in memory, so that the key is never written to a disk.
        memory = os.memfd_create("client-certificate")
        try:
            with open(memory, "wb", closefd=False) as file:
                file.write(proof.certificate + b"\n" + proof.key)
            context.load_cert_chain(f"/proc/self/fd/{memory}")
        except (ssl.SSLError, ValueError) as error:
            raise Refused("the client certificate and key of the kubeconfig do not fit") from error
        finally:
            os.close(memory)
    return context

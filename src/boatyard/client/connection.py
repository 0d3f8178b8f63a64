"""A connection to the API: calls any method by name, and raises errors of the model."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from cryptography import x509
from cryptography.x509.oid import NameOID

from boatyard.client.config import Target
from boatyard.client.grpc_errors import ServerFault, to_model_error
from boatyard.model.errors import Unavailable
from boatyard.model.generated.convert import FROM_MESSAGE
from boatyard.model.wire import message, services

CALL_SECONDS = 30.0
CONNECT_SECONDS = 10.0
STREAM_SECONDS = 600.0  # a stream is reopened this often: a dead peer would go unnoticed

_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", -1),  # a page of large objects is one message
    ("grpc.primary_user_agent", "boatyard-cli"),
)


@dataclass(frozen=True)
class StreamStarted:
    """The server has started the stream; `start` is the id after which its events begin, where it has ids."""

    start: str = ""


class ApiConnection:
    """Calls one server. Enter it once per command; no call is sent before the first method."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._channel: grpc.aio.Channel | None = None
        self._metadata = (("authorization", f"Bearer {target.token}"),) if target.token else ()

    async def __aenter__(self) -> Self:
        self._channel = await _make_channel(self.target)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._channel is not None:
            await self._channel.close()

    async def call(self, method: str, /, **fields: Any) -> Any:
        """Calls a method such as `osac.public.v1.Clusters/Get` and returns its response message."""
        request, path, answer = _prepare_call(method, fields)
        invoke = self._open_channel().unary_unary(
            path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        try:
            return await invoke(request, metadata=self._metadata, timeout=CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise to_model_error(error, address=self.target.address) from error

    async def stream(self, method: str, /, **fields: Any) -> AsyncGenerator[Any, None]:
        """Yields Opened once the server has accepted the call, then its messages until it ends the stream.

        After STREAM_SECONDS the stream ends with Unavailable (reason Timeout); the caller reopens it.
        """
        request, path, answer = _prepare_call(method, fields)
        invoke = self._open_channel().unary_stream(
            path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        call = invoke(request, metadata=self._metadata, timeout=STREAM_SECONDS)
        try:
            initial_metadata = dict(await call.initial_metadata())
            yield StreamStarted(start=str(initial_metadata.get("boatyard-start", "")))
            async for answer_message in call:
                yield answer_message
        except grpc.aio.AioRpcError as error:
            raise to_model_error(error, address=self.target.address) from error
        finally:
            call.cancel()

    def _open_channel(self) -> grpc.aio.Channel:
        if self._channel is None:
            raise RuntimeError("the connection is used outside of `async with`")
        return self._channel


def to_struct(received: Any) -> Any:
    """Converts a message to the model's struct. ServerFault when a newer server sends an unknown value."""
    try:
        return FROM_MESSAGE[received.DESCRIPTOR.full_name](received)
    except ValueError as error:
        raise ServerFault(
            f"the server speaks a newer language: {error}; update boatyard"
        ) from error


def _prepare_call(method: str, fields: dict[str, Any]) -> tuple[Any, str, Any]:
    service, _, name = method.partition("/")
    method_descriptor = services()[service].methods_by_name[name]
    request = message(method_descriptor.input_type.full_name)(**fields)
    return request, f"/{method}", message(method_descriptor.output_type.full_name)


async def _make_channel(target: Target) -> grpc.aio.Channel:
    options = list(_OPTIONS)
    if not target.tls:
        # Otherwise a web proxy from the environment would be asked for a server on this machine.
        options.append(("grpc.enable_http_proxy", 0))
        return grpc.aio.insecure_channel(target.address, options=options)
    roots: bytes | None = None
    if target.ca_file:
        roots = await asyncio.to_thread(Path(target.ca_file).read_bytes)
    elif target.insecure:
        roots, name = await asyncio.to_thread(_fetch_certificate, target.address)
        options.append(("grpc.ssl_target_name_override", name))
    credentials = grpc.ssl_channel_credentials(root_certificates=roots)
    return grpc.aio.secure_channel(target.address, credentials, options=options)


def _fetch_certificate(address: str) -> tuple[bytes, str]:
    """The server's certificate and its name, unverified: gRPC has no option to skip verification."""
    host, _, port = address.rpartition(":")
    try:
        text = ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS)
    except OSError as error:
        raise Unavailable(f"nothing answers with TLS at {address} ({error})") from error
    certificate = x509.load_pem_x509_certificate(text.encode())
    return text.encode(), _certificate_host(certificate)


def _certificate_host(certificate: x509.Certificate) -> str:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(common[0].value) if common else "localhost"
    dns = names.get_values_for_type(x509.DNSName)
    return dns[0] if dns else str(names.get_values_for_type(x509.IPAddress)[0])

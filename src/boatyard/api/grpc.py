"""The gRPC server: every method of the API, health and reflection. Started by the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from boatyard.api import reflection
from boatyard.api.authentication import ANONYMOUS, Authenticator
from boatyard.api.crud import Call
from boatyard.api.errors import Failure, SlowWatcher, make_failure
from boatyard.api.methods import Method
from boatyard.model.errors import Unavailable

LARGEST_MESSAGE = 4 * 1024 * 1024
WRITE_SECONDS = 30.0  # how long a watcher may leave an event unread
_DETAILS_HEADER = "grpc-status-details-bin"

_OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

Table = Mapping[str, Mapping[str, Method]]


class GrpcServer:
    def __init__(self, table: Table, callers: Authenticator) -> None:
        self._table = table
        self._callers = callers
        self._server: grpc.aio.Server | None = None
        self._health = health.aio.HealthServicer()

    async def start(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        """Starts to listen and returns the port."""
        server = grpc.aio.server(options=_OPTIONS)
        server.add_generic_rpc_handlers((self._make_handlers(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (*self._table, health.SERVICE_NAME)
        server.add_generic_rpc_handlers(tuple(reflection.make_handlers(names)))
        try:
            if credentials is None:
                port = server.add_insecure_port(address)
            else:
                port = server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise Unavailable(f"cannot listen on {address}: is it in use?") from error
        await server.start()
        for name in ("", *self._table):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        self._server = server
        return port

    async def stop(self, grace: float) -> None:
        if self._server is not None:
            await self._health.enter_graceful_shutdown()
            await self._server.stop(grace)

    def _make_handlers(self) -> grpc.GenericRpcHandler:
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for service, calls in self._table.items():
            for rpc, method in calls.items():
                handlers[f"/{service}/{rpc}"] = (
                    grpc.unary_stream_rpc_method_handler(self._make_stream_handler(method))
                    if method.streaming
                    else grpc.unary_unary_rpc_method_handler(
                        self._make_unary_handler(method), response_serializer=_serialize_message
                    )
                )
        return _HandlersByName(handlers)

    # Requests arrive as bytes and are parsed after authentication: an unknown caller learns nothing
    # about what would have been valid, and a message that cannot be parsed gets our error text.

    def _make_unary_handler(self, method: Method) -> Callable[[bytes, Any], Any]:
        async def handle(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            try:
                call = self._authenticate_call(method, context)
                return await method.call_unary(method.parse(data), call)
            except Exception as error:
                rpc_failure = make_failure(error, call=method.name)
            return await _abort(context, rpc_failure)

        return handle

    def _make_stream_handler(self, method: Method) -> Callable[[bytes, Any], Any]:
        async def handle(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> None:
            async def on_start(start: str) -> None:
                await context.send_initial_metadata((("boatyard-start", start),) if start else ())

            try:
                call = self._authenticate_call(method, context)
                parts = method.call_stream(method.parse(data), call, on_start)
                try:
                    async for part in parts:
                        self._authenticate_call(
                            method, context
                        )  # a watch ends with the token it began with
                        await _write_part(context, part.data)
                finally:
                    await parts.aclose()  # type: ignore[attr-defined]  # they are generators
                return
            except Exception as error:
                rpc_failure = make_failure(error, call=method.name)
            await _abort(context, rpc_failure)

        return handle

    def _authenticate_call(
        self, method: Method, context: grpc.aio.ServicerContext[Any, Any]
    ) -> Call:
        authorization, dry_run = None, False
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                authorization = str(value)
            elif key == "x-dry-run":
                dry_run = str(value).lower() == "true"
        if method.is_anonymous:
            return Call(ANONYMOUS)
        return Call(
            method.check_run_token(self._callers.authenticate(authorization)), dry_run=dry_run
        )


class _HandlersByName(grpc.GenericRpcHandler):
    """Finds the handler of all services in one look-up; gRPC would ask a handler per service one after the other."""

    def __init__(self, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]) -> None:
        self._handlers = handlers

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        return self._handlers.get(handler_call_details.method)


async def _write_part(context: grpc.aio.ServicerContext[Any, Any], data: bytes) -> None:
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await context.write(data)
    except TimeoutError as error:
        raise SlowWatcher(
            f"nothing was read for {WRITE_SECONDS:.0f} seconds; resume after the last event you have"
        ) from error


async def _abort(context: grpc.aio.ServicerContext[Any, Any], rpc_failure: Failure) -> None:
    trailing: tuple[tuple[str, bytes], ...] = ()
    if rpc_failure.violations:
        trailing = ((_DETAILS_HEADER, rpc_failure.status().SerializeToString()),)
    await context.abort(rpc_failure.code, rpc_failure.message, trailing_metadata=trailing)


def _serialize_message(message: Message) -> bytes:
    return message.SerializeToString()

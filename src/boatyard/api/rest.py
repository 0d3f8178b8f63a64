"""The REST server: the API as JSON over HTTP, with routes from the proto's bindings. Started by the API server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import grpc
from google.api import httpbody_pb2
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message as AsgiMessage
from starlette.types import Send

from boatyard.api import masks
from boatyard.api.answers import Part
from boatyard.api.authentication import ANONYMOUS, Authenticator
from boatyard.api.crud import Call
from boatyard.api.errors import Failure, make_failure
from boatyard.api.http_guard import RequestGuard, make_error_response
from boatyard.api.http_server import HttpServer
from boatyard.api.methods import Method
from boatyard.model import wire
from boatyard.model.errors import Refused, Violation
from boatyard.model.generated import rest as bindings
from boatyard.resources.metadata import quote_text

LARGEST_BODY = 4 * 1024 * 1024
KEEP_ALIVE_SECONDS = 15.0
WRITE_SECONDS = 30.0  # how long a watcher may leave an event unread

Table = Mapping[str, Mapping[str, Method]]

_OPENAPI_FILE = files("boatyard.model.generated").joinpath("openapi.json")


class RestServer:
    def __init__(self, table: Table, callers: Authenticator, *, hosts: Sequence[str] = ()) -> None:
        self._callers = callers
        self._hosts = hosts
        routes = [Route("/healthz", _health), Route("/openapi.json", _openapi)]
        # Starlette tries paths one after the other: those of implemented methods come first.
        bound_methods = [
            (binding, table[binding.service][binding.rpc]) for binding in bindings.ROUTES
        ]
        bound_methods.sort(key=lambda bound_method: not bound_method[1].is_served)
        routes += [self._make_route(*bound_method) for bound_method in bound_methods]
        self._app = Starlette(routes=routes, exception_handlers={404: _no_route, 405: _no_route})
        self._server: HttpServer | None = None

    async def start(self, address: str, tls: Any | None) -> int:
        """Starts to listen and returns the port."""
        guard = RequestGuard(self._app, address, self._hosts)
        self._server = HttpServer(guard, address, tls)
        return await self._server.start()

    async def stop(self, grace: float) -> None:
        if self._server is not None:
            await self._server.stop(grace)

    def _make_route(self, binding: bindings.Route, method: Method) -> Route:
        # Starlette's names have no dots: {object.id} is called object__id on the way through.
        path = re.sub(
            r"{([^}]+)}", lambda name: "{" + name[1].replace(".", "__") + "}", binding.path
        )

        async def endpoint(request: Request) -> Response:
            try:
                call = self._authenticate_call(method, request)
                message, from_body = await _build_request(request, binding, method)
                call = Call(call.caller, dry_run=call.dry_run, mask_from_body=from_body)
                if method.streaming:
                    return await self._stream_response(request, method, message, call)
                return _make_response(await method.call_unary(message, call), binding.response_body)
            except ClientDisconnect:
                return Response(status_code=499)
            except Exception as error:
                return make_error_response(make_failure(error, call=method.name))

        return Route(path, endpoint, methods=[binding.method])

    async def _stream_response(
        self, request: Request, method: Method, message: Any, call: Call
    ) -> Response:
        """Streams NDJSON, or server-sent events to clients that accept them. An early failure is a plain response."""
        sse = "text/event-stream" in request.headers.get("accept", "")
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def on_start(start: str) -> None:
            if not started.done():
                started.set_result(start)

        parts = _ReadAhead(method.call_stream(message, call, on_start))
        try:
            await parts.wait_until_started(started)
        except BaseException:
            await parts.aclose()
            raise

        def check() -> None:
            self._authenticate_call(method, request)  # a watch ends with the token it began with

        lines = _format_stream(parts, method, check, started.result() if sse else "", sse=sse)
        media = "text/event-stream" if sse else "application/x-ndjson"
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return _TimedStreamingResponse(lines, media_type=media, headers=headers)

    def _authenticate_call(self, method: Method, request: Request) -> Call:
        if method.is_anonymous:
            return Call(ANONYMOUS)
        dry_run = request.headers.get("x-dry-run", "").lower() == "true"
        caller = method.check_run_token(
            self._callers.authenticate(request.headers.get("authorization"))
        )
        return Call(caller, dry_run=dry_run)


async def _build_request(
    request: Request, binding: bindings.Route, method: Method
) -> tuple[Any, bool]:
    """The request message from path, query and body; the flag says whether its mask was derived from the body."""
    message: Any = method.request()
    body: dict[str, Any] = {}
    target = message
    if binding.body:
        body = await _read_body(request)
        if binding.body != "*":
            target = getattr(message, binding.body)
            target.SetInParent()
        _parse_body(body, target)
    for name, value in request.query_params.multi_items():
        _set_query_parameter(message, name, value)
    # Set after the query: a parameter such as ?id= must not change which object the path names.
    for name, value in request.path_params.items():
        _set_field(message, name.replace("__", "."), value)
    # An empty `?update_mask=` counts as none: only the fields in the body change.
    derived = binding.method == "PATCH" and not message.update_mask.paths
    if derived:
        message.update_mask.paths.extend(masks.paths_in_body(body, target.DESCRIPTOR))
        # An empty mask would mean everything; an empty body means nothing.
        if not body:
            message.update_mask.paths.append("id")
    last_event_id = request.headers.get("last-event-id")
    if last_event_id and "after" in method.request.DESCRIPTOR.fields_by_name and not message.after:
        message.after = last_event_id
    return message, derived


async def _read_body(request: Request) -> dict[str, Any]:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > LARGEST_BODY:
            raise Refused("", Violation("", f"the body has more than {LARGEST_BODY} bytes"))
        chunks.append(chunk)
    data = b"".join(chunks)
    if not data:
        return {}
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is not JSON: {str(error)[:200]}") from error
    if not isinstance(body, dict):
        raise Refused("the body must be a JSON object")
    return body


def _parse_body(body: dict[str, Any], target: Message) -> None:
    try:
        json_format.ParseDict(body, target, descriptor_pool=wire.pool)
    except KeyError as error:  # protobuf reads the key without checking that it exists
        raise Refused("", Violation("", f"an object with @type lacks {error}")) from error
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Refused("", Violation(*_parse_json_error(str(error)))) from error


def _parse_json_error(text: str) -> tuple[str, str]:
    """The field's path and the problem, from protobuf's message about JSON that it cannot parse."""
    unknown = re.search(r'no field named "([^"]*)" at "([^"]*)"', text)
    if unknown is not None:
        path = ".".join([*unknown[2].split(".")[1:], unknown[1]])
        return path, "there is no such field"
    failed = re.match(r"Failed to parse (\S+) field: (.*)", text, re.DOTALL)
    if failed is not None:
        inner, complaint = _parse_json_error(failed[2])
        return (f"{failed[1]}.{inner}" if inner else failed[1]), complaint
    return "", text[:300].rstrip(".")


def _set_field(message: Any, path: str, value: str) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        message = getattr(message, parent)
    setattr(message, name, value)


def _set_query_parameter(message: Any, name: str, value: str) -> None:
    if name == "update_mask" and "update_mask" in message.DESCRIPTOR.fields_by_name:
        message.update_mask.paths.extend(path for path in value.split(",") if path)
        return
    field = message.DESCRIPTOR.fields_by_name.get(name)
    if field is None or field.message_type is not None:
        raise Refused("", Violation(name[:80], "there is no such parameter"))
    try:
        setattr(message, name, _parse_query_value(field, value))
    except ValueError as error:
        raise Refused("", Violation(name, f"{quote_text(value)} is not a valid value")) from error


def _parse_query_value(field: FieldDescriptor, value: str) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return value
        case FieldDescriptor.CPPTYPE_BOOL:
            if value.lower() not in ("true", "false", "1", "0", ""):
                raise ValueError(value)
            return value.lower() in ("true", "1", "")
        case _:
            return int(value)


def _make_response(message: Message, response_body: str) -> Response:
    if isinstance(message, httpbody_pb2.HttpBody):
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        return Response(message.data, media_type=message.content_type, headers=headers)
    body = getattr(message, response_body) if response_body else message
    return JSONResponse(to_json(body))


def to_json(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = json_format.MessageToDict(
        message, preserving_proto_field_name=True, descriptor_pool=wire.pool
    )
    return fields


class _TimedStreamingResponse(StreamingResponse):
    """A streaming response that closes the connection when its client reads nothing for WRITE_SECONDS."""

    async def stream_response(self, send: Send) -> None:
        async def bounded(message: AsgiMessage) -> None:
            async with asyncio.timeout(WRITE_SECONDS):
                await send(message)

        with contextlib.suppress(TimeoutError):  # the client may resume after its last event
            await super().stream_response(bounded)


class _ReadAhead:
    """Reads a stream one part ahead, so that a timeout while waiting does not cancel the stream."""

    def __init__(self, parts: AsyncIterator[Part]) -> None:
        self._parts = parts
        self._pending: asyncio.Task[Part] | None = None

    def _next_task(self) -> asyncio.Task[Part]:
        if self._pending is None:
            self._pending = asyncio.create_task(self._read_part())
        return self._pending

    async def _read_part(self) -> Part:
        return await anext(self._parts)

    async def wait_until_started(self, started: asyncio.Future[str]) -> None:
        """Returns once the stream has started; raises the error when it fails before that."""
        next_part = self._next_task()
        both: set[asyncio.Future[Any]] = {next_part, started}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            next_part.result()
            started.set_result("")

    async def read_next(self, timeout: float) -> Part | None:
        """Returns the next part, or None after the timeout."""
        next_part = self._next_task()
        done, _ = await asyncio.wait({next_part}, timeout=timeout)
        if not done:
            return None
        self._pending = None
        return next_part.result()

    async def aclose(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
            await asyncio.wait({self._pending})
        await self._parts.aclose()  # type: ignore[attr-defined]  # they are generators


async def _format_stream(
    parts: _ReadAhead, method: Method, check: Callable[[], None], start: str, *, sse: bool
) -> AsyncIterator[str]:
    try:
        if start:
            yield f"id: {start}\n\n"
        while True:
            part = await parts.read_next(KEEP_ALIVE_SECONDS)
            if part is None:
                yield ": still here\n\n" if sse else "\n"
                continue
            check()
            result = to_json(method.response.FromString(part.data))
            if sse:
                id = f"id: {part.id}\n" if part.id else ""
                yield f"{id}data: {json.dumps(result)}\n\n"
            else:
                yield json.dumps({"result": result}) + "\n"
    except StopAsyncIteration:
        return
    except Exception as error:
        rpc_failure = make_failure(error, call=method.name)
        text = json.dumps({"error": to_json(rpc_failure.status())})
        yield f"event: error\ndata: {text}\n\n" if sse else text + "\n"
    finally:
        await parts.aclose()


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "SERVING"})


async def _openapi(_request: Request) -> Response:
    return Response(_OPENAPI_FILE.read_bytes(), media_type="application/json")


async def _no_route(_request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    code = grpc.StatusCode.NOT_FOUND if status == 404 else grpc.StatusCode.UNIMPLEMENTED
    text = "there is no such path" if status == 404 else "the path does not have that method"
    return make_error_response(Failure(code, text), status=status)

"""Checks Host, Origin and content type of each request to the REST server. Wraps the application."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

import grpc
from google.protobuf import json_format
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from boatyard.api.errors import Failure
from boatyard.model import wire

_METHODS_WITH_BODY = ("POST", "PUT", "PATCH")


class RequestGuard:
    """Refuses requests that a foreign page makes a browser send: a foreign Host or Origin, a form as body.

    On loopback only loopback names (and `hosts`) are accepted, so that a page that rebinds its
    name to this machine (DNS rebinding) reaches nothing.
    """

    def __init__(self, app: ASGIApp, address: str, hosts: Sequence[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        bound_host = address.rpartition(":")[0].strip("[]")
        self._any_host = not hosts and not _is_loopback(bound_host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._find_refusal(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await refusal(scope, receive, send)

    def _find_refusal(self, method: str, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if not self._is_served_host(_parse_host_name(host)):
            return _make_refusal(421, f"this server is not called {host[:80]!r}")
        origin = headers.get("origin")
        if origin is not None and not self._is_same_origin(origin, host):
            return _make_refusal(403, f"calls from {origin[:80]!r} are not accepted")
        if method in _METHODS_WITH_BODY:
            content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            if content_type != "application/json":
                return _make_refusal(415, "the body must be sent as application/json")
        return None

    def _is_served_host(self, name: str) -> bool:
        return self._any_host or name in self._hosts or _is_loopback(name)

    def _is_same_origin(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.netloc.lower() == host.lower() or (parts.hostname or "") in self._hosts


def make_error_response(failure: Failure, *, status: int | None = None) -> Response:
    """The response to a failed call, as grpc-gateway forms it: the gRPC status as JSON."""
    body = json_format.MessageToDict(
        failure.status(), preserving_proto_field_name=True, descriptor_pool=wire.pool
    )
    headers = {}
    if failure.code is grpc.StatusCode.UNAUTHENTICATED:
        headers["www-authenticate"] = failure.message.encode("ascii", "replace").decode()
    return JSONResponse(body, status_code=status or failure.http_status, headers=headers)


def _make_refusal(status: int, text: str) -> Response:
    code = grpc.StatusCode.PERMISSION_DENIED if status == 403 else grpc.StatusCode.INVALID_ARGUMENT
    return make_error_response(Failure(code, text), status=status)


def _parse_host_name(host: str) -> str:
    """The name in a Host header, without port and brackets."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False

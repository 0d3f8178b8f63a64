"""A small Kubernetes client with what the fake needs: create, merge, apply a status, delete, list and watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import msgspec

from boatyard.fakes.hypershift.access import ApiServerAccess
from boatyard.fakes.hypershift.kinds import ObjectKind
from boatyard.fakes.hypershift.names import Object

FIELD_MANAGER = "hypershift-player"
REQUEST_SECONDS = 30.0
WATCH_SECONDS = 280  # then the server ends the watch, and we resume it
PAGE_SIZE = 500


class ApiError(Exception):
    """An error answer of the API server; code 0 when there was no usable answer."""

    def __init__(self, code: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.retry_after = retry_after

    @property
    def is_not_found(self) -> bool:
        return self.code == 404

    @property
    def is_already_exists(self) -> bool:
        return self.code == 409 and self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        return self.code == 409 and self.reason != "AlreadyExists"

    @property
    def is_expired(self) -> bool:
        return self.code == 410


class ApiServerClient:
    """One API server. Used inside `async with`."""

    def __init__(self, access: ApiServerAccess) -> None:
        self.access = access
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> ApiServerClient:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=64, ssl=self.access.tls_context),
            headers={"User-Agent": FIELD_MANAGER},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, kind: ObjectKind, namespace: str, name: str) -> Object:
        return await self._send_request("GET", kind.path(namespace, name))

    async def create(self, kind: ObjectKind, body: Object) -> Object:
        namespace = str(body["metadata"].get("namespace") or "")
        return await self._send_request(
            "POST", kind.path(namespace), body, "application/json", STRICT_VALIDATION
        )

    async def merge(self, kind: ObjectKind, namespace: str, name: str, patch: Object) -> Object:
        path = kind.path(namespace, name)
        return await self._send_request(
            "PATCH", path, patch, "application/merge-patch+json", STRICT_VALIDATION
        )

    async def apply_status(self, kind: ObjectKind, current: Object, status: Object) -> Object:
        """Writes the whole status. Uses server-side apply, because only that can write null."""
        metadata = current["metadata"]
        namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
        body_metadata = {"name": name, "resourceVersion": metadata.get("resourceVersion")}
        if namespace:
            body_metadata["namespace"] = namespace
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": body_metadata,
            "status": status,
        }
        query = {**STRICT_VALIDATION, "fieldManager": FIELD_MANAGER, "force": "true"}
        path = kind.path(namespace, name, "status")
        return await self._send_request("PATCH", path, body, "application/apply-patch+yaml", query)

    async def delete(self, kind: ObjectKind, namespace: str, name: str, uid: str) -> Object:
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        return await self._send_request(
            "DELETE", kind.path(namespace, name), body, "application/json"
        )

    async def list(self, kind: ObjectKind, query: Mapping[str, str]) -> tuple[list[Object], str]:
        """All objects of a kind, and the version they were read at."""
        things: list[Object] = []
        continue_token = ""
        while True:
            page_query = {
                **query,
                "limit": str(PAGE_SIZE),
                **({"continue": continue_token} if continue_token else {}),
            }
            page = await self._send_request("GET", kind.path(), query=page_query)
            things += page.get("items") or []
            continue_token = str(page["metadata"].get("continue") or "")
            if not continue_token:
                return things, str(page["metadata"]["resourceVersion"])

    async def watch(
        self, kind: ObjectKind, since: str, query: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, Object]]:
        """Events after a version, until the server ends the watch. ApiError when it is too old or the watch breaks."""
        watch_query = {
            **query,
            "watch": "1",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        buffer = b""
        try:
            async with self._request("GET", kind.path(), query=watch_query) as response:
                if response.status != 200:
                    raise _parse_error(response.status, response.headers, await response.read())
                while True:
                    async with asyncio.timeout(WATCH_SECONDS + 20):
                        chunk = await response.content.readany()
                    if not chunk:
                        return
                    *lines, buffer = (buffer + chunk).split(b"\n")
                    for line in lines:
                        yield _parse_event(line)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiError(0, "Unreachable", type(error).__name__) from error

    async def _send_request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        try:
            async with (
                asyncio.timeout(REQUEST_SECONDS),
                self._request(method, path, body, content_type, query) as response,
            ):
                payload = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiError(0, "Unreachable", type(error).__name__) from error
        if response.status >= 400:
            raise _parse_error(response.status, response.headers, payload)
        try:
            decoded: Object = msgspec.json.decode(payload)
        except msgspec.DecodeError as error:
            raise ApiError(0, "NotJson", f"{method} {path}") from error
        return decoded

    def _request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "",
        query: Mapping[str, str] | None = None,
    ) -> aiohttp.client._RequestContextManager:
        assert self._session is not None, "used outside of `async with`"
        headers = {"Accept": "application/json", **self.access.headers()}
        if content_type:
            headers["Content-Type"] = content_type
        return self._session.request(
            method,
            f"{self.access.server}{path}",
            params=dict(query or {}),
            data=None if body is None else msgspec.json.encode(body),
            headers=headers,
            allow_redirects=False,  # credentials go to no other server
        )


STRICT_VALIDATION = {"fieldValidation": "Strict"}


def _parse_event(line: bytes) -> tuple[str, Object]:
    try:
        event = msgspec.json.decode(line)
        event_type, thing = str(event["type"]), event["object"]
    except (msgspec.DecodeError, TypeError, KeyError) as error:
        raise ApiError(0, "NotJson", "in a watch") from error
    if event_type == "ERROR":
        code, reason = int(thing.get("code") or 500), str(thing.get("reason") or "")
        raise ApiError(code, reason, str(thing.get("message") or ""))
    return event_type, thing


def _parse_error(code: int, headers: Mapping[str, str], payload: bytes) -> ApiError:
    try:
        status: Any = msgspec.json.decode(payload)
    except msgspec.DecodeError:
        status = {}
    if not isinstance(status, dict):
        status = {}
    retry_after = headers.get("Retry-After") or ""
    return ApiError(
        code,
        str(status.get("reason") or ""),
        str(status.get("message") or "no words"),
        float(retry_after) if retry_after.isdecimal() else 0.0,
    )

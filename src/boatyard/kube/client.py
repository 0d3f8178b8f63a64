"""Requests to a Kubernetes API: get, list, create, replace, patch, apply, delete, evict, watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from boatyard.kube.apply_body import escape_for_yaml
from boatyard.kube.circuit_breaker import CircuitBreaker
from boatyard.kube.config import KubeConfig
from boatyard.kube.credentials import Now, wall_clock
from boatyard.kube.errors import Expired, is_disruption_budget, make_error, parse_status
from boatyard.kube.kinds import PODS, KubeKind
from boatyard.kube.retry_policy import pause_before_retry
from boatyard.kube.transport import ConnectionCut, KubeRequest, KubeResponse, Query, Transport
from boatyard.kube.watch_stream import WatchEvent, watch_events
from boatyard.model.errors import Unavailable

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = (
    "application/apply-patch+yaml"  # JSON is YAML; the server knows apply by this name only
)
_STRICT_VALIDATION = {"fieldValidation": "Strict"}

KubeObject = dict[str, Any]
Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class ObjectList:
    items: list[KubeObject]
    resource_version: str  # a watch from here misses nothing and repeats nothing


class KubeClient:
    """Talks to one API server as one user.

    Every method returns: one attempt takes at most `timeout` seconds, all attempts together at most `patience`
    seconds. A 429 is retried as the server asks. 504, other 5xx with Retry-After and a cut connection are retried
    where the request is idempotent. Errors: NotFound, Exists, Conflict (another version, or a field of another
    manager), Expired, Refused (with the server's message), Unavailable.
    """

    def __init__(
        self,
        config: KubeConfig,
        *,
        manager: str = "boatyard",
        timeout: float = 10.0,
        patience: float = 20.0,
        plugin_seconds: float = 30.0,
        pause: Pause = asyncio.sleep,
        now: Now = wall_clock,
        circuit_breaker: CircuitBreaker | None = None,
    ) -> None:
        self.config = config
        self.manager = manager
        self._retry_seconds = patience
        self._pause = pause
        self._transport = Transport(
            config,
            agent=manager,
            timeout=timeout,
            now=now,
            plugin_seconds=plugin_seconds,
            circuit_breaker=circuit_breaker,
        )

    async def get(self, kind: KubeKind, name: str, namespace: str = "") -> KubeObject:
        return await self._request_object(KubeRequest("GET", kind.path(namespace, name)))

    async def list(
        self,
        kind: KubeKind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        page: int = 500,
    ) -> ObjectList:
        """All objects at one resourceVersion, read in pages. Starts over when that version expires half way."""
        path = kind.path(namespace)
        query = _make_selectors(labels, fields)
        for limit in (page, page, 0):  # the last without pages: it cannot expire half way
            try:
                return await self._read_pages(path, query, limit)
            except Expired:
                if limit == 0:
                    raise
        raise AssertionError("unreachable")

    async def _read_pages(self, path: str, query: Query, limit: int) -> ObjectList:
        items: list[KubeObject] = []
        continue_token = ""
        while True:
            parameters = dict(query)
            if limit:
                parameters["limit"] = str(limit)
            if continue_token:
                parameters["continue"] = continue_token
            page = await self._request_object(KubeRequest("GET", path, parameters))
            items += page.get("items") or ()
            metadata = page.get("metadata") or {}
            continue_token = metadata.get("continue") or ""
            if not continue_token:
                return ObjectList(items, str(metadata.get("resourceVersion") or ""))

    async def create(
        self, kind: KubeKind, body: Mapping[str, Any], namespace: str = ""
    ) -> KubeObject:
        """Creates the object. Exists when the name is taken. Not retried when the first attempt may have succeeded."""
        namespace = namespace or _namespace_of(body)
        request = self._make_write_request("POST", kind.path(namespace), _with_type(kind, body))
        return await self._request_object(request)

    async def replace(
        self, kind: KubeKind, body: Mapping[str, Any], namespace: str = "", *, subresource: str = ""
    ) -> KubeObject:
        """Replaces the object of this name.

        With a resourceVersion in its metadata, Conflict when that is no longer the current one.
        """
        name = str((body.get("metadata") or {}).get("name") or "")
        path = kind.path(namespace or _namespace_of(body), name, subresource)
        return await self._request_object(
            self._make_write_request("PUT", path, _with_type(kind, body))
        )

    async def merge_patch(
        self,
        kind: KubeKind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str = "",
        *,
        subresource: str = "",
        strict: bool = False,
    ) -> KubeObject:
        """Sets the fields in `patch`; None removes a field. NotFound when there is no such object.

        With a resourceVersion in its metadata, Conflict when that is no longer the current one. `strict`: a
        field that the kind does not have is Refused, not dropped.
        """
        path = kind.path(namespace, name, subresource)
        query = _STRICT_VALIDATION if strict else {}
        return await self._request_object(
            self._make_write_request("PATCH", path, patch, MERGE_PATCH, query)
        )

    async def apply(
        self,
        kind: KubeKind,
        name: str,
        body: Mapping[str, Any],
        namespace: str = "",
        *,
        subresource: str = "",
        force: bool = True,
        strict: bool = False,
        manager: str = "",
    ) -> KubeObject:
        """Server-side apply: we own the fields in `body`; fields that we applied before and leave out now are removed.

        Creates the object when there is none (never through a subresource: NotFound). Without `force`, a field
        that another manager owns with another value is a Conflict; so is a resourceVersion in its metadata
        that is no longer the current one. `strict`: a field that the kind does not have is Refused.
        `manager` applies under another field manager: neither removes the fields of the other.
        """
        manifest = _with_type(kind, body)
        manifest["metadata"] = {**manifest.get("metadata", {}), "name": name}
        path = kind.path(namespace, name, subresource)
        query = {"force": "true"} if force else {}
        if strict:
            query |= _STRICT_VALIDATION
        if manager:
            query["fieldManager"] = manager
        return await self._request_object(
            self._make_write_request("PATCH", path, manifest, APPLY_PATCH, query)
        )

    async def delete(
        self,
        kind: KubeKind,
        name: str,
        namespace: str = "",
        *,
        grace: int | None = None,
        uid: str = "",
        propagation: str = "",
    ) -> bool:
        """Requests the deletion of the object. False when there was none.

        True does not mean that it is gone: finalizers and grace periods take time. With `uid` only the object
        with that uid is deleted; Conflict when another object has the name by now.
        """
        options: KubeObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation:
            options["propagationPolicy"] = propagation
        request = KubeRequest(
            "DELETE", kind.path(namespace, name), body=msgspec.json.encode(options)
        )
        response, tries = await self._send_with_retries(request)
        # An earlier attempt whose response was lost may have deleted it.
        if response.code == 404:
            return tries > 1
        self._check_response(request, response)
        return True

    async def evict(self, pod: str, namespace: str, *, grace: int | None = None) -> bool:
        """Evicts a pod. True when it is being deleted or is gone, False while a disruption budget forbids it."""
        eviction: KubeObject = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        if grace is not None:
            eviction["deleteOptions"] = {"gracePeriodSeconds": grace}
        path = PODS.path(namespace, pod, "eviction")
        request = KubeRequest("POST", path, body=msgspec.json.encode(eviction))
        response, _ = await self._send_with_retries(request)
        if response.code == 404:
            return True
        if response.code == 429 and is_disruption_budget(parse_status(response.body)):
            return False
        self._check_response(request, response)
        return True

    def watch(
        self,
        kind: KubeKind,
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        initial: bool = False,
        seconds: int = 300,
        silence: float = 120.0,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Events after `resource_version`, bookmarks included; ends when the server ends the watch.

        Expired when the server no longer has that version: list again. Unavailable when the connection is cut, or
        nothing arrives for `silence` seconds. With `initial`, the first events are all existing objects, followed
        by a bookmark that ends them. A caller that stops early closes the generator (`contextlib.aclosing`).
        """
        query = {
            **_make_selectors(labels, fields),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        if resource_version:
            query["resourceVersion"] = resource_version
        if initial:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        request = KubeRequest("GET", kind.path(namespace), query)
        return watch_events(self._transport, request, silence=silence)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Query | None = None,
        content_type: str = JSON,
    ) -> Any:
        """Sends any request with a JSON body and a JSON response, for what has no method above. POST is not retried."""
        encoded = None if body is None else msgspec.json.encode(body)
        return await self._request_json(
            KubeRequest(method, path, query or {}, encoded, content_type)
        )

    async def get_text(self, path: str, *, query: Query | None = None) -> str:
        """The body of the response as text: /readyz, a pod's log."""
        request = KubeRequest("GET", path, query or {}, accept="*/*")
        response, _ = await self._send_with_retries(request)
        self._check_response(request, response)
        return response.body.decode(errors="replace")

    async def close(self) -> None:
        """Ends all requests and watches under way with Unavailable. May be called twice."""
        await self._transport.close()

    @property
    def closed(self) -> asyncio.Event:
        return self._transport.closed

    # --- below: one request with its retries ------------------------------------------------

    def _make_write_request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        content_type: str = JSON,
        query: Query | None = None,
    ) -> KubeRequest:
        parameters = {"fieldManager": self.manager, **(query or {})}
        data = msgspec.json.encode(body)
        if content_type == APPLY_PATCH:
            data = escape_for_yaml(data)
        return KubeRequest(method, path, parameters, data, content_type)

    async def _request_object(self, request: KubeRequest) -> KubeObject:
        decoded = await self._request_json(request)
        if not isinstance(decoded, dict):
            raise Unavailable(f"{request}: the answer is no object", reason="NotJson")
        return decoded

    async def _request_json(self, request: KubeRequest) -> Any:
        response, _ = await self._send_with_retries(request)
        self._check_response(request, response)
        try:
            return msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Not chained: the decoder's error may quote the body.
            raise Unavailable(f"{request}: the answer is not JSON", reason="NotJson") from None

    async def _send_with_retries(self, request: KubeRequest) -> tuple[KubeResponse, int]:
        """The last response, and the number of attempts."""
        time = asyncio.get_running_loop().time
        end = time() + self._retry_seconds
        total_pause = 0.0  # counted, not only measured: with a stepped clock a pause takes no time
        tries = 0
        while True:
            tries += 1
            response: KubeResponse | None = None
            cut: ConnectionCut | None = None
            try:
                response = await self._transport.exchange(request)
            except ConnectionCut as error:
                cut = error
            pause = pause_before_retry(request, response, tries)
            if pause is None or total_pause + pause > self._retry_seconds or time() + pause > end:
                if response is None:
                    assert cut is not None
                    raise cut
                return response, tries
            total_pause += pause
            await self._pause(pause)

    def _check_response(self, request: KubeRequest, response: KubeResponse) -> None:
        if 200 <= response.code < 300:
            return
        status = parse_status(response.body)
        raise make_error(response.code, status, operation=str(request), secret=request.is_secret)


def _make_selectors(labels: str, fields: str) -> dict[str, str]:
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    return {name: value for name, value in selectors.items() if value}


def _with_type(kind: KubeKind, body: Mapping[str, Any]) -> KubeObject:
    """The body with its apiVersion and kind: the server leaves them out of lists, and requires them in requests."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **body}


def _namespace_of(body: Mapping[str, Any]) -> str:
    return str((body.get("metadata") or {}).get("namespace") or "")

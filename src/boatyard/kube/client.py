"""Requests to a Kubernetes API: get, list, create, replace, patch, apply, delete, evict, watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from boatyard.kube.applied import as_yaml
from boatyard.kube.config import KubeConfig
from boatyard.kube.credentials import Now, wall_clock
from boatyard.kube.errors import Expired, disrupts, error_for, parse_status
from boatyard.kube.gate import Gate
from boatyard.kube.kinds import PODS, Kind
from boatyard.kube.patience import pause_before_retry
from boatyard.kube.transport import Answer, Cut, Query, Question, Transport
from boatyard.kube.watching import WatchEvent, watch_events
from boatyard.model.errors import Unavailable

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = (
    "application/apply-patch+yaml"  # JSON is YAML; the server knows apply by this name only
)
_STRICT = {"fieldValidation": "Strict"}

Object = dict[str, Any]
Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Listed:
    items: list[Object]
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
        gate: Gate | None = None,
    ) -> None:
        self.config = config
        self.manager = manager
        self._patience = patience
        self._pause = pause
        self._transport = Transport(
            config,
            agent=manager,
            timeout=timeout,
            now=now,
            plugin_seconds=plugin_seconds,
            gate=gate,
        )

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object:
        return await self._object(Question("GET", kind.path(namespace, name)))

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        page: int = 500,
    ) -> Listed:
        """All objects at one resourceVersion, read in pages. Starts over when that version expires half way."""
        path = kind.path(namespace)
        query = _selecting(labels, fields)
        for limit in (page, page, 0):  # the last without pages: it cannot expire half way
            try:
                return await self._pages(path, query, limit)
            except Expired:
                if limit == 0:
                    raise
        raise AssertionError("unreachable")

    async def _pages(self, path: str, query: Query, limit: int) -> Listed:
        items: list[Object] = []
        continue_token = ""
        while True:
            parameters = dict(query)
            if limit:
                parameters["limit"] = str(limit)
            if continue_token:
                parameters["continue"] = continue_token
            page = await self._object(Question("GET", path, parameters))
            items += page.get("items") or ()
            metadata = page.get("metadata") or {}
            continue_token = metadata.get("continue") or ""
            if not continue_token:
                return Listed(items, str(metadata.get("resourceVersion") or ""))

    async def create(self, kind: Kind, body: Mapping[str, Any], namespace: str = "") -> Object:
        """Creates the object. Exists when the name is taken. Not retried when the first attempt may have succeeded."""
        namespace = namespace or _namespace(body)
        request = self._writing("POST", kind.path(namespace), _complete(kind, body))
        return await self._object(request)

    async def replace(
        self, kind: Kind, body: Mapping[str, Any], namespace: str = "", *, subresource: str = ""
    ) -> Object:
        """Replaces the object of this name.

        With a resourceVersion in its metadata, Conflict when that is no longer the current one.
        """
        name = str((body.get("metadata") or {}).get("name") or "")
        path = kind.path(namespace or _namespace(body), name, subresource)
        return await self._object(self._writing("PUT", path, _complete(kind, body)))

    async def merge_patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str = "",
        *,
        subresource: str = "",
        strict: bool = False,
    ) -> Object:
        """Sets the fields in `patch`; None removes a field. NotFound when there is no such object.

        With a resourceVersion in its metadata, Conflict when that is no longer the current one. `strict`: a
        field that the kind does not have is Refused, not dropped.
        """
        path = kind.path(namespace, name, subresource)
        query = _STRICT if strict else {}
        return await self._object(self._writing("PATCH", path, patch, MERGE_PATCH, query))

    async def apply(
        self,
        kind: Kind,
        name: str,
        body: Mapping[str, Any],
        namespace: str = "",
        *,
        subresource: str = "",
        force: bool = True,
        strict: bool = False,
        manager: str = "",
    ) -> Object:
        """Server-side apply: we own the fields in `body`; fields that we applied before and leave out now are removed.

        Creates the object when there is none (never through a subresource: NotFound). Without `force`, a field
        that another manager owns with another value is a Conflict; so is a resourceVersion in its metadata
        that is no longer the current one. `strict`: a field that the kind does not have is Refused.
        `manager` applies under another field manager: neither removes the fields of the other.
        """
        manifest = _complete(kind, body)
        manifest["metadata"] = {**manifest.get("metadata", {}), "name": name}
        path = kind.path(namespace, name, subresource)
        query = {"force": "true"} if force else {}
        if strict:
            query |= _STRICT
        if manager:
            query["fieldManager"] = manager
        return await self._object(self._writing("PATCH", path, manifest, APPLY_PATCH, query))

    async def delete(
        self,
        kind: Kind,
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
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation:
            options["propagationPolicy"] = propagation
        request = Question("DELETE", kind.path(namespace, name), body=msgspec.json.encode(options))
        response, tries = await self._ask(request)
        # An earlier attempt whose response was lost may have deleted it.
        if response.code == 404:
            return tries > 1
        self._check(request, response)
        return True

    async def evict(self, pod: str, namespace: str, *, grace: int | None = None) -> bool:
        """Evicts a pod. True when it is being deleted or is gone, False while a disruption budget forbids it."""
        eviction: Object = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        if grace is not None:
            eviction["deleteOptions"] = {"gracePeriodSeconds": grace}
        path = PODS.path(namespace, pod, "eviction")
        request = Question("POST", path, body=msgspec.json.encode(eviction))
        response, _ = await self._ask(request)
        if response.code == 404:
            return True
        if response.code == 429 and disrupts(parse_status(response.body)):
            return False
        self._check(request, response)
        return True

    def watch(
        self,
        kind: Kind,
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
            **_selecting(labels, fields),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        if resource_version:
            query["resourceVersion"] = resource_version
        if initial:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        request = Question("GET", kind.path(namespace), query)
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
        return await self._json(Question(method, path, query or {}, encoded, content_type))

    async def text(self, path: str, *, query: Query | None = None) -> str:
        """The body of the response as text: /readyz, a pod's log."""
        request = Question("GET", path, query or {}, accept="*/*")
        response, _ = await self._ask(request)
        self._check(request, response)
        return response.body.decode(errors="replace")

    async def close(self) -> None:
        """Ends all requests and watches under way with Unavailable. May be called twice."""
        await self._transport.close()

    @property
    def closed(self) -> asyncio.Event:
        return self._transport.closed

    # --- below: one request with its retries ------------------------------------------------

    def _writing(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        content_type: str = JSON,
        query: Query | None = None,
    ) -> Question:
        parameters = {"fieldManager": self.manager, **(query or {})}
        data = msgspec.json.encode(body)
        if content_type == APPLY_PATCH:
            data = as_yaml(data)
        return Question(method, path, parameters, data, content_type)

    async def _object(self, request: Question) -> Object:
        decoded = await self._json(request)
        if not isinstance(decoded, dict):
            raise Unavailable(f"{request}: the answer is no object", reason="NotJson")
        return decoded

    async def _json(self, request: Question) -> Any:
        response, _ = await self._ask(request)
        self._check(request, response)
        try:
            return msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Not chained: the decoder's error may quote the body.
            raise Unavailable(f"{request}: the answer is not JSON", reason="NotJson") from None

    async def _ask(self, request: Question) -> tuple[Answer, int]:
        """The last response, and the number of attempts."""
        time = asyncio.get_running_loop().time
        end = time() + self._patience
        total_pause = 0.0  # counted, not only measured: with a stepped clock a pause takes no time
        tries = 0
        while True:
            tries += 1
            response: Answer | None = None
            cut: Cut | None = None
            try:
                response = await self._transport.exchange(request)
            except Cut as error:
                cut = error
            pause = pause_before_retry(request, response, tries)
            if pause is None or total_pause + pause > self._patience or time() + pause > end:
                if response is None:
                    assert cut is not None
                    raise cut
                return response, tries
            total_pause += pause
            await self._pause(pause)

    def _check(self, request: Question, response: Answer) -> None:
        if 200 <= response.code < 300:
            return
        status = parse_status(response.body)
        raise error_for(response.code, status, operation=str(request), secret=request.secret)


def _selecting(labels: str, fields: str) -> dict[str, str]:
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    return {name: value for name, value in selectors.items() if value}


def _complete(kind: Kind, body: Mapping[str, Any]) -> Object:
    """The body with its apiVersion and kind: the server leaves them out of lists, and requires them in requests."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **body}


def _namespace(body: Mapping[str, Any]) -> str:
    return str((body.get("metadata") or {}).get("namespace") or "")

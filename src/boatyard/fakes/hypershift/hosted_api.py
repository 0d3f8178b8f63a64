"""Serves the hosted API servers, only as far as shows that they run: health, version, nodes. No workload.

One listener serves all clusters of a hub; the path in a kubeconfig's server names the cluster. Answers come from the
same copies as decisions; nothing can be written.
"""

from __future__ import annotations

import json
import ssl
import tempfile
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hmac import compare_digest
from typing import Any

from aiohttp import web

from boatyard.fakes.hypershift.api_client import ApiError, ApiServerClient
from boatyard.fakes.hypershift.certificates import make_authority, sign_server_certificate
from boatyard.fakes.hypershift.kinds import NAMESPACES, SECRETS
from boatyard.fakes.hypershift.names import SYSTEM_NAMESPACE, Object
from boatyard.fakes.hypershift.objects import (
    conditions_of,
    created_at,
    find_condition,
    format_time,
    get_nested,
    is_true,
    status_of,
)

AUTHORITY_SECRET = "player-authority"
HEALTH_PATHS = ("healthz", "livez", "readyz")


class BadAddress(ValueError):
    """A text that is no HOST:PORT, or an address that cannot be bound."""


def parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadAddress(f"no address {text!r}: say HOST:PORT, such as 127.0.0.1:6443")
    return host.strip("[]"), int(port)


async def ensure_authority(api: ApiServerClient, now: float) -> tuple[str, str]:
    """The hub's certificate authority, created if missing and stored there: kubeconfigs that trust it outlive us."""
    for _ in range(2):
        try:
            secret = await api.get(SECRETS, SYSTEM_NAMESPACE, AUTHORITY_SECRET)
            data = {name: b64decode(value).decode() for name, value in secret["data"].items()}
            return data["tls.crt"], data["tls.key"]
        except ApiError as error:
            if not error.is_not_found:
                raise
        certificate, key = make_authority(now)
        await _create_if_missing(
            api, NAMESPACES, {"kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
        )
        pem_files = {"tls.crt": certificate, "tls.key": key}
        body = {
            "kind": "Secret",
            "metadata": {"name": AUTHORITY_SECRET, "namespace": SYSTEM_NAMESPACE},
            "data": {name: b64encode(text.encode()).decode() for name, text in pem_files.items()},
        }
        await _create_if_missing(api, SECRETS, body)
    raise ApiError(0, "NoAuthority", f"Secret {SYSTEM_NAMESPACE}/{AUTHORITY_SECRET} does not stay")


async def _create_if_missing(api: ApiServerClient, kind: Any, body: Object) -> None:
    try:
        await api.create(kind, {"apiVersion": kind.api_version, **body})
    except ApiError as error:
        if not error.is_already_exists:
            raise


FindHostedCluster = Callable[[str, str], tuple[Object, str, list[Object]] | None]
"""Returns a cluster's object, the token of its kubeconfig, and its machines; None when it has no kubeconfig."""


@asynccontextmanager
async def serve_hosted_apis(
    find: FindHostedCluster, host: str, port: int, authority: tuple[str, str], now: float
) -> AsyncIterator[None]:
    """Serves the hosted APIs while the block runs. OSError when the address cannot be bound."""
    app = web.Application()
    app.router.add_get("/clusters/{namespace}/{name}/{rest:.*}", _HostedApiHandler(find).handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        context = _make_tls_context(sign_server_certificate(*authority, host, now))
        site = web.TCPSite(runner, host, port, ssl_context=context, reuse_address=True)
        await site.start()
        yield
    finally:
        await runner.cleanup()


def _make_tls_context(pair: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile(
        "w"
    ) as file:  # the loader needs a path; nobody else may read it
        file.write(pair)
        file.flush()
        context.load_cert_chain(file.name)
    return context


class _HostedApiHandler:
    def __init__(self, find: FindHostedCluster) -> None:
        self._find_cluster = find

    async def handle(self, request: web.Request) -> web.Response:
        hosted_cluster = self._find_cluster(
            request.match_info["namespace"], request.match_info["name"]
        )
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        # A caller without the token learns nothing, not even whether there is such a cluster.
        if hosted_cluster is None or not compare_digest(token.encode(), hosted_cluster[1].encode()):
            return _error_response(401, "Unauthorized", "Unauthorized")
        cluster, _, machines = hosted_cluster
        if not is_true(cluster, "KubeAPIServerAvailable"):
            return _error_response(503, "ServiceUnavailable", "the API server is down")
        path = request.match_info["rest"].rstrip("/")
        if path.split("/")[0] in HEALTH_PATHS:
            return web.Response(text="ok")
        if path == "version":
            return web.json_response(_render_version(cluster))
        if path == "api/v1/nodes":
            return web.json_response(_render_nodes(machines))
        return _error_response(404, "NotFound", "the server could not find the requested resource")


def _render_version(cluster: Object) -> Object:
    history = get_nested(status_of(cluster), "version", "history") or []
    version = next(
        (entry["version"] for entry in history if entry["state"] == "Completed"), "0.0.0"
    )
    # OpenShift 4.N is Kubernetes 1.(N+13).
    major, minor = (int(part) for part in version.split(".")[:2])
    number = 13 + minor + (23 if major == 5 else 0)
    return {
        "major": "1",
        "minor": str(number),
        "gitVersion": f"v1.{number}.0",
        "platform": "player",
    }


def _render_nodes(machines: list[Object]) -> Object:
    items = [
        _render_node(machine)
        for machine in machines
        if get_nested(status_of(machine), "nodeRef", "name")
    ]
    return {
        "apiVersion": "v1",
        "kind": "NodeList",
        "metadata": {"resourceVersion": "1"},
        "items": items,
    }


def _render_node(machine: Object) -> Object:
    condition = find_condition(conditions_of(machine), "NodeHealthy") or {}
    healthy = condition.get("status") == "True"
    return {
        "metadata": {
            "name": machine["status"]["nodeRef"]["name"],
            "uid": machine["metadata"]["uid"],
            "creationTimestamp": format_time(created_at(machine)),
            "labels": {"node-role.kubernetes.io/worker": ""},
        },
        "spec": {"providerID": get_nested(machine, "spec", "providerID")},
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if healthy else "Unknown",
                    "reason": "KubeletReady" if healthy else "NodeStatusUnknown",
                    "lastTransitionTime": condition.get("lastTransitionTime"),
                }
            ],
            "addresses": [{"type": "Hostname", "address": machine["status"]["nodeRef"]["name"]}],
        },
    }


def _error_response(code: int, reason: str, message: str) -> web.Response:
    body = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return web.Response(status=code, text=json.dumps(body), content_type="application/json")

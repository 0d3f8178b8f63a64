"""What a hosted control plane publishes: its endpoints, kubeconfig and password. Pure."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode

from boatyard.fakes.hypershift.kinds import CLUSTERS, SECRETS
from boatyard.fakes.hypershift.names import (
    CLUSTER_UID_LABEL,
    SERVER_ANNOTATION,
    Object,
    control_plane_namespace,
    kubeconfig_secret,
    password_secret,
)
from boatyard.fakes.hypershift.objects import (
    annotations_of,
    get_nested,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedClusterSnapshot
from boatyard.fakes.hypershift.writes import CreateObject, PatchObject, Write

ROUTE_DOMAIN = "apps.hub.example"


def find_endpoint(cluster: Object, service: str = "APIServer") -> tuple[str, int]:
    """Host and port of a service, by its publishing strategy."""
    strategy = next(
        (
            entry.get("servicePublishingStrategy") or {}
            for entry in spec_of(cluster).get("services") or []
            if entry.get("service") == service
        ),
        {},
    )
    home = control_plane_namespace(namespace_of(cluster), name_of(cluster))
    number = zlib.crc32(f"{service} {home}".encode())
    match strategy.get("type"):
        case "NodePort":
            port = get_nested(strategy, "nodePort", "port")
            return get_nested(strategy, "nodePort", "address"), int(port or 30000 + number % 2768)
        case "LoadBalancer":
            # Without a host name, an address of a range that is never in use (TEST-NET-1).
            host = get_nested(strategy, "loadBalancer", "hostname") or f"192.0.2.{1 + number % 254}"
            return host, int(get_nested(cluster, "spec", "networking", "apiServer", "port") or 6443)
        case _:
            host = get_nested(strategy, "route", "hostname")
            return host or f"{service.lower()}-{home}.{ROUTE_DOMAIN}", 443


def has_password(cluster: Object) -> bool:
    """Whether a cluster has a kubeadmin password: not if it has identity providers of its own."""
    return not get_nested(cluster, "spec", "configuration", "oauth", "identityProviders")


def publish_kubeconfig(snapshot: HostedClusterSnapshot, settings: FakeSettings) -> list[Write]:
    """Writes that create or correct the Secret of the kubeconfig."""
    assert snapshot.cluster is not None
    cluster, existing = (
        snapshot.cluster,
        snapshot.secrets.get(kubeconfig_secret(name_of(snapshot.cluster))),
    )
    server = _server_url(cluster, settings)
    if existing is not None and annotations_of(existing).get(SERVER_ANNOTATION) == server:
        return []
    authority = settings.hosted_api.authority if settings.hosted_api else ""
    data = {
        "kubeconfig": _to_base64(_render_kubeconfig(server, settings.make_secret_text(), authority))
    }
    metadata = {"annotations": {SERVER_ANNOTATION: server}}
    if existing is not None:
        return [PatchObject(SECRETS, existing, {"metadata": metadata, "data": data})]
    secret = _make_secret(cluster, kubeconfig_secret(name_of(cluster)), data)
    secret["metadata"] |= metadata
    return [CreateObject(SECRETS, secret)]


def read_token(secret: Object) -> str:
    """The token in a kubeconfig of the fake; a text that no kubeconfig contains if the Secret was tampered with."""
    try:
        kubeconfig = json.loads(b64decode(secret["data"]["kubeconfig"]))
        return str(kubeconfig["users"][0]["user"]["token"])
    except (ValueError, KeyError, IndexError, TypeError):
        return uid_of(secret)


def publish_password(snapshot: HostedClusterSnapshot, settings: FakeSettings) -> list[Write]:
    assert snapshot.cluster is not None
    name = password_secret(name_of(snapshot.cluster))
    if not has_password(snapshot.cluster) or name in snapshot.secrets:
        return []
    data = {"password": _to_base64(settings.make_secret_text())}
    return [CreateObject(SECRETS, _make_secret(snapshot.cluster, name, data))]


def _server_url(cluster: Object, settings: FakeSettings) -> str:
    if settings.hosted_api is not None:
        # One listener serves all clusters; the path names the cluster.
        path = f"clusters/{namespace_of(cluster)}/{name_of(cluster)}"
        return f"https://{settings.hosted_api.address}/{path}"
    host, port = find_endpoint(cluster)
    return f"https://{host}:{port}"


def _render_kubeconfig(server: str, token: str, authority: str) -> str:
    cluster = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = b64encode(authority.encode()).decode()
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "admin",
            "contexts": [{"name": "admin", "context": {"cluster": "cluster", "user": "admin"}}],
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token}}],
        }
    )


def _make_secret(cluster: Object, name: str, data: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "namespace": namespace_of(cluster),
            "labels": {CLUSTER_UID_LABEL: uid_of(cluster)},
            "ownerReferences": [owner_reference(cluster)],
        },
        "data": data,
    }


def owner_reference(cluster: Object) -> Object:
    return {
        "apiVersion": CLUSTERS.api_version,
        "kind": CLUSTERS.name,
        "name": name_of(cluster),
        "uid": uid_of(cluster),
    }


def _to_base64(text: str) -> str:
    return b64encode(text.encode()).decode()

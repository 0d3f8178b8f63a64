"""What a hosted control plane publishes: its endpoints, kubeconfig and password. Pure."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode

from boatyard.fakes.hypershift.kinds import CLUSTERS, SECRETS
from boatyard.fakes.hypershift.names import (
    ANSWERED_AT,
    PLAYED_FOR,
    Object,
    control_plane_namespace,
    kubeconfig_secret,
    password_secret,
)
from boatyard.fakes.hypershift.objects import (
    annotations_of,
    inside,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from boatyard.fakes.hypershift.observation import Manner, Seen
from boatyard.fakes.hypershift.writes import Change, Create, Write

DOMAIN = "apps.hub.example"


def endpoint(cluster: Object, service: str = "APIServer") -> tuple[str, int]:
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
            port = inside(strategy, "nodePort", "port")
            return inside(strategy, "nodePort", "address"), int(port or 30000 + number % 2768)
        case "LoadBalancer":
            # Without a host name, an address of a range that is never in use (TEST-NET-1).
            host = inside(strategy, "loadBalancer", "hostname") or f"192.0.2.{1 + number % 254}"
            return host, int(inside(cluster, "spec", "networking", "apiServer", "port") or 6443)
        case _:
            host = inside(strategy, "route", "hostname")
            return host or f"{service.lower()}-{home}.{DOMAIN}", 443


def has_password(cluster: Object) -> bool:
    """Whether a cluster has a kubeadmin password: not if it has identity providers of its own."""
    return not inside(cluster, "spec", "configuration", "oauth", "identityProviders")


def publish_kubeconfig(snapshot: Seen, settings: Manner) -> list[Write]:
    """Writes that create or correct the Secret of the kubeconfig."""
    assert snapshot.cluster is not None
    cluster, existing = (
        snapshot.cluster,
        snapshot.secrets.get(kubeconfig_secret(name_of(snapshot.cluster))),
    )
    server = _server(cluster, settings)
    if existing is not None and annotations_of(existing).get(ANSWERED_AT) == server:
        return []
    authority = settings.answering.authority if settings.answering else ""
    data = {"kubeconfig": _encoded(_kubeconfig(server, settings.make_word(), authority))}
    metadata = {"annotations": {ANSWERED_AT: server}}
    if existing is not None:
        return [Change(SECRETS, existing, {"metadata": metadata, "data": data})]
    secret = _secret(cluster, kubeconfig_secret(name_of(cluster)), data)
    secret["metadata"] |= metadata
    return [Create(SECRETS, secret)]


def token_of(secret: Object) -> str:
    """The token in a kubeconfig of the fake; a text that no kubeconfig contains if the Secret was tampered with."""
    try:
        kubeconfig = json.loads(b64decode(secret["data"]["kubeconfig"]))
        return str(kubeconfig["users"][0]["user"]["token"])
    except (ValueError, KeyError, IndexError, TypeError):
        return uid_of(secret)


def publish_password(snapshot: Seen, settings: Manner) -> list[Write]:
    assert snapshot.cluster is not None
    name = password_secret(name_of(snapshot.cluster))
    if not has_password(snapshot.cluster) or name in snapshot.secrets:
        return []
    data = {"password": _encoded(settings.make_word())}
    return [Create(SECRETS, _secret(snapshot.cluster, name, data))]


def _server(cluster: Object, settings: Manner) -> str:
    if settings.answering is not None:
        # One listener serves all clusters; the path names the cluster.
        path = f"clusters/{namespace_of(cluster)}/{name_of(cluster)}"
        return f"https://{settings.answering.address}/{path}"
    host, port = endpoint(cluster)
    return f"https://{host}:{port}"


def _kubeconfig(server: str, token: str, authority: str) -> str:
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


def _secret(cluster: Object, name: str, data: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "namespace": namespace_of(cluster),
            "labels": {PLAYED_FOR: uid_of(cluster)},
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


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()

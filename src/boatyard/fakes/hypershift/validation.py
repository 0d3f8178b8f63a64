"""What HyperShift's webhooks and controllers refuse although its CRDs accept it. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from boatyard.fakes.hypershift.names import Object, control_plane_namespace
from boatyard.fakes.hypershift.objects import (
    get_nested,
    name_of,
    namespace_of,
    spec_of,
)

SERVICES = ("APIServer", "OAuthServer", "Konnectivity", "Ignition")
SUPPORTED_PLATFORMS = ("Agent", "KubeVirt", "None")
MAX_LABEL_LENGTH = 63

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


def find_cluster_problems(cluster: Object) -> list[str]:
    """Why a HostedCluster cannot be carried out, field by field; empty when it can."""
    spec = spec_of(cluster)
    return [
        *_name_problems(cluster),
        *_platform_problems(spec),
        *_service_problems(spec),
        *_network_problems(spec),
        *_encryption_problems(spec),
    ]


def find_pool_problems(pool: Object, cluster: Object) -> list[str]:
    """Why a NodePool's machines cannot be made; empty when they can."""
    return list(_pool_problems(spec_of(pool), spec_of(cluster)))


def _name_problems(cluster: Object) -> Iterator[str]:
    namespace = control_plane_namespace(namespace_of(cluster), name_of(cluster))
    if len(namespace) > MAX_LABEL_LENGTH:
        yield (
            f"metadata.name: the control plane's namespace {namespace} "
            f"would be longer than {MAX_LABEL_LENGTH} characters"
        )


def _platform_problems(spec: Object) -> Iterator[str]:
    kind = get_nested(spec, "platform", "type")
    if kind not in SUPPORTED_PLATFORMS:
        yield f"spec.platform.type: {kind} is not played here; {', '.join(SUPPORTED_PLATFORMS)} are"
    if kind == "Agent" and not get_nested(spec, "platform", "agent", "agentNamespace"):
        yield "spec.platform.agent.agentNamespace: required with platform type Agent"
    if kind == "KubeVirt" and get_nested(spec, "platform", "kubevirt") is None:
        yield "spec.platform.kubevirt: required with platform type KubeVirt"


def _service_problems(spec: Object) -> Iterator[str]:
    published = [entry for entry in spec.get("services") or [] if isinstance(entry, dict)]
    counts = Counter(entry.get("service") for entry in published)
    for service in SERVICES:
        if counts[service] > 1:
            yield f"spec.services: {service} is published {counts[service]} times"
        if not counts[service]:
            yield f"spec.services: {service} is not published"
    hosts = Counter(
        get_nested(entry, "servicePublishingStrategy", "route", "hostname") for entry in published
    )
    for host, times in hosts.items():
        if host and times > 1:
            yield f"spec.services: the route host name {host} is given to {times} services"


def _network_problems(spec: Object) -> Iterator[str]:
    networks: list[tuple[str, IpNetwork]] = []
    for field in ("machineNetwork", "clusterNetwork", "serviceNetwork"):
        for entry in get_nested(spec, "networking", field) or []:
            try:
                networks.append((field, ipaddress.ip_network(entry["cidr"], strict=False)))
            except (ValueError, KeyError, TypeError):
                yield f"spec.networking.{field}: {entry!r} holds no CIDR"
    for (field, network), (other_field, other_network) in combinations(networks, 2):
        if network.version == other_network.version and network.overlaps(other_network):
            yield f"spec.networking: {field} {network} overlaps {other_field} {other_network}"


def _encryption_problems(spec: Object) -> Iterator[str]:
    kind = get_nested(spec, "secretEncryption", "type")
    key = {"aescbc": "aescbc", "kms": "kms"}.get(kind or "")
    if key and not get_nested(spec, "secretEncryption", key):
        yield f"spec.secretEncryption.{key}: required with type {kind}"


def _pool_problems(spec: Object, cluster: Object) -> Iterator[str]:
    kind, cluster_kind = (
        get_nested(spec, "platform", "type"),
        get_nested(cluster, "platform", "type"),
    )
    if kind != cluster_kind:
        yield f"spec.platform.type: {kind} in a cluster of platform {cluster_kind}"
    if kind == "KubeVirt" and not get_nested(spec, "platform", "kubevirt", "rootVolume"):
        yield "spec.platform.kubevirt.rootVolume: required with platform type KubeVirt"

"""What HyperShift's webhooks and controllers refuse although its CRDs accept it. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from boatyard.fakes.hypershift.names import Object, control_plane_namespace
from boatyard.fakes.hypershift.objects import (
    inside,
    name_of,
    namespace_of,
    spec_of,
)

SERVICES = ("APIServer", "OAuthServer", "Konnectivity", "Ignition")
PLAYED = ("Agent", "KubeVirt", "None")
LONGEST_LABEL = 63

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def problems_of_cluster(cluster: Object) -> list[str]:
    """Why a HostedCluster cannot be carried out, field by field; empty when it can."""
    spec = spec_of(cluster)
    return [
        *_name_problems(cluster),
        *_platform_problems(spec),
        *_service_problems(spec),
        *_network_problems(spec),
        *_encryption_problems(spec),
    ]


def problems_of_pool(pool: Object, cluster: Object) -> list[str]:
    """Why a NodePool's machines cannot be made; empty when they can."""
    return list(_pool_problems(spec_of(pool), spec_of(cluster)))


def _name_problems(cluster: Object) -> Iterator[str]:
    namespace = control_plane_namespace(namespace_of(cluster), name_of(cluster))
    if len(namespace) > LONGEST_LABEL:
        yield (
            f"metadata.name: the control plane's namespace {namespace} "
            f"would be longer than {LONGEST_LABEL} characters"
        )


def _platform_problems(spec: Object) -> Iterator[str]:
    kind = inside(spec, "platform", "type")
    if kind not in PLAYED:
        yield f"spec.platform.type: {kind} is not played here; {', '.join(PLAYED)} are"
    if kind == "Agent" and not inside(spec, "platform", "agent", "agentNamespace"):
        yield "spec.platform.agent.agentNamespace: required with platform type Agent"
    if kind == "KubeVirt" and inside(spec, "platform", "kubevirt") is None:
        yield "spec.platform.kubevirt: required with platform type KubeVirt"


def _service_problems(spec: Object) -> Iterator[str]:
    published = [one for one in spec.get("services") or [] if isinstance(one, dict)]
    named = Counter(one.get("service") for one in published)
    for service in SERVICES:
        if named[service] > 1:
            yield f"spec.services: {service} is published {named[service]} times"
        if not named[service]:
            yield f"spec.services: {service} is not published"
    hosts = Counter(
        inside(one, "servicePublishingStrategy", "route", "hostname") for one in published
    )
    for host, times in hosts.items():
        if host and times > 1:
            yield f"spec.services: the route host name {host} is given to {times} services"


def _network_problems(spec: Object) -> Iterator[str]:
    networks: list[tuple[str, Network]] = []
    for field in ("machineNetwork", "clusterNetwork", "serviceNetwork"):
        for entry in inside(spec, "networking", field) or []:
            try:
                networks.append((field, ipaddress.ip_network(entry["cidr"], strict=False)))
            except (ValueError, KeyError, TypeError):
                yield f"spec.networking.{field}: {entry!r} holds no CIDR"
    for (field, one), (other_field, other) in combinations(networks, 2):
        if one.version == other.version and one.overlaps(other):
            yield f"spec.networking: {field} {one} overlaps {other_field} {other}"


def _encryption_problems(spec: Object) -> Iterator[str]:
    kind = inside(spec, "secretEncryption", "type")
    key = {"aescbc": "aescbc", "kms": "kms"}.get(kind or "")
    if key and not inside(spec, "secretEncryption", key):
        yield f"spec.secretEncryption.{key}: required with type {kind}"


def _pool_problems(spec: Object, cluster: Object) -> Iterator[str]:
    kind, theirs = inside(spec, "platform", "type"), inside(cluster, "platform", "type")
    if kind != theirs:
        yield f"spec.platform.type: {kind} in a cluster of platform {theirs}"
    if kind == "KubeVirt" and not inside(spec, "platform", "kubevirt", "rootVolume"):
        yield "spec.platform.kubevirt.rootVolume: required with platform type KubeVirt"

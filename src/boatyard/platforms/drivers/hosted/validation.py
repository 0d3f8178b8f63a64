"""Finds errors that HyperShift's CRDs accept and its controllers do not. Pure; called before anything is written.

Each function checks a finished manifest, so that errors of our own rendering are found as well. Field paths are those
of the order where it has the field, otherwise those of the manifest.
"""

from __future__ import annotations

import ipaddress
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from boatyard.model.errors import Refused, Violation
from boatyard.model.hub_names import LONGEST_LABEL, control_plane_namespace, is_label
from boatyard.platforms.drivers.hosted.kinds import (
    Manifest,
    ObservedObject,
    get_path,
    name_of,
    namespace_of,
)
from boatyard.platforms.drivers.hosted.settings import AGENT, KUBEVIRT, PLATFORMS

SERVICES = ("APIServer", "OAuthServer", "Konnectivity", "Ignition")
REASON = "BadCluster"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The order's field for each network of the manifest.
_NETWORKS = {
    "clusterNetwork": "pod_cidr",
    "serviceNetwork": "service_cidr",
    "machineNetwork": "machine_cidr",
}


def check_cluster(manifest: Manifest) -> None:
    """Refused with everything that is wrong with a HostedCluster."""
    spec = manifest["spec"]
    violations = [
        *_name(manifest),
        *_release(spec),
        *_platform(spec),
        *_services(spec),
        *_networks(spec),
        *_encryption(spec),
    ]
    if violations:
        raise Refused("", *violations, reason=REASON)


def check_pool(manifest: Manifest, cluster: ObservedObject) -> None:
    """Refused with everything that is wrong with a NodePool of this cluster."""
    violations = [*_pool(manifest, cluster)]
    if violations:
        raise Refused("", *violations, reason=REASON)


def check_pull_secret(text: str) -> None:
    """Refused when it is no pull secret. No message contains its text."""
    remedy = "paste the pull secret as it was given to you"
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("auths", {}), dict):
        problem = Violation("pull_secret", "it is no pull secret", remedy)
        raise Refused("", problem, reason=REASON)


def check_unchanged(existing: ObservedObject, desired: Manifest) -> None:
    """Refused when an immutable field should change. The CRD would accept most of these changes."""
    before, after = existing.get("spec") or {}, desired["spec"]
    violations = [
        Violation(field, f"a cluster keeps its {label}", "order another cluster for that")
        for field, label, path in _IMMUTABLE_FIELDS
        if _differs(get_path(before, *path), get_path(after, *path))
    ]
    if violations:
        raise Refused("", *violations, reason="NotChangeable")


_IMMUTABLE_FIELDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("hosted.platform", "platform", ("platform", "type")),
    ("hosted.agent-namespace", "hosts' namespace", ("platform", "agent", "agentNamespace")),
    (
        "hosted.base-domain-passthrough",
        "kind of domain",
        ("platform", "kubevirt", "baseDomainPassthrough"),
    ),
    ("hosted.publish", "way of being published", ("services",)),
    ("hosted.network-type", "kind of network", ("networking", "networkType")),
    ("pod_cidr", "pod network", ("networking", "clusterNetwork")),
    ("service_cidr", "service network", ("networking", "serviceNetwork")),
    ("machine_cidr", "machine network", ("networking", "machineNetwork")),
    ("ingress_name", "domain", ("dns",)),
    ("id", "identity", ("clusterID",)),
    ("id", "infrastructure's name", ("infraID",)),
    ("hosted.fips", "cryptography", ("fips",)),
    ("hosted.availability", "availability", ("controllerAvailabilityPolicy",)),
    (
        "hosted.infra-availability",
        "availability of services",
        ("infrastructureAvailabilityPolicy",),
    ),
    ("hosted.etcd-size", "etcd", ("etcd", "managed", "storage", "persistentVolume", "size")),
    (
        "hosted.etcd-storage-class",
        "etcd's storage",
        ("etcd", "managed", "storage", "persistentVolume", "storageClassName"),
    ),
)


def _differs(before: Any, after: Any) -> bool:
    """Whether a field of `after` differs in `before`. Missing fields do not count: HyperShift fills them in."""
    if after is None:
        return False
    if isinstance(after, Mapping) and isinstance(before, Mapping):
        return any(_differs(before.get(name), value) for name, value in after.items())
    if isinstance(after, list) and isinstance(before, list):
        return len(before) != len(after) or any(
            _differs(before_entry, after_entry)
            for before_entry, after_entry in zip(before, after, strict=True)
        )
    return bool(before != after)


def _name(manifest: Manifest) -> Iterator[Violation]:
    name, namespace = name_of(manifest), namespace_of(manifest)
    if not is_label(name):
        yield Violation("metadata.name", f"{name!r} is no label", "this is a fault of ours")
    control_plane = control_plane_namespace(namespace, name)
    if len(control_plane) > LONGEST_LABEL:
        yield Violation(
            "metadata.namespace",
            f"the control plane's namespace {control_plane} has more than {LONGEST_LABEL} characters",
            "choose a shorter namespace for orders",
        )


def _release(spec: Manifest) -> Iterator[Violation]:
    image = get_path(spec, "release", "image") or ""
    if len(image) < 2 or any(letter.isspace() for letter in image):
        yield Violation("release_image", f"{image!r} is no image", "name the release's image")


def _platform(spec: Manifest) -> Iterator[Violation]:
    kind = get_path(spec, "platform", "type")
    if kind not in PLATFORMS:
        choices = ", ".join(PLATFORMS)
        yield Violation("hosted.platform", f"{kind!r} is not hosted", f"choose one of {choices}")
    if kind == AGENT and not get_path(spec, "platform", "agent", "agentNamespace"):
        yield Violation("hosted.agent-namespace", "no namespace of hosts is named", "name it")
    if kind == KUBEVIRT and get_path(spec, "platform", "kubevirt") is None:
        yield Violation("spec.platform.kubevirt", "it is missing", "this is a fault of ours")


def _services(spec: Manifest) -> Iterator[Violation]:
    published = spec.get("services") or []
    counts = Counter(entry.get("service") for entry in published)
    for service in SERVICES:
        if counts[service] != 1:
            yield Violation(
                "hosted.publish",
                f"{service} is published {counts[service]} times",
                "each of the four services is published once",
            )
    hosts = Counter(
        get_path(entry, "servicePublishingStrategy", "route", "hostname") for entry in published
    )
    for host, count in hosts.items():
        if host and count > 1:
            yield Violation(
                "hosted.route-domain",
                f"{count} services have the host name {host}",
                "give each service a name of its own",
            )
    ports = Counter(
        (get_path(port, "address"), get_path(port, "port"))
        for entry in published
        if (port := get_path(entry, "servicePublishingStrategy", "nodePort"))
        and get_path(port, "port")
    )
    for (address, port), count in ports.items():
        if count > 1:
            yield Violation(
                "hosted.publish-address",
                f"{count} services are at {address}:{port}",
                "give each service a port of its own",
            )


def _networks(spec: Manifest) -> Iterator[Violation]:
    networks: list[tuple[str, Network]] = []
    for name, field in _NETWORKS.items():
        for entry in get_path(spec, "networking", name) or []:
            cidr = str(get_path(entry, "cidr") or "")
            try:
                networks.append((field, ipaddress.ip_network(cidr)))
            except ValueError:
                remedy = "write it as in 10.132.0.0/14, with the first address of the network"
                yield Violation(field, f"{cidr!r} is no network", remedy)
    for (field, network), (other_field, other) in combinations(networks, 2):
        if network.version == other.version and network.overlaps(other):
            yield Violation(
                field,
                f"{network} overlaps {other_field} {other}",
                "choose networks that have no address in common",
            )


def _encryption(spec: Manifest) -> Iterator[Violation]:
    kind = get_path(spec, "secretEncryption", "type")
    if kind and not get_path(spec, "secretEncryption", kind):
        path = f"spec.secretEncryption.{kind}"
        yield Violation(path, "the key to encrypt with is missing", "name it")


def _pool(manifest: Manifest, cluster: ObservedObject) -> Iterator[Violation]:
    spec = manifest["spec"]
    name, kind = name_of(manifest), get_path(spec, "platform", "type")
    if not is_label(name):
        yield Violation("node_set", f"the node pool's name {name!r} is no label", "choose another")
    here = name_of(cluster), namespace_of(cluster)
    if (spec.get("clusterName"), namespace_of(manifest)) != here:
        yield Violation("spec.clusterName", "there is no such cluster", "this is a fault of ours")
    yield from _release(spec)
    if kind != get_path(cluster, "spec", "platform", "type"):
        yield Violation("hosted.platform", "the nodes' is not the cluster's", "choose one")
    if kind == AGENT and not get_path(
        spec, "platform", "agent", "agentLabelSelector", "matchLabels"
    ):
        # Without a selector the pool would take any free host.
        path = "spec.platform.agent.agentLabelSelector"
        yield Violation(path, "no host is chosen", "this is a fault of ours")
    sized = all(get_path(spec, "platform", "kubevirt", part) for part in ("rootVolume", "compute"))
    if kind == KUBEVIRT and not sized:
        yield Violation("spec.platform.kubevirt", "it has no size", "this is a fault of ours")
    if spec.get("replicas") is not None and spec.get("autoScaling") is not None:
        yield Violation("spec.replicas", "it is set beside autoScaling", "this is a fault of ours")

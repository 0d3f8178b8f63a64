"""Kinds, labels and annotations of HyperShift, Cluster API and the assisted service, and how to read objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boatyard.kube.kinds import Kind

Manifest = dict[str, Any]
Seen = Mapping[str, Any]  # an object as read from the API server

HYPERSHIFT = "hypershift.openshift.io"
HOSTED_CLUSTERS = Kind(HYPERSHIFT, "v1beta1", "hostedclusters", "HostedCluster", True)
NODE_POOLS = Kind(HYPERSHIFT, "v1beta1", "nodepools", "NodePool", True)
AGENTS = Kind("agent-install.openshift.io", "v1beta1", "agents", "Agent", True)
CLUSTER_ORDERS = Kind("osac.openshift.io", "v1alpha1", "clusterorders", "ClusterOrder", True)
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True)

CLUSTER_API = "cluster.x-k8s.io"


def machines_kind(version: str) -> Kind:
    """Returns the kind of Machines in this version of Cluster API."""
    return Kind(CLUSTER_API, version, "machines", "Machine", True)


# On a Machine: the NodePool it belongs to, as <namespace>/<name>.
NODE_POOL_OF_MACHINE = "hypershift.openshift.io/nodePool"
# On a Machine: it is deleted first when its set shrinks; and it is deleted without being drained.
DELETE_FIRST = "cluster.x-k8s.io/delete-machine"
WITHOUT_DRAINING = "machine.cluster.x-k8s.io/exclude-node-draining"
# Label of an Agent that belongs to a machine.
AGENT_TAKEN = "agentMachineRef"
# Prefix of the provider id of a Machine on the Agent platform; the name of its Agent follows.
AGENT_PROVIDER = "agent://"

# Where HyperShift says which versions it can host.
SUPPORTED_VERSIONS = "supported-versions"


def metadata(obj: Seen) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = obj.get("metadata") or {}
    return fields


def name_of(obj: Seen) -> str:
    return str(metadata(obj).get("name") or "")


def namespace_of(obj: Seen) -> str:
    return str(metadata(obj).get("namespace") or "")


def uid_of(obj: Seen) -> str:
    return str(metadata(obj).get("uid") or "")


def version_of(obj: Seen) -> str:
    return str(metadata(obj).get("resourceVersion") or "")


def generation_of(obj: Seen) -> int:
    """Returns the generation, which changes with the spec but not with labels and annotations."""
    return int(metadata(obj).get("generation") or 0)


def labels_of(obj: Seen) -> Mapping[str, str]:
    return metadata(obj).get("labels") or {}


def annotations_of(obj: Seen) -> Mapping[str, str]:
    return metadata(obj).get("annotations") or {}


def is_leaving(obj: Seen) -> bool:
    """Whether its deletion has been requested."""
    return bool(metadata(obj).get("deletionTimestamp"))


def at(obj: Any, *path: str) -> Any:
    """Returns the value under this path of names; None when a part of the path is missing."""
    for name in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(name)
    return obj

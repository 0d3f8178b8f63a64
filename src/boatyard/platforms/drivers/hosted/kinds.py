"""Kinds, labels and annotations of HyperShift, Cluster API and the assisted service, and how to read objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boatyard.kube.kinds import KubeKind

Manifest = dict[str, Any]
ObservedObject = Mapping[str, Any]  # an object as read from the API server

HYPERSHIFT = "hypershift.openshift.io"
HOSTED_CLUSTERS = KubeKind(HYPERSHIFT, "v1beta1", "hostedclusters", "HostedCluster", True)
NODE_POOLS = KubeKind(HYPERSHIFT, "v1beta1", "nodepools", "NodePool", True)
AGENTS = KubeKind("agent-install.openshift.io", "v1beta1", "agents", "Agent", True)
CLUSTER_ORDERS = KubeKind("osac.openshift.io", "v1alpha1", "clusterorders", "ClusterOrder", True)
NETWORK_POLICIES = KubeKind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True)

CLUSTER_API = "cluster.x-k8s.io"


def make_machines_kind(version: str) -> KubeKind:
    """Returns the kind of Machines in this version of Cluster API."""
    return KubeKind(CLUSTER_API, version, "machines", "Machine", True)


# On a Machine: the NodePool it belongs to, as <namespace>/<name>.
NODE_POOL_ANNOTATION = "hypershift.openshift.io/nodePool"
# On a Machine: it is deleted first when its set shrinks; and it is deleted without being drained.
DELETE_FIRST_ANNOTATION = "cluster.x-k8s.io/delete-machine"
NO_DRAIN_ANNOTATION = "machine.cluster.x-k8s.io/exclude-node-draining"
# Label of an Agent that belongs to a machine.
AGENT_MACHINE_LABEL = "agentMachineRef"
# Prefix of the provider id of a Machine on the Agent platform; the name of its Agent follows.
AGENT_PROVIDER_PREFIX = "agent://"

# Where HyperShift says which versions it can host.
SUPPORTED_VERSIONS = "supported-versions"


def metadata_of(obj: ObservedObject) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = obj.get("metadata") or {}
    return fields


def name_of(obj: ObservedObject) -> str:
    return str(metadata_of(obj).get("name") or "")


def namespace_of(obj: ObservedObject) -> str:
    return str(metadata_of(obj).get("namespace") or "")


def uid_of(obj: ObservedObject) -> str:
    return str(metadata_of(obj).get("uid") or "")


def resource_version_of(obj: ObservedObject) -> str:
    return str(metadata_of(obj).get("resourceVersion") or "")


def generation_of(obj: ObservedObject) -> int:
    """Returns the generation, which changes with the spec but not with labels and annotations."""
    return int(metadata_of(obj).get("generation") or 0)


def labels_of(obj: ObservedObject) -> Mapping[str, str]:
    return metadata_of(obj).get("labels") or {}


def annotations_of(obj: ObservedObject) -> Mapping[str, str]:
    return metadata_of(obj).get("annotations") or {}


def is_being_deleted(obj: ObservedObject) -> bool:
    """Whether its deletion has been requested."""
    return bool(metadata_of(obj).get("deletionTimestamp"))


def get_path(obj: Any, *path: str) -> Any:
    """Returns the value under this path of names; None when a part of the path is missing."""
    for name in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(name)
    return obj

"""Kinds of Kubernetes objects and the paths under which the API serves them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from boatyard.model.errors import Refused


@dataclass(frozen=True)
class Kind:
    """One kind as one version of the API serves it. The group of the core API is empty."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the objects of this kind; without a namespace, of those in all namespaces."""
        if name and self.namespaced and not namespace:
            raise Refused(f"{self.kind} {name} is asked for without its namespace")
        parts = [f"/apis/{self.group}" if self.group else "/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts += [_segment(part) for part in subresource.split("/")]
        return "/".join(parts)


def _segment(text: str) -> str:
    # A proxy or client would resolve "." and "..", and the request would reach another path.
    if text in ("", ".", ".."):
        raise Refused(f"{text!r} is no name of a Kubernetes object")
    return quote(text, safe="")


NAMESPACES = Kind("", "v1", "namespaces", "Namespace", False)
NODES = Kind("", "v1", "nodes", "Node", False)
PODS = Kind("", "v1", "pods", "Pod", True)
SERVICES = Kind("", "v1", "services", "Service", True)
SECRETS = Kind("", "v1", "secrets", "Secret", True)
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap", True)
SERVICE_ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount", True)
RESOURCE_QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota", True)
EVENTS = Kind("", "v1", "events", "Event", True)
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", True)
REPLICA_SETS = Kind("apps", "v1", "replicasets", "ReplicaSet", True)
DAEMON_SETS = Kind("apps", "v1", "daemonsets", "DaemonSet", True)
STATEFUL_SETS = Kind("apps", "v1", "statefulsets", "StatefulSet", True)
JOBS = Kind("batch", "v1", "jobs", "Job", True)
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease", True)
ENDPOINT_SLICES = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True)
DISRUPTION_BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True)
CSRS = Kind(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False
)
CRDS = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)
ROLES = Kind("rbac.authorization.k8s.io", "v1", "roles", "Role", True)
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)
CLUSTER_ROLES = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)

"""Kinds of Kubernetes objects and the paths under which the API serves them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from boatyard.model.errors import Refused


@dataclass(frozen=True)
class KubeKind:
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
            parts += ["namespaces", _quote_segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_quote_segment(name))
        if subresource:
            parts += [_quote_segment(part) for part in subresource.split("/")]
        return "/".join(parts)


def _quote_segment(text: str) -> str:
    # A proxy or client would resolve "." and "..", and the request would reach another path.
    if text in ("", ".", ".."):
        raise Refused(f"{text!r} is no name of a Kubernetes object")
    return quote(text, safe="")


NAMESPACES = KubeKind("", "v1", "namespaces", "Namespace", False)
NODES = KubeKind("", "v1", "nodes", "Node", False)
PODS = KubeKind("", "v1", "pods", "Pod", True)
SERVICES = KubeKind("", "v1", "services", "Service", True)
SECRETS = KubeKind("", "v1", "secrets", "Secret", True)
CONFIG_MAPS = KubeKind("", "v1", "configmaps", "ConfigMap", True)
SERVICE_ACCOUNTS = KubeKind("", "v1", "serviceaccounts", "ServiceAccount", True)
RESOURCE_QUOTAS = KubeKind("", "v1", "resourcequotas", "ResourceQuota", True)
EVENTS = KubeKind("", "v1", "events", "Event", True)
DEPLOYMENTS = KubeKind("apps", "v1", "deployments", "Deployment", True)
JOBS = KubeKind("batch", "v1", "jobs", "Job", True)
LEASES = KubeKind("coordination.k8s.io", "v1", "leases", "Lease", True)
DISRUPTION_BUDGETS = KubeKind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True)
CSRS = KubeKind(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False
)
CRDS = KubeKind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)
ROLES = KubeKind("rbac.authorization.k8s.io", "v1", "roles", "Role", True)
ROLE_BINDINGS = KubeKind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)
CLUSTER_ROLES = KubeKind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS = KubeKind(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)

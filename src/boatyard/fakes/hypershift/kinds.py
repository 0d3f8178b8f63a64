"""The kinds of objects that the fake reads and writes, and their paths on the API server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ObjectKind:
    """One kind: its group, version and names."""

    name: str
    plural: str
    version: str
    group: str = ""
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        root = f"/apis/{self.group}" if self.group else "/api"
        parts = [root, self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


HYPERSHIFT = "hypershift.openshift.io"
CLUSTERS = ObjectKind("HostedCluster", "hostedclusters", "v1beta1", HYPERSHIFT)
POOLS = ObjectKind("NodePool", "nodepools", "v1beta1", HYPERSHIFT)
MACHINES = ObjectKind("Machine", "machines", "v1beta1", "cluster.x-k8s.io")
AGENTS = ObjectKind("Agent", "agents", "v1beta1", "agent-install.openshift.io")
NAMESPACES = ObjectKind("Namespace", "namespaces", "v1", namespaced=False)
SECRETS = ObjectKind("Secret", "secrets", "v1")
CONFIG_MAPS = ObjectKind("ConfigMap", "configmaps", "v1")

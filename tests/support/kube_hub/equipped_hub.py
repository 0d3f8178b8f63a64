"""A Kubernetes hub for tests: a real API server with all that `hub check` looks for, and words to take parts away."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    LEASES,
    NAMESPACES,
    NODES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    KubeKind,
)
from boatyard.model.errors import Conflict, Exists, NotFound
from boatyard.model.generated.osac import Hub, HubSpec, Metadata
from boatyard.resources.hubs.access import HubAccess
from boatyard.resources.hubs.check.model import Rights, Roles
from boatyard.wiring.hub_clients import HubClients
from boatyard.wiring.hub_manifests import read_shipped_crds, read_shipped_roles
from tests.support.control_plane import ControlPlane

SYSTEM = "boatyard-system"
OPERATOR, AUTOMATION = "boatyard-operator", "boatyard-automation"
HOSTED, EDA = f"{OPERATOR}-hosted", f"{OPERATOR}-eda"  # more roles of the operator
STORAGE_CLASSES = KubeKind("storage.k8s.io", "v1", "storageclasses", "StorageClass", False)
POOLS = KubeKind("metallb.io", "v1beta1", "ipaddresspools", "IPAddressPool", True)
AGENTS = KubeKind("agent-install.openshift.io", "v1beta1", "agents", "Agent", True)
SERVICE_ROLE = Path(__file__).parents[3] / "deploy" / "rbac" / "service.yaml"
# Of others, by their names only: what is in them is not our business here.
FOREIGN = (
    ("hostedclusters", "HostedCluster", "hypershift.openshift.io", "v1beta1"),
    ("nodepools", "NodePool", "hypershift.openshift.io", "v1beta1"),
    ("agents", "Agent", "agent-install.openshift.io", "v1beta1"),
    ("ipaddresspools", "IPAddressPool", "metallb.io", "v1beta1"),
)
OPERATOR_RULES = (
    {"apiGroups": ["osac.openshift.io"], "resources": ["clusterorders"], "verbs": ["list"]},
    {"apiGroups": ["osac.openshift.io"], "resources": ["clusterorders/status"], "verbs": ["patch"]},
)
OPERATOR_RULES_AT_HOME = (
    {"apiGroups": ["boatyard.io"], "resources": ["claims"], "verbs": ["create"]},
)
OPERATOR_RULES_HOSTED = (
    {"apiGroups": ["hypershift.openshift.io"], "resources": ["nodepools"], "verbs": ["patch"]},
)
OPERATOR_RULES_EDA = ({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},)
AUTOMATION_RULES = (
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
)
_KINDS = {
    one.kind: one
    for one in (
        *(NAMESPACES, SERVICE_ACCOUNTS, CLUSTER_ROLES, ROLES),
        *(CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS),
    )
}


class EquippedHub:
    """One hub. `admin` may do anything there; the service is known by a token, under the role that is shipped."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.admin = KubeClient(read_kubeconfig(plane.kubeconfig()), timeout=30)
        self.clients = HubClients()
        shipped = read_shipped_roles()
        roles = Roles(
            shipped.service,
            shipped.system,
            shipped.discovery,
            operator=Rights(OPERATOR_RULES),
            operator_system=Rights(OPERATOR_RULES_AT_HOME),
            operator_hosted=Rights(OPERATOR_RULES_HOSTED),
            operator_eda=Rights(OPERATOR_RULES_EDA),
            automation=Rights(AUTOMATION_RULES),
        )
        self.access = HubAccess(self.clients, roles, read_shipped_crds())
        self.kubeconfig = b""

    async def open(self) -> None:
        """Lets the service in."""
        for document in yaml.safe_load_all(SERVICE_ROLE.read_text()):
            await self.apply(_KINDS[document["kind"]], document)
        self.kubeconfig = await self.service_kubeconfig()

    async def close(self) -> None:
        await self.clients.close()
        await self.admin.close()

    def hub(self, id: str = "hub-1", **spec: Any) -> Hub:
        fields = {
            "kubeconfig": self.kubeconfig,
            "namespace": SYSTEM,
            "drivers": {"platform": "hosted"},
            "settings": {"hosted.platform": "Agent"},
            **spec,
        }
        now = datetime.now(UTC)
        about = Metadata(name=id, tenant="system", creation_timestamp=now, generation=1)
        return Hub(id=id, metadata=about, spec=HubSpec(**fields))

    async def service_kubeconfig(self, seconds: int = 30 * 86400) -> bytes:
        """With a new token each time."""
        path = SERVICE_ACCOUNTS.path(SYSTEM, "boatyard-service", "token")
        body = {"spec": {"expirationSeconds": seconds}}
        token = (await self.admin.call("POST", path, body=body))["status"]["token"]
        return json.dumps(self.plane.kubeconfig_for({"token": token})).encode()

    async def complete(self) -> None:
        """All that clusters need, besides what `prepare` installs."""
        for plural, kind, group, version in FOREIGN:
            await self.install_crd(plural, kind, group, version)
        await self.add_storage_class("standard", default=True)
        await self.apply(POOLS, {"metadata": {"name": "pool", "namespace": SYSTEM}})
        await self.renew_lease()
        for account in (OPERATOR, AUTOMATION):
            about = {"name": account, "namespace": SYSTEM}
            await self.apply(SERVICE_ACCOUNTS, {"metadata": about})
        await self.grant(OPERATOR, OPERATOR, OPERATOR_RULES)
        await self.grant(OPERATOR, OPERATOR, OPERATOR_RULES_AT_HOME, at_home=True)
        await self.grant(OPERATOR, HOSTED, OPERATOR_RULES_HOSTED)

    async def grant(
        self, account: str, name: str, rules: Sequence[Any], *, at_home: bool = False
    ) -> None:
        """A role of that name for one of our accounts, everywhere or in our namespace only."""
        role, binding = (
            (ROLES, ROLE_BINDINGS) if at_home else (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
        )
        about = {"name": name} | ({"namespace": SYSTEM} if at_home else {})
        await self.apply(role, {"metadata": about, "rules": rules})
        reference = {"apiGroup": role.group, "kind": role.kind, "name": name}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": SYSTEM}
        body = {"metadata": about, "roleRef": reference, "subjects": [subject]}
        await self.apply(binding, body)

    async def let_operator_do_anything(self) -> None:
        """Whatever it is that the shipped operator needs."""
        await self.apply(
            CLUSTER_ROLE_BINDINGS,
            {
                "metadata": {"name": "operator-does-anything"},
                "roleRef": {
                    "apiGroup": CLUSTER_ROLE_BINDINGS.group,
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [{"kind": "ServiceAccount", "name": OPERATOR, "namespace": SYSTEM}],
            },
        )

    async def install_crd(self, plural: str, kind: str, group: str, version: str) -> None:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        served = {
            "name": version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
        }
        names = {
            "plural": plural,
            "kind": kind,
            "singular": kind.lower(),
            "listKind": f"{kind}List",
        }
        spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [served]}
        await self.apply(CRDS, {"metadata": {"name": f"{plural}.{group}"}, "spec": spec})
        await self.until_served(f"/apis/{group}/{version}", plural)

    async def until_served(self, path: str, plural: str, *, there: bool = True) -> None:
        async with asyncio.timeout(90):
            for again in itertools.count():
                if not there and again % 250 == 249:
                    await self._nudge(f"{plural}.{path.split('/')[2]}")
                try:
                    said = await self.admin.call("GET", path)
                    found = any(one["name"] == plural for one in said["resources"])
                except NotFound:
                    found = False
                if found is there:
                    return
                await asyncio.sleep(0.02)

    async def _nudge(self, crd: str) -> None:
        """An API server that is slow to clear away a definition looks at it anew when it changes."""
        with contextlib.suppress(NotFound, Conflict):
            about = {"annotations": {"test/nudged": "yes"}}
            await self.admin.merge_patch(CRDS, crd, {"metadata": about})

    async def remove_crd(self, plural: str, group: str, version: str) -> None:
        await self.admin.delete(CRDS, f"{plural}.{group}")
        await self.until_served(f"/apis/{group}/{version}", plural, there=False)

    async def add_storage_class(self, name: str, *, default: bool) -> None:
        about = {"storageclass.kubernetes.io/is-default-class": str(default).lower()}
        metadata = {"name": name, "annotations": about}
        await self.apply(STORAGE_CLASSES, {"metadata": metadata, "provisioner": "example.io/disks"})

    async def renew_lease(self, ago: float = 0.0, holder: str = "operator-1") -> None:
        """As an operator does that was alive so many seconds ago."""
        moment = datetime.now(UTC) - timedelta(seconds=ago)
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        metadata = {"name": OPERATOR, "namespace": SYSTEM}
        await self.apply(LEASES, {"metadata": metadata, "spec": spec})

    async def add_agents(self, kind: str, count: int, *, approved: bool = True) -> None:
        for number in range(count):
            name = f"{kind}-{'a' if approved else 'n'}-{number}"
            labels = {"osac.openshift.io/resource_class": kind}
            metadata = {"name": name, "namespace": SYSTEM, "labels": labels}
            await self.apply(AGENTS, {"metadata": metadata, "spec": {"approved": approved}})

    async def add_node(self, name: str, *, provider: str = "", cpu: str = "16") -> None:
        spec = {"providerID": provider} if provider else {}
        await self.apply(NODES, {"metadata": {"name": name}, "spec": spec})
        status = {
            "allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        # New nodes are tainted until a controller has seen them, and here is none.
        await self.admin.merge_patch(NODES, name, {"spec": {"taints": None}})
        await self.admin.merge_patch(NODES, name, {"status": status}, subresource="status")

    async def add_balanced_service(self) -> None:
        spec = {"type": "LoadBalancer", "ports": [{"port": 443}]}
        await self.apply(
            SERVICES, {"metadata": {"name": "balanced", "namespace": "default"}, "spec": spec}
        )
        status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}
        await self.admin.merge_patch(
            SERVICES, "balanced", {"status": status}, "default", subresource="status"
        )

    async def apply(self, kind: KubeKind, body: Any) -> None:
        metadata = body["metadata"]
        try:
            await self.admin.apply(kind, metadata["name"], body, metadata.get("namespace", ""))
        except Exists:
            return


@asynccontextmanager
async def open_equipped_hub(plane: ControlPlane) -> AsyncIterator[EquippedHub]:
    equipped_hub = EquippedHub(plane)
    await equipped_hub.open()
    try:
        yield equipped_hub
    finally:
        await equipped_hub.close()

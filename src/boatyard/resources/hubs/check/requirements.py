"""What a Kubernetes hub must have, depending on its drivers. Pure; read by `collect` and `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.model import Manifest, Need, Rights

OLDEST_VERSION = (
    1,
    30,
)  # the first that supports the validation rules of our and HyperShift's CRDs

# Settings of the platform driver "hosted" that decide what it needs of the hub.
HOSTED_DRIVER = "hosted"
HOSTED_PLATFORM_SETTING = "hosted.platform"
AGENT, KUBEVIRT = "Agent", "KubeVirt"
AGENT_NAMESPACE_SETTING = "hosted.agent-namespace"
PUBLISH_SETTING, LOAD_BALANCER = "hosted.publish", "LoadBalancer"
STORAGE_CLASS_SETTINGS = ("hosted.etcd-storage-class", "hosted.vm-storage-class")
VM_SIZE_PREFIX = "hosted.vm."

# Settings of the automation driver "eda".
EDA_DRIVER = "eda"
EDA_SECRET_SETTING = "eda.secret"

# The manifests that grant rights which may be missing.
SERVICE_FILE = "deploy/rbac/service.yaml"
OPERATOR_FILE = "deploy/rbac/operator.yaml"
HOSTED_FILE = "deploy/rbac/hosted.yaml"
EDA_FILE = "deploy/rbac/eda.yaml"

_HYPERSHIFT_REMEDY = "install HyperShift (multicluster-engine) on the hub"


@dataclass(frozen=True)
class Crd:
    """A kind that the hub must serve. Ours have no remedy text: `prepare` installs them."""

    plural: str
    group: str
    version: str
    remedy: str = ""

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def is_ours(self) -> bool:
        return not self.remedy

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


ORDERS = Crd("clusterorders", "osac.openshift.io", "v1alpha1")
CLAIMS = Crd("claims", "boatyard.io", "v1")
LEFTOVERS = Crd("leftovers", "boatyard.io", "v1")
OUR_CRDS = (ORDERS, CLAIMS, LEFTOVERS)

HOSTED_CLUSTERS = Crd("hostedclusters", "hypershift.openshift.io", "v1beta1", _HYPERSHIFT_REMEDY)
NODE_POOLS = Crd("nodepools", "hypershift.openshift.io", "v1beta1", _HYPERSHIFT_REMEDY)
AGENTS = Crd(
    "agents",
    "agent-install.openshift.io",
    "v1beta1",
    "install the assisted service (multicluster-engine) on the hub",
)
MACHINES = Crd(
    "virtualmachines", "kubevirt.io", "v1", "install KubeVirt (OpenShift Virtualization) on the hub"
)
ADDRESS_POOLS = Crd("ipaddresspools", "metallb.io", "v1beta1", "install MetalLB on the hub")


def is_hosted(hub: Hub) -> bool:
    return hub.spec.drivers.get("platform") == HOSTED_DRIVER


def is_automated(hub: Hub) -> bool:
    """Whether playbooks create the clusters; they need rights of their own."""
    return hub.spec.drivers.get("automation") == EDA_DRIVER


def list_needed_crds(hub: Hub) -> Sequence[Crd]:
    """The kinds that must be served for the hub's drivers to work."""
    crds = [*OUR_CRDS]
    if is_hosted(hub):
        crds += [HOSTED_CLUSTERS, NODE_POOLS]
        platform = hub.spec.settings.get(HOSTED_PLATFORM_SETTING)
        crds += [AGENTS] if platform == AGENT else [MACHINES] if platform == KUBEVIRT else []
    return crds


# --- rights ------------------------------------------------------------------------------------


def list_needs(rights: Rights) -> Iterator[Need]:
    """Each verb on each resource in the rules."""
    for rule in rights.rules:
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for verb in rule.get("verbs") or ():
                    for name in rule.get("resourceNames") or ("",):
                        yield Need(group, resource, verb, name)


def is_granted(need: Need, granted: Rights) -> bool:
    """Whether one of the granted rules allows it, as the API server's RBAC authorizer decides."""
    return any(_allows(rule, need) for rule in granted.rules)


def _allows(rule: Manifest, need: Need) -> bool:
    resource, _, part = need.resource.partition("/")
    resources = {"*", need.resource} | ({f"*/{part}"} if part else {resource})
    names = rule.get("resourceNames") or ()
    return (
        _matches_any(rule, "verbs", {"*", need.verb})
        and _matches_any(rule, "apiGroups", {"*", need.group})
        and _matches_any(rule, "resources", resources)
        and (not names or need.name in names)
    )


def _matches_any(rule: Manifest, field: str, values: set[str]) -> bool:
    return not values.isdisjoint(rule.get(field) or ())

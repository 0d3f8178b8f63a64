"""Renders the manifests of a cluster on the hub from its desired state. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from boatyard.kube.kinds import (
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    KubeKind,
)
from boatyard.model import hub_names
from boatyard.model.errors import Refused, Violation
from boatyard.platforms.drivers.hosted.kinds import (
    AGENTS,
    NETWORK_POLICIES,
    Manifest,
    ObservedObject,
    annotations_of,
    get_path,
    name_of,
    namespace_of,
)
from boatyard.platforms.drivers.hosted.settings import (
    AGENT,
    KUBEVIRT,
    LOAD_BALANCER,
    NODE_PORT,
    HostedSettings,
    VmSize,
    select_hosted_settings,
)
from boatyard.platforms.drivers.hosted.validation import SERVICES
from boatyard.platforms.port import DesiredCluster

# Annotation of a HostedCluster: the settings it was created with, for calls that have only the cluster.
SETTINGS_ANNOTATION = "boatyard.io/hosted-settings"
# Label of an Agent: the node pool that may take it. It is removed first when the host leaves.
JOIN_LABEL = "boatyard.io/joins"
AGENT_ROLE = (
    "capi-provider-role"  # HyperShift binds its provider to this role in the hosts' namespace
)
HUB_ACCESS_ROLE = "boatyard-hub-access"

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_APPS_PREFIX = "*.apps."


@dataclass(frozen=True)
class ClusterLocation:
    """The namespaces and names of one cluster on the hub."""

    key: str
    cluster_id: str
    order: str
    order_namespace: str
    namespace: str
    hub: str
    tenant: str = ""

    @property
    def control_plane_namespace(self) -> str:
        """The namespace in which HyperShift runs the control plane."""
        return hub_names.control_plane_namespace(self.namespace, self.order)


@dataclass(frozen=True)
class RenderedObject:
    """A manifest and its kind."""

    kind: KubeKind
    manifest: Manifest


def render_prerequisites(location: ClusterLocation) -> tuple[RenderedObject, ...]:
    """Renders the objects that a cluster needs before its HostedCluster, in the order of their creation."""
    account = {"kind": "ServiceAccount", "name": hub_names.SERVICE_ACCOUNT}
    reader = {
        "kind": "ServiceAccount",
        "name": hub_names.HUB_ACCESS,
        "namespace": location.order_namespace,
    }
    # Tools of others read as this account and do not check the role's name. They name the role after the order's
    # namespace; we cannot, because the permissions that we ship must list every role that may be bound.
    read_role = _cluster_role(HUB_ACCESS_ROLE)
    same_namespace: list[Manifest] = [{"from": [{"podSelector": {}}]}]
    return (
        RenderedObject(NAMESPACES, _manifest(location, location.namespace, namespaced=False)),
        RenderedObject(SERVICE_ACCOUNTS, _manifest(location, hub_names.SERVICE_ACCOUNT)),
        RenderedObject(
            ROLE_BINDINGS,
            _manifest(
                location,
                hub_names.ROLE_BINDING,
                roleRef=_cluster_role("admin"),
                subjects=[{**account, "namespace": location.namespace}],
            ),
        ),
        RenderedObject(
            ROLE_BINDINGS,
            _manifest(location, hub_names.HUB_ACCESS, roleRef=read_role, subjects=[reader]),
        ),
        RenderedObject(
            NETWORK_POLICIES,
            _manifest(
                location,
                hub_names.NETWORK_POLICY,
                spec={"podSelector": {}, "policyTypes": ["Ingress"], "ingress": same_namespace},
            ),
        ),
    )


def render_agent_role(namespace: str) -> RenderedObject:
    """Renders the role by which HyperShift's provider takes agents. All clusters share it, so it is never removed."""
    verbs = ["get", "list", "watch", "update", "patch"]
    rule = {"apiGroups": [AGENTS.group], "resources": [AGENTS.plural], "verbs": verbs}
    metadata = {"name": AGENT_ROLE, "namespace": namespace}
    return RenderedObject(ROLES, {"metadata": metadata, "rules": [rule]})


def render_pull_secret(location: ClusterLocation, name: str, text: str) -> RenderedObject:
    return _secret(location, name, "kubernetes.io/dockerconfigjson", ".dockerconfigjson", text)


def render_ssh_key(location: ClusterLocation, name: str, text: str) -> RenderedObject:
    return _secret(location, name, "Opaque", "id_rsa.pub", text)


def make_new_secret_name(name: str, text: str) -> str:
    """Returns a new name for a Secret whose text has changed: HyperShift notices new names, not new contents."""
    return f"{name}-{hub_names.order_name(text).removeprefix('order-')[:6]}"


def choose_release_image(desired: DesiredCluster, choice: HostedSettings) -> str:
    """Returns the image of the version: the catalogue's, else that of the hub's pattern. Refused without both."""
    image = desired.release_image or choice.release_image.replace("{version}", desired.version)
    if image:
        return image
    remedy = "give the version an image, or set hosted.release-image for the hub"
    problem = Violation("release_image", f"no image of {desired.version} is known", remedy)
    raise Refused("", problem, reason="NoRelease")


def render_hosted_cluster(
    location: ClusterLocation,
    desired: DesiredCluster,
    choice: HostedSettings,
    *,
    image: str,
    pull_secret_name: str,
    ssh_key_name: str,
) -> Manifest:
    spec: Manifest = {
        "release": {"image": image},
        "pullSecret": {"name": pull_secret_name},
        "platform": _platform(choice),
        "services": _services(location, desired, choice),
        "networking": _networking(desired, choice),
        "infraID": location.order,
        "controllerAvailabilityPolicy": choice.availability,
        "infrastructureAvailabilityPolicy": choice.infra_availability,
        "olmCatalogPlacement": "management",
        "etcd": _etcd(choice),
        "fips": choice.fips,
    }
    if not choice.passthrough:
        spec["dns"] = _dns(desired)
    if _UUID.fullmatch(location.cluster_id):
        spec["clusterID"] = location.cluster_id
    if ssh_key_name:
        spec["sshKey"] = {"name": ssh_key_name}
    remembered = {
        "template": select_hosted_settings(desired.settings),
        "kept": dict(choice.immutable),
    }
    annotations = {
        SETTINGS_ANNOTATION: json.dumps(remembered, sort_keys=True),
        hub_names.API_ENDPOINT: desired.api_name,
        hub_names.INGRESS_ENDPOINT: desired.ingress_name,
    }
    return _manifest(location, location.order, annotations=annotations, spec=spec)


def read_stored_settings(
    cluster: ObservedObject,
) -> tuple[Mapping[str, str], Mapping[str, str] | None]:
    """Returns the template's settings a cluster was created with, and its immutable ones (None when lost)."""
    try:
        stored = json.loads(annotations_of(cluster)[SETTINGS_ANNOTATION])
        return dict(stored["template"]), dict(stored["kept"])
    except (KeyError, ValueError, TypeError):
        return {}, None


def render_node_pool(
    location: ClusterLocation,
    cluster: ObservedObject,
    choice: HostedSettings,
    node_set: str,
    host_type: str,
    *,
    image: str,
    platform: Manifest | None = None,
) -> Manifest:
    """Renders the NodePool of a node set without its node count, which has a field manager of its own."""
    name = hub_names.node_pool_name(location.order, node_set)
    management: Manifest = {"upgradeType": choice.upgrade_type, "autoRepair": choice.auto_repair}
    spec: Manifest = {
        "clusterName": name_of(cluster),
        "release": {"image": image},
        "management": management,
        "nodeDrainTimeout": choice.drain_timeout,
        "nodeLabels": {hub_names.NODE_SET: hub_names.label_value(node_set)},
        "platform": platform or _pool_platform(cluster, choice, name, host_type),
    }
    return _manifest(
        location,
        name,
        labels={hub_names.NODE_SET: hub_names.label_value(node_set)},
        annotations={hub_names.NODE_SET: node_set},
        spec=spec,
    )


def render_updated_pool(
    location: ClusterLocation,
    cluster: ObservedObject,
    choice: HostedSettings,
    pool: ObservedObject,
    *,
    image: str,
) -> Manifest:
    """Renders an existing node pool with a new release. Its platform stays: a change would replace its machines."""
    node_set = annotations_of(pool).get(hub_names.NODE_SET, "")
    manifest = render_node_pool(
        location, cluster, choice, node_set, "", image=image, platform=pool["spec"]["platform"]
    )
    manifest["metadata"]["name"] = name_of(pool)
    manifest["spec"]["management"]["upgradeType"] = get_path(
        pool, "spec", "management", "upgradeType"
    )
    return manifest


def _pool_platform(
    cluster: ObservedObject, choice: HostedSettings, pool: str, host_type: str
) -> Manifest:
    kind = get_path(cluster, "spec", "platform", "type")
    if kind == AGENT:
        return {"type": kind, "agent": {"agentLabelSelector": {"matchLabels": {JOIN_LABEL: pool}}}}
    if kind == KUBEVIRT:
        return {"type": kind, "kubevirt": _virtual(choice.vm_size(host_type), choice)}
    return {"type": kind}


def _virtual(size: VmSize, choice: HostedSettings) -> Manifest:
    disk: Manifest = {"size": size.disk}
    if choice.vm_storage_class:
        disk["storageClass"] = choice.vm_storage_class
    return {
        "rootVolume": {"type": "Persistent", "persistent": disk},
        "compute": {"cores": size.cores, "memory": size.memory},
    }


def _platform(choice: HostedSettings) -> Manifest:
    if choice.platform == AGENT:
        return {"type": AGENT, "agent": {"agentNamespace": choice.agent_namespace}}
    if choice.platform == KUBEVIRT:
        kubevirt: Manifest = {"baseDomainPassthrough": True} if choice.passthrough else {}
        return {"type": KUBEVIRT, "kubevirt": kubevirt}
    return {"type": choice.platform}


def _services(
    location: ClusterLocation, desired: DesiredCluster, choice: HostedSettings
) -> list[Manifest]:
    return [
        {
            "service": service,
            "servicePublishingStrategy": _publishing_strategy(service, location, desired, choice),
        }
        for service in SERVICES
    ]


def _publishing_strategy(
    service: str, location: ClusterLocation, desired: DesiredCluster, choice: HostedSettings
) -> Manifest:
    if choice.publish == NODE_PORT:
        address = choice.publish_address or desired.api_name
        return {"type": NODE_PORT, "nodePort": {"address": address}}
    if service == "APIServer" and choice.publish == LOAD_BALANCER:
        return {"type": LOAD_BALANCER, "loadBalancer": {"hostname": desired.api_name}}
    if service == "APIServer":
        return {"type": "Route", "route": {"hostname": desired.api_name}}
    if choice.route_domain:
        host = f"{service.lower()}-{location.order}.{choice.route_domain}"
        return {"type": "Route", "route": {"hostname": host}}
    return {"type": "Route"}


def _networking(desired: DesiredCluster, choice: HostedSettings) -> Manifest:
    networking: Manifest = {"networkType": choice.network_type}
    for name, cidr in (
        ("clusterNetwork", desired.pod_cidr),
        ("serviceNetwork", desired.service_cidr),
        ("machineNetwork", desired.machine_cidr),
    ):
        if cidr:
            networking[name] = [{"cidr": cidr}]
    return networking


def _dns(desired: DesiredCluster) -> Manifest:
    """Splits the ingress name `*.apps.<prefix>.<base>`, which HyperShift serves, into prefix and base domain."""
    domain = desired.ingress_name.removeprefix(_APPS_PREFIX)
    if domain == desired.ingress_name:
        remedy = f"it must begin with {_APPS_PREFIX}"
        message = f"{desired.ingress_name!r} cannot be served"
        raise Refused("", Violation("ingress_name", message, remedy), reason="BadCluster")
    prefix, _, base = domain.partition(".")
    return {"baseDomain": base, "baseDomainPrefix": prefix}


def _etcd(choice: HostedSettings) -> Manifest:
    volume: Manifest = {"size": choice.etcd_size}
    if choice.etcd_storage_class:
        volume["storageClassName"] = choice.etcd_storage_class
    storage = {"type": "PersistentVolume", "persistentVolume": volume}
    return {"managementType": "Managed", "managed": {"storage": storage}}


def _secret(
    location: ClusterLocation, name: str, kind: str, field: str, text: str
) -> RenderedObject:
    encoded = base64.b64encode(text.encode()).decode()
    return RenderedObject(SECRETS, _manifest(location, name, type=kind, data={field: encoded}))


def _cluster_role(name: str) -> Manifest:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}


def _manifest(
    location: ClusterLocation,
    name: str,
    *,
    namespaced: bool = True,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **content: object,
) -> Manifest:
    metadata: Manifest = {
        "name": name,
        "labels": {**owner_labels(location), **(labels or {})},
        "annotations": {
            hub_names.KEY: location.key,
            hub_names.CLUSTER: location.cluster_id,
            **({hub_names.TENANT: location.tenant} if location.tenant else {}),
            **(annotations or {}),
        },
    }
    if namespaced:
        metadata["namespace"] = location.namespace
    return {"metadata": metadata, **content}


def owner_labels(location: ClusterLocation) -> dict[str, str]:
    """Returns the labels by which all objects of a cluster are found again."""
    return {
        hub_names.MANAGED_BY: hub_names.BOATYARD,
        hub_names.HUB: hub_names.label_value(location.hub),
        hub_names.ORDER: location.order,
        hub_names.ORDER_UUID: hub_names.label_value(location.cluster_id),
        hub_names.KEY: hub_names.label_value(location.key),
    }


def contains_manifest(existing: object, desired: object) -> bool:
    """Whether an object already contains everything in a manifest. Its other fields do not matter."""
    if isinstance(desired, Mapping):
        return isinstance(existing, Mapping) and all(
            contains_manifest(existing.get(name), value) for name, value in desired.items()
        )
    if isinstance(desired, list):
        return (
            isinstance(existing, list)
            and len(existing) == len(desired)
            and all(
                contains_manifest(existing_entry, desired_entry)
                for existing_entry, desired_entry in zip(existing, desired, strict=True)
            )
        )
    return existing == desired


def belongs_to(location: ClusterLocation, obj: ObservedObject) -> bool:
    """Whether the object belongs to this cluster. The annotation decides; without it, the label."""
    key = annotations_of(obj).get(hub_names.KEY)
    if key is not None:
        return key == location.key
    labels = (obj.get("metadata") or {}).get("labels") or {}
    return bool(labels.get(hub_names.KEY) == hub_names.label_value(location.key))


def refuse_other_owner(location: ClusterLocation, kind: KubeKind, obj: ObservedObject) -> None:
    """Refused when the object has another key: it belongs to somebody else and is left alone."""
    if belongs_to(location, obj):
        return
    where = "/".join(part for part in (namespace_of(obj), name_of(obj)) if part)
    raise Refused(
        f"{kind.kind} {where} is there and carries another key; it is left alone",
        reason="HeldByAnother",
    )

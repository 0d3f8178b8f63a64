"""What is kept: every kind. Made by tools/generate.py from proto/; not edited."""

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any

import msgspec


class ClusterConditionType(IntEnum):
    UNSPECIFIED = 0
    PROGRESSING = 1
    READY = 2
    FAILED = 3
    DEGRADED = 4
    CLUSTER_AVAILABLE = 1000
    NODES_READY = 1001
    INFRASTRUCTURE_READY = 1002
    TEMPLATE_APPLIED = 1003


class ClusterRest(IntEnum):
    AWAKE = 0
    FROZEN = 1  # Processes stand still: awake again within moments. After a while it is stopped by itself.
    STOPPED = 2  # Nothing runs.


class ClusterState(IntEnum):
    UNSPECIFIED = 0
    PROGRESSING = 1
    READY = 2
    FAILED = 3
    DELETING = 4
    DELETE_FAILED = 5
    DEGRADED = 1000
    HIBERNATED = 1001


class ClusterVersionState(IntEnum):
    UNSPECIFIED = 0
    ACTIVE = 1
    DEPRECATED = 2
    OBSOLETE = 3


class ConditionStatus(IntEnum):
    UNSPECIFIED = 0
    TRUE = 1
    FALSE = 2


class EventType(IntEnum):
    UNSPECIFIED = 0
    OBJECT_CREATED = 1
    OBJECT_UPDATED = 2
    OBJECT_DELETED = 3
    OBJECT_SIGNALED = 4


class HubConditionType(IntEnum):
    UNSPECIFIED = 0
    REACHABLE = 1  # Its address answers, and is who it should be.
    AUTHORIZED = 2  # It knows us, and lets us do what is needed.
    SUPPORTED = 3  # Its version is one we work with.
    PREPARED = 4  # What orders are kept in is installed.
    OPERATED = 5  # Somebody there carries orders out.
    DRIVERS_READY = 6  # The systems that an embedded hub drives answer.


class HubState(IntEnum):
    UNSPECIFIED = 0
    READY = 1
    UNREACHABLE = 2
    NOT_READY = 3  # It answers, but lacks something.


class ProjectConditionType(IntEnum):
    UNSPECIFIED = 0
    HUB_SYNC = 1
    KEYCLOAK_SYNC = 2


class ProjectState(IntEnum):
    UNSPECIFIED = 0
    PENDING = 1
    ACTIVE = 2
    FAILED = 3
    DELETING = 4
    DELETE_FAILED = 5


class TenantConditionType(IntEnum):
    UNSPECIFIED = 0
    DEFAULT_NETWORKING_READY = 1
    VAULT_READY = 2


class TenantState(IntEnum):
    UNSPECIFIED = 0
    PENDING = 1
    SYNCED = 2
    FAILED = 3


class AuthnCapabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    trusted_token_issuers: tuple[str, ...] = ()


NO_AUTHN_CAPABILITIES = AuthnCapabilities()


class Metadata(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    finalizers: tuple[str, ...] = ()
    creator: str = ""
    tenant: str = ""
    name: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    version: int = 0
    project: str = ""
    display_name: str = ""
    description: str = ""
    # Grows only when the spec changes.
    generation: int = 0


NO_METADATA = Metadata()


class Resource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What every kind has."""

    id: str = ""
    metadata: Metadata = NO_METADATA


class Reference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What every reference to another document has."""

    id: str = ""
    name: str = ""


class TenantSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    domains: tuple[str, ...] = ()


NO_TENANT_SPEC = TenantSpec()


class BreakGlassCredentials(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    username: str = ""
    password: str = ""


NO_BREAK_GLASS_CREDENTIALS = BreakGlassCredentials()


class TenantCondition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    type: TenantConditionType = TenantConditionType(0)
    status: ConditionStatus = ConditionStatus(0)
    last_transition_time: datetime | None = None
    reason: str | None = None
    message: str | None = None


NO_TENANT_CONDITION = TenantCondition()


class TenantStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    break_glass_credentials: BreakGlassCredentials = NO_BREAK_GLASS_CREDENTIALS
    state: TenantState = TenantState(0)
    message: str | None = None
    idp_tenant_name: str = ""
    break_glass_user_id: str = ""
    conditions: tuple[TenantCondition, ...] = ()


NO_TENANT_STATUS = TenantStatus()


class Tenant(Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    spec: TenantSpec = NO_TENANT_SPEC
    status: TenantStatus = NO_TENANT_STATUS


NO_TENANT = Tenant()


class ProjectSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    title: str = ""
    description: str | None = None


NO_PROJECT_SPEC = ProjectSpec()


class ProjectCondition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    type: ProjectConditionType = ProjectConditionType(0)
    status: ConditionStatus = ConditionStatus(0)
    reason: str | None = None
    message: str | None = None


NO_PROJECT_CONDITION = ProjectCondition()


class ProjectStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    state: ProjectState = ProjectState(0)
    message: str | None = None
    conditions: tuple[ProjectCondition, ...] = ()


NO_PROJECT_STATUS = ProjectStatus()


class Project(Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    spec: ProjectSpec = NO_PROJECT_SPEC
    status: ProjectStatus = NO_PROJECT_STATUS


NO_PROJECT = Project()


class NetworkInterface(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    name: str = ""
    role: str = ""
    description: str = ""


NO_NETWORK_INTERFACE = NetworkInterface()


class HostType(Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    title: str = ""
    description: str = ""
    interfaces: tuple[NetworkInterface, ...] = ()
    # What one host of this type has: "cpu": "64", "memory": "512Gi".
    resources: Mapping[str, str] = {}


NO_HOST_TYPE = HostType()


class ClusterVersionDeprecation(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    deprecation_timestamp: datetime | None = None
    obsolescence_timestamp: datetime | None = None


NO_CLUSTER_VERSION_DEPRECATION = ClusterVersionDeprecation()


class ClusterVersionSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    image: str = ""
    enabled: bool | None = None
    is_default: bool | None = None
    state: ClusterVersionState = ClusterVersionState(0)
    deprecation: ClusterVersionDeprecation = NO_CLUSTER_VERSION_DEPRECATION
    version: str = ""


NO_CLUSTER_VERSION_SPEC = ClusterVersionSpec()


class ClusterVersionStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    pass


NO_CLUSTER_VERSION_STATUS = ClusterVersionStatus()


class ClusterVersion(Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    spec: ClusterVersionSpec = NO_CLUSTER_VERSION_SPEC
    status: ClusterVersionStatus = NO_CLUSTER_VERSION_STATUS


NO_CLUSTER_VERSION = ClusterVersion()


class ClusterTemplateParameterDefinition(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    name: str = ""
    title: str = ""
    description: str = ""
    required: bool = False
    type: str = ""
    default: Mapping[str, Any] | None = None
    # Its value is a secret and travels to a hub as one.
    no_log: bool = False


NO_CLUSTER_TEMPLATE_PARAMETER_DEFINITION = ClusterTemplateParameterDefinition()


class HostTypeReference(Reference, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    project: str = ""
    shared: bool = False


NO_HOST_TYPE_REFERENCE = HostTypeReference()


class ClusterTemplateNodeSet(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    host_type: HostTypeReference = NO_HOST_TYPE_REFERENCE
    size: int = 0


NO_CLUSTER_TEMPLATE_NODE_SET = ClusterTemplateNodeSet()


class ClusterNetwork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    pod_cidr: str | None = None
    service_cidr: str | None = None


NO_CLUSTER_NETWORK = ClusterNetwork()


class ClusterVersionReference(Reference, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    project: str = ""
    shared: bool = False


NO_CLUSTER_VERSION_REFERENCE = ClusterVersionReference()


class SecretLocalReference(Reference, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    pass


NO_SECRET_LOCAL_REFERENCE = SecretLocalReference()


class ClusterTemplateSpecDefaults(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    pull_secret: str | None = None
    ssh_public_key: str | None = None
    network: ClusterNetwork | None = None
    version: ClusterVersionReference = NO_CLUSTER_VERSION_REFERENCE
    pull_secret_secret: SecretLocalReference = NO_SECRET_LOCAL_REFERENCE


NO_CLUSTER_TEMPLATE_SPEC_DEFAULTS = ClusterTemplateSpecDefaults()


class ClusterTemplate(Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    title: str = ""
    description: str = ""
    parameters: tuple[ClusterTemplateParameterDefinition, ...] = ()
    node_sets: Mapping[str, ClusterTemplateNodeSet] = {}
    spec_defaults: ClusterTemplateSpecDefaults = NO_CLUSTER_TEMPLATE_SPEC_DEFAULTS
    # Labels that a hub must carry to be given clusters of this template.
    hub_labels: Mapping[str, str] = {}
    # What the template tells the platform; a cluster keeps what it was ordered with.
    platform_settings: Mapping[str, str] = {}
    # What the role it is made of contains, as a digest; empty for one that has no role.
    digest: str = ""
    # The role's form, as JSON; `boatyard.v1.Templates/GetSchema` shows it.
    form: str = ""
    # Ids of the host types that may be asked for instead of a node set's own.
    allowed_host_types: tuple[str, ...] = ()
    # Versions it can be ordered with: from this one on, and below that one. Empty where there is no bound.
    version_from: str = ""
    version_below: str = ""
    # Parts of the role that are run: "install", "post_install", ….
    phases: tuple[str, ...] = ()
    # No longer offered. Clusters that were made from it keep what they were ordered with.
    withdrawn: bool = False


NO_CLUSTER_TEMPLATE = ClusterTemplate()


class HubSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    kubeconfig: bytes = b""
    namespace: str = ""
    zone: str = ""
    labels: Mapping[str, str] = {}
    # Port name to driver name: "dns": "sim".
    drivers: Mapping[str, str] = {}
    # Host type id to hosts; the key "clusters" bounds clusters.
    capacity: Mapping[str, int] = {}
    # Nothing new is placed here.
    cordoned: bool = False
    # Driver settings such as "twin.socket".
    settings: Mapping[str, str] = {}
    # Template ids offered; empty for all.
    templates: tuple[str, ...] = ()


NO_HUB_SPEC = HubSpec()


class HubCondition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    type: HubConditionType = HubConditionType(0)
    status: ConditionStatus = ConditionStatus(0)
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""
    remedy: str = ""


NO_HUB_CONDITION = HubCondition()


class HubStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    state: HubState = HubState(0)
    message: str = ""
    last_seen: datetime | None = None
    # Host type id to hosts in use, with the key "clusters" as in the capacity.
    used: Mapping[str, int] = {}
    # The generation of the spec that was last acted upon.
    observed_generation: int = 0
    # Why it takes no orders, if it takes none.
    conditions: tuple[HubCondition, ...] = ()
    # Of the Kubernetes it is.
    version: str = ""
    # As the capacity of the spec, but found on the hub; used where the spec has none.
    capacity: Mapping[str, int] = {}
    # Which Kubernetes it is: the uid of its namespace kube-system, kept once it knows that it is this hub.
    cluster_uid: str = ""


NO_HUB_STATUS = HubStatus()


class Hub(Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    spec: HubSpec = NO_HUB_SPEC
    status: HubStatus = NO_HUB_STATUS


NO_HUB = Hub()


class ClusterTemplateReference(Reference, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    project: str = ""
    shared: bool = False


NO_CLUSTER_TEMPLATE_REFERENCE = ClusterTemplateReference()


class ClusterNodeSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    host_type: HostTypeReference = NO_HOST_TYPE_REFERENCE
    size: int = 0
    fabric_interface: str = ""


NO_CLUSTER_NODE_SET = ClusterNodeSet()


class ClusterCatalogItemReference(
    Reference, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    project: str = ""
    shared: bool = False


NO_CLUSTER_CATALOG_ITEM_REFERENCE = ClusterCatalogItemReference()


class SubnetLocalReference(Reference, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    pass


NO_SUBNET_LOCAL_REFERENCE = SubnetLocalReference()


class SecurityGroupLocalReference(
    Reference, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    pass


NO_SECURITY_GROUP_LOCAL_REFERENCE = SecurityGroupLocalReference()


class ClusterNetworkAttachment(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    subnet: SubnetLocalReference = NO_SUBNET_LOCAL_REFERENCE
    security_groups: tuple[SecurityGroupLocalReference, ...] = ()


NO_CLUSTER_NETWORK_ATTACHMENT = ClusterNetworkAttachment()


class ClusterRestore(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    # Id or name of the backup.
    backup: str = ""
    # Any word; another one is another restore. Made up when it is left out.
    request: str = ""


NO_CLUSTER_RESTORE = ClusterRestore()


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    template: ClusterTemplateReference = NO_CLUSTER_TEMPLATE_REFERENCE
    template_parameters: Mapping[str, Mapping[str, Any]] = {}
    node_sets: Mapping[str, ClusterNodeSet] = {}
    pull_secret: str | None = None
    ssh_public_key: str | None = None
    version: ClusterVersionReference = NO_CLUSTER_VERSION_REFERENCE
    network: ClusterNetwork | None = None
    catalog_item: ClusterCatalogItemReference = NO_CLUSTER_CATALOG_ITEM_REFERENCE
    network_attachment: ClusterNetworkAttachment = NO_CLUSTER_NETWORK_ATTACHMENT
    auto_external_ip_attachment: bool = False
    pull_secret_secret: SecretLocalReference = NO_SECRET_LOCAL_REFERENCE
    # The zone the cluster should be in; empty for any.
    zone: str = ""
    # Labels that the hub must carry.
    hub_labels: Mapping[str, str] = {}
    # Whether it runs, stands still or is stopped; state and address are kept.
    rest: ClusterRest = ClusterRest(0)
    # Its objects become those of a backup, once per request.
    restore: ClusterRestore = NO_CLUSTER_RESTORE
    # What the template's role contained when the cluster was ordered; every later change uses the same.
    template_digest: str = ""
    # The parts of that role which are run.
    template_phases: tuple[str, ...] = ()
    # Template parameters that are nobody's business, by name, as JSON. Given in template_parameters like the others.
    secret_parameters: str = ""


NO_CLUSTER_SPEC = ClusterSpec()


class ClusterCondition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    type: ClusterConditionType = ClusterConditionType(0)
    status: ConditionStatus = ConditionStatus(0)
    last_transition_time: datetime | None = None
    reason: str | None = None
    message: str | None = None


NO_CLUSTER_CONDITION = ClusterCondition()


class PlacementCandidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    hub: str = ""
    fits: bool = False
    score: float = 0.0
    reason: str = ""


NO_PLACEMENT_CANDIDATE = PlacementCandidate()


class Placement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    hub: str = ""
    decided_at: datetime | None = None
    reason: str = ""
    candidates: tuple[PlacementCandidate, ...] = ()


NO_PLACEMENT = Placement()


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    state: ClusterState = ClusterState(0)
    conditions: tuple[ClusterCondition, ...] = ()
    api_url: str = ""
    console_url: str = ""
    node_sets: Mapping[str, ClusterNodeSet] = {}
    hub: str = ""
    api_endpoint: str = ""
    ingress_endpoint: str = ""
    state_transition_time: datetime | None = None
    # The hub that was chosen, and what every hub answered.
    placement: Placement = NO_PLACEMENT
    # The generation of the spec that this status is about.
    observed_generation: int = 0
    # Nodes that are ready, per node set.
    ready_nodes: Mapping[str, int] = {}
    # The version that runs; another than the spec's while it is changed, or when the change failed.
    version: str = ""
    # How deep it rests now.
    rest: ClusterRest = ClusterRest(0)
    # The request of the restore that was carried out last.
    restored: str = ""


NO_CLUSTER_STATUS = ClusterStatus()


class Cluster(Resource, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    spec: ClusterSpec = NO_CLUSTER_SPEC
    status: ClusterStatus = NO_CLUSTER_STATUS


NO_CLUSTER = Cluster()


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    id: str = ""
    type: EventType = EventType(0)
    cluster: Cluster | None = None
    cluster_template: ClusterTemplate | None = None
    host_type: HostType | None = None
    hub: Hub | None = None
    project: Project | None = None
    tenant: Tenant | None = None
    cluster_version: ClusterVersion | None = None
    at: datetime | None = None
    # CamelCase, for machines.
    reason: str = ""
    # What happened, in words.
    message: str = ""
    # Nothing happened: the id is one to resume after.
    bookmark: bool = False


NO_EVENT = Event()

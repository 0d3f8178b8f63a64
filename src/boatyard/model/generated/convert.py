"""Structs to messages and back. Made by tools/generate.py from proto/; not edited.

A message is built from nested dicts: protobuf fills those in place, while it copies messages.
The public functions take and give the same structs as the private ones; what only the private
package has is left out on the way to a message and stays at its default on the way back.
"""

# A function is as long as its message has fields, a line of the tables as long as its names.
# ruff: noqa: C901

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, TypeVar

from google.protobuf.message import Message

from boatyard.model.generated import boatyard, osac
from boatyard.model.wire import (
    any_fields,
    any_value,
    message,
    moment,
    timestamp_fields,
)

_E = TypeVar("_E", bound=IntEnum)


class _Members(dict[int, _E]):
    """Enum members by number; a number without a member is the sender's mistake."""

    def __init__(self, enum: type[_E]) -> None:
        super().__init__({member.value: member for member in enum})
        self._name = enum.__name__

    def __missing__(self, number: int) -> _E:
        raise ValueError(f"{number} is not a value of {self._name}")


_ACTOR = _Members(boatyard.Actor)

_BACKUP_STATE = _Members(boatyard.BackupState)

_HUB_FINDING_RESULT = _Members(boatyard.HubFindingResult)

_ITEM_STATE = _Members(boatyard.ItemState)

_ORDER_PHASE = _Members(boatyard.OrderPhase)

_STEP_STATE = _Members(boatyard.StepState)

_TEMPLATE_SOURCE_STATE = _Members(boatyard.TemplateSourceState)

_CLUSTER_CONDITION_TYPE = _Members(osac.ClusterConditionType)

_CLUSTER_REST = _Members(osac.ClusterRest)

_CLUSTER_STATE = _Members(osac.ClusterState)

_CLUSTER_VERSION_STATE = _Members(osac.ClusterVersionState)

_CONDITION_STATUS = _Members(osac.ConditionStatus)

_EVENT_TYPE = _Members(osac.EventType)

_HUB_CONDITION_TYPE = _Members(osac.HubConditionType)

_HUB_STATE = _Members(osac.HubState)

_PROJECT_CONDITION_TYPE = _Members(osac.ProjectConditionType)

_PROJECT_STATE = _Members(osac.ProjectState)

_TENANT_CONDITION_TYPE = _Members(osac.TenantConditionType)

_TENANT_STATE = _Members(osac.TenantState)


def _private_authn_capabilities(x: osac.AuthnCapabilities) -> dict[str, Any]:
    d: dict[str, Any] = {}
    if x.trusted_token_issuers:
        d["trusted_token_issuers"] = x.trusted_token_issuers
    return d


def private_authn_capabilities_to_message(x: osac.AuthnCapabilities) -> Message:
    return message("osac.private.v1.AuthnCapabilities")(**_private_authn_capabilities(x))


def private_authn_capabilities_from_message(m: Any) -> osac.AuthnCapabilities:
    return osac.AuthnCapabilities(
        trusted_token_issuers=tuple(c) if (c := m.trusted_token_issuers) else (),
    )


def _private_metadata(x: osac.Metadata) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.creation_timestamp) is not None:
        d["creation_timestamp"] = timestamp_fields(v)
    if (v := x.deletion_timestamp) is not None:
        d["deletion_timestamp"] = timestamp_fields(v)
    if x.finalizers:
        d["finalizers"] = x.finalizers
    if v := x.creator:
        d["creator"] = v
    if v := x.tenant:
        d["tenant"] = v
    if v := x.name:
        d["name"] = v
    if x.labels:
        d["labels"] = x.labels
    if x.annotations:
        d["annotations"] = x.annotations
    if v := x.version:
        d["version"] = v
    if v := x.project:
        d["project"] = v
    if v := x.display_name:
        d["display_name"] = v
    if v := x.description:
        d["description"] = v
    if v := x.generation:
        d["generation"] = v
    return d


def private_metadata_to_message(x: osac.Metadata) -> Message:
    return message("osac.private.v1.Metadata")(**_private_metadata(x))


def private_metadata_from_message(m: Any) -> osac.Metadata:
    return osac.Metadata(
        creation_timestamp=moment(m.creation_timestamp)
        if m.HasField("creation_timestamp")
        else None,
        deletion_timestamp=moment(m.deletion_timestamp)
        if m.HasField("deletion_timestamp")
        else None,
        finalizers=tuple(c) if (c := m.finalizers) else (),
        creator=m.creator,
        tenant=m.tenant,
        name=m.name,
        labels={k: c[k] for k in c} if (c := m.labels) else {},
        annotations={k: c[k] for k in c} if (c := m.annotations) else {},
        version=m.version,
        project=m.project,
        display_name=m.display_name,
        description=m.description,
        generation=m.generation,
    )


def _private_tenant_spec(x: osac.TenantSpec) -> dict[str, Any]:
    d: dict[str, Any] = {}
    if x.domains:
        d["domains"] = x.domains
    return d


def private_tenant_spec_to_message(x: osac.TenantSpec) -> Message:
    return message("osac.private.v1.TenantSpec")(**_private_tenant_spec(x))


def private_tenant_spec_from_message(m: Any) -> osac.TenantSpec:
    return osac.TenantSpec(
        domains=tuple(c) if (c := m.domains) else (),
    )


def _private_break_glass_credentials(x: osac.BreakGlassCredentials) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.username:
        d["username"] = v
    if v := x.password:
        d["password"] = v
    return d


def private_break_glass_credentials_to_message(x: osac.BreakGlassCredentials) -> Message:
    return message("osac.private.v1.BreakGlassCredentials")(**_private_break_glass_credentials(x))


def private_break_glass_credentials_from_message(m: Any) -> osac.BreakGlassCredentials:
    return osac.BreakGlassCredentials(
        username=m.username,
        password=m.password,
    )


def _private_tenant_condition(x: osac.TenantCondition) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.type:
        d["type"] = int(v)
    if v := x.status:
        d["status"] = int(v)
    if (v := x.last_transition_time) is not None:
        d["last_transition_time"] = timestamp_fields(v)
    if (v := x.reason) is not None:
        d["reason"] = v
    if (v := x.message) is not None:
        d["message"] = v
    return d


def private_tenant_condition_to_message(x: osac.TenantCondition) -> Message:
    return message("osac.private.v1.TenantCondition")(**_private_tenant_condition(x))


def private_tenant_condition_from_message(m: Any) -> osac.TenantCondition:
    return osac.TenantCondition(
        type=_TENANT_CONDITION_TYPE[m.type],
        status=_CONDITION_STATUS[m.status],
        last_transition_time=moment(m.last_transition_time)
        if m.HasField("last_transition_time")
        else None,
        reason=m.reason if m.HasField("reason") else None,
        message=m.message if m.HasField("message") else None,
    )


def _private_tenant_status(x: osac.TenantStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.break_glass_credentials) is not osac.NO_BREAK_GLASS_CREDENTIALS:
        d["break_glass_credentials"] = _private_break_glass_credentials(v)
    if v := x.state:
        d["state"] = int(v)
    if (v := x.message) is not None:
        d["message"] = v
    if v := x.idp_tenant_name:
        d["idp_tenant_name"] = v
    if v := x.break_glass_user_id:
        d["break_glass_user_id"] = v
    if x.conditions:
        d["conditions"] = [_private_tenant_condition(v) for v in x.conditions]
    return d


def private_tenant_status_to_message(x: osac.TenantStatus) -> Message:
    return message("osac.private.v1.TenantStatus")(**_private_tenant_status(x))


def private_tenant_status_from_message(m: Any) -> osac.TenantStatus:
    return osac.TenantStatus(
        break_glass_credentials=private_break_glass_credentials_from_message(
            m.break_glass_credentials
        )
        if m.HasField("break_glass_credentials")
        else osac.NO_BREAK_GLASS_CREDENTIALS,
        state=_TENANT_STATE[m.state],
        message=m.message if m.HasField("message") else None,
        idp_tenant_name=m.idp_tenant_name,
        break_glass_user_id=m.break_glass_user_id,
        conditions=tuple([private_tenant_condition_from_message(v) for v in c])
        if (c := m.conditions)
        else (),
    )


def _private_tenant(x: osac.Tenant) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if (v := x.spec) is not osac.NO_TENANT_SPEC:
        d["spec"] = _private_tenant_spec(v)
    if (v := x.status) is not osac.NO_TENANT_STATUS:
        d["status"] = _private_tenant_status(v)
    return d


def private_tenant_to_message(x: osac.Tenant) -> Message:
    return message("osac.private.v1.Tenant")(**_private_tenant(x))


def private_tenant_from_message(m: Any) -> osac.Tenant:
    return osac.Tenant(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=private_tenant_spec_from_message(m.spec)
        if m.HasField("spec")
        else osac.NO_TENANT_SPEC,
        status=private_tenant_status_from_message(m.status)
        if m.HasField("status")
        else osac.NO_TENANT_STATUS,
    )


def _private_project_spec(x: osac.ProjectSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.title:
        d["title"] = v
    if (v := x.description) is not None:
        d["description"] = v
    return d


def private_project_spec_to_message(x: osac.ProjectSpec) -> Message:
    return message("osac.private.v1.ProjectSpec")(**_private_project_spec(x))


def private_project_spec_from_message(m: Any) -> osac.ProjectSpec:
    return osac.ProjectSpec(
        title=m.title,
        description=m.description if m.HasField("description") else None,
    )


def _private_project_condition(x: osac.ProjectCondition) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.type:
        d["type"] = int(v)
    if v := x.status:
        d["status"] = int(v)
    if (v := x.reason) is not None:
        d["reason"] = v
    if (v := x.message) is not None:
        d["message"] = v
    return d


def private_project_condition_to_message(x: osac.ProjectCondition) -> Message:
    return message("osac.private.v1.ProjectCondition")(**_private_project_condition(x))


def private_project_condition_from_message(m: Any) -> osac.ProjectCondition:
    return osac.ProjectCondition(
        type=_PROJECT_CONDITION_TYPE[m.type],
        status=_CONDITION_STATUS[m.status],
        reason=m.reason if m.HasField("reason") else None,
        message=m.message if m.HasField("message") else None,
    )


def _private_project_status(x: osac.ProjectStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.state:
        d["state"] = int(v)
    if (v := x.message) is not None:
        d["message"] = v
    if x.conditions:
        d["conditions"] = [_private_project_condition(v) for v in x.conditions]
    return d


def private_project_status_to_message(x: osac.ProjectStatus) -> Message:
    return message("osac.private.v1.ProjectStatus")(**_private_project_status(x))


def private_project_status_from_message(m: Any) -> osac.ProjectStatus:
    return osac.ProjectStatus(
        state=_PROJECT_STATE[m.state],
        message=m.message if m.HasField("message") else None,
        conditions=tuple([private_project_condition_from_message(v) for v in c])
        if (c := m.conditions)
        else (),
    )


def _private_project(x: osac.Project) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if (v := x.spec) is not osac.NO_PROJECT_SPEC:
        d["spec"] = _private_project_spec(v)
    if (v := x.status) is not osac.NO_PROJECT_STATUS:
        d["status"] = _private_project_status(v)
    return d


def private_project_to_message(x: osac.Project) -> Message:
    return message("osac.private.v1.Project")(**_private_project(x))


def private_project_from_message(m: Any) -> osac.Project:
    return osac.Project(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=private_project_spec_from_message(m.spec)
        if m.HasField("spec")
        else osac.NO_PROJECT_SPEC,
        status=private_project_status_from_message(m.status)
        if m.HasField("status")
        else osac.NO_PROJECT_STATUS,
    )


def _private_network_interface(x: osac.NetworkInterface) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.name:
        d["name"] = v
    if v := x.role:
        d["role"] = v
    if v := x.description:
        d["description"] = v
    return d


def private_network_interface_to_message(x: osac.NetworkInterface) -> Message:
    return message("osac.private.v1.NetworkInterface")(**_private_network_interface(x))


def private_network_interface_from_message(m: Any) -> osac.NetworkInterface:
    return osac.NetworkInterface(
        name=m.name,
        role=m.role,
        description=m.description,
    )


def _private_host_type(x: osac.HostType) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if v := x.title:
        d["title"] = v
    if v := x.description:
        d["description"] = v
    if x.interfaces:
        d["interfaces"] = [_private_network_interface(v) for v in x.interfaces]
    if x.resources:
        d["resources"] = x.resources
    return d


def private_host_type_to_message(x: osac.HostType) -> Message:
    return message("osac.private.v1.HostType")(**_private_host_type(x))


def private_host_type_from_message(m: Any) -> osac.HostType:
    return osac.HostType(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        title=m.title,
        description=m.description,
        interfaces=tuple([private_network_interface_from_message(v) for v in c])
        if (c := m.interfaces)
        else (),
        resources={k: c[k] for k in c} if (c := m.resources) else {},
    )


def _private_cluster_version_deprecation(x: osac.ClusterVersionDeprecation) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.deprecation_timestamp) is not None:
        d["deprecation_timestamp"] = timestamp_fields(v)
    if (v := x.obsolescence_timestamp) is not None:
        d["obsolescence_timestamp"] = timestamp_fields(v)
    return d


def private_cluster_version_deprecation_to_message(x: osac.ClusterVersionDeprecation) -> Message:
    return message("osac.private.v1.ClusterVersionDeprecation")(
        **_private_cluster_version_deprecation(x)
    )


def private_cluster_version_deprecation_from_message(m: Any) -> osac.ClusterVersionDeprecation:
    return osac.ClusterVersionDeprecation(
        deprecation_timestamp=moment(m.deprecation_timestamp)
        if m.HasField("deprecation_timestamp")
        else None,
        obsolescence_timestamp=moment(m.obsolescence_timestamp)
        if m.HasField("obsolescence_timestamp")
        else None,
    )


def _private_cluster_version_spec(x: osac.ClusterVersionSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.image:
        d["image"] = v
    if (v := x.enabled) is not None:
        d["enabled"] = v
    if (v := x.is_default) is not None:
        d["is_default"] = v
    if v := x.state:
        d["state"] = int(v)
    if (v := x.deprecation) is not osac.NO_CLUSTER_VERSION_DEPRECATION:
        d["deprecation"] = _private_cluster_version_deprecation(v)
    if v := x.version:
        d["version"] = v
    return d


def private_cluster_version_spec_to_message(x: osac.ClusterVersionSpec) -> Message:
    return message("osac.private.v1.ClusterVersionSpec")(**_private_cluster_version_spec(x))


def private_cluster_version_spec_from_message(m: Any) -> osac.ClusterVersionSpec:
    return osac.ClusterVersionSpec(
        image=m.image,
        enabled=m.enabled if m.HasField("enabled") else None,
        is_default=m.is_default if m.HasField("is_default") else None,
        state=_CLUSTER_VERSION_STATE[m.state],
        deprecation=private_cluster_version_deprecation_from_message(m.deprecation)
        if m.HasField("deprecation")
        else osac.NO_CLUSTER_VERSION_DEPRECATION,
        version=m.version,
    )


def _private_cluster_version_status(x: osac.ClusterVersionStatus) -> dict[str, Any]:
    d: dict[str, Any] = {}
    return d


def private_cluster_version_status_to_message(x: osac.ClusterVersionStatus) -> Message:
    return message("osac.private.v1.ClusterVersionStatus")(**_private_cluster_version_status(x))


def private_cluster_version_status_from_message(m: Any) -> osac.ClusterVersionStatus:
    return osac.ClusterVersionStatus()


def _private_cluster_version(x: osac.ClusterVersion) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if (v := x.spec) is not osac.NO_CLUSTER_VERSION_SPEC:
        d["spec"] = _private_cluster_version_spec(v)
    if (v := x.status) is not osac.NO_CLUSTER_VERSION_STATUS:
        d["status"] = _private_cluster_version_status(v)
    return d


def private_cluster_version_to_message(x: osac.ClusterVersion) -> Message:
    return message("osac.private.v1.ClusterVersion")(**_private_cluster_version(x))


def private_cluster_version_from_message(m: Any) -> osac.ClusterVersion:
    return osac.ClusterVersion(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=private_cluster_version_spec_from_message(m.spec)
        if m.HasField("spec")
        else osac.NO_CLUSTER_VERSION_SPEC,
        status=private_cluster_version_status_from_message(m.status)
        if m.HasField("status")
        else osac.NO_CLUSTER_VERSION_STATUS,
    )


def _private_cluster_template_parameter_definition(
    x: osac.ClusterTemplateParameterDefinition,
) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.name:
        d["name"] = v
    if v := x.title:
        d["title"] = v
    if v := x.description:
        d["description"] = v
    if v := x.required:
        d["required"] = v
    if v := x.type:
        d["type"] = v
    if (v := x.default) is not None:
        d["default"] = any_fields(v)
    if v := x.no_log:
        d["no_log"] = v
    return d


def private_cluster_template_parameter_definition_to_message(
    x: osac.ClusterTemplateParameterDefinition,
) -> Message:
    return message("osac.private.v1.ClusterTemplateParameterDefinition")(
        **_private_cluster_template_parameter_definition(x)
    )


def private_cluster_template_parameter_definition_from_message(
    m: Any,
) -> osac.ClusterTemplateParameterDefinition:
    return osac.ClusterTemplateParameterDefinition(
        name=m.name,
        title=m.title,
        description=m.description,
        required=m.required,
        type=m.type,
        default=any_value(m.default) if m.HasField("default") else None,
        no_log=m.no_log,
    )


def _private_host_type_reference(x: osac.HostTypeReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    if v := x.project:
        d["project"] = v
    if v := x.shared:
        d["shared"] = v
    return d


def private_host_type_reference_to_message(x: osac.HostTypeReference) -> Message:
    return message("osac.private.v1.HostTypeReference")(**_private_host_type_reference(x))


def private_host_type_reference_from_message(m: Any) -> osac.HostTypeReference:
    return osac.HostTypeReference(
        id=m.id,
        name=m.name,
        project=m.project,
        shared=m.shared,
    )


def _private_cluster_template_node_set(x: osac.ClusterTemplateNodeSet) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.host_type) is not osac.NO_HOST_TYPE_REFERENCE:
        d["host_type"] = _private_host_type_reference(v)
    if v := x.size:
        d["size"] = v
    return d


def private_cluster_template_node_set_to_message(x: osac.ClusterTemplateNodeSet) -> Message:
    return message("osac.private.v1.ClusterTemplateNodeSet")(
        **_private_cluster_template_node_set(x)
    )


def private_cluster_template_node_set_from_message(m: Any) -> osac.ClusterTemplateNodeSet:
    return osac.ClusterTemplateNodeSet(
        host_type=private_host_type_reference_from_message(m.host_type)
        if m.HasField("host_type")
        else osac.NO_HOST_TYPE_REFERENCE,
        size=m.size,
    )


def _private_cluster_network(x: osac.ClusterNetwork) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.pod_cidr) is not None:
        d["pod_cidr"] = v
    if (v := x.service_cidr) is not None:
        d["service_cidr"] = v
    return d


def private_cluster_network_to_message(x: osac.ClusterNetwork) -> Message:
    return message("osac.private.v1.ClusterNetwork")(**_private_cluster_network(x))


def private_cluster_network_from_message(m: Any) -> osac.ClusterNetwork:
    return osac.ClusterNetwork(
        pod_cidr=m.pod_cidr if m.HasField("pod_cidr") else None,
        service_cidr=m.service_cidr if m.HasField("service_cidr") else None,
    )


def _private_cluster_version_reference(x: osac.ClusterVersionReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    if v := x.project:
        d["project"] = v
    if v := x.shared:
        d["shared"] = v
    return d


def private_cluster_version_reference_to_message(x: osac.ClusterVersionReference) -> Message:
    return message("osac.private.v1.ClusterVersionReference")(
        **_private_cluster_version_reference(x)
    )


def private_cluster_version_reference_from_message(m: Any) -> osac.ClusterVersionReference:
    return osac.ClusterVersionReference(
        id=m.id,
        name=m.name,
        project=m.project,
        shared=m.shared,
    )


def _private_secret_local_reference(x: osac.SecretLocalReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    return d


def private_secret_local_reference_to_message(x: osac.SecretLocalReference) -> Message:
    return message("osac.private.v1.SecretLocalReference")(**_private_secret_local_reference(x))


def private_secret_local_reference_from_message(m: Any) -> osac.SecretLocalReference:
    return osac.SecretLocalReference(
        id=m.id,
        name=m.name,
    )


def _private_cluster_template_spec_defaults(x: osac.ClusterTemplateSpecDefaults) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.pull_secret) is not None:
        d["pull_secret"] = v
    if (v := x.ssh_public_key) is not None:
        d["ssh_public_key"] = v
    if (v := x.network) is not None:
        d["network"] = _private_cluster_network(v)
    if (v := x.version) is not osac.NO_CLUSTER_VERSION_REFERENCE:
        d["version"] = _private_cluster_version_reference(v)
    if (v := x.pull_secret_secret) is not osac.NO_SECRET_LOCAL_REFERENCE:
        d["pull_secret_secret"] = _private_secret_local_reference(v)
    return d


def private_cluster_template_spec_defaults_to_message(
    x: osac.ClusterTemplateSpecDefaults,
) -> Message:
    return message("osac.private.v1.ClusterTemplateSpecDefaults")(
        **_private_cluster_template_spec_defaults(x)
    )


def private_cluster_template_spec_defaults_from_message(m: Any) -> osac.ClusterTemplateSpecDefaults:
    return osac.ClusterTemplateSpecDefaults(
        pull_secret=m.pull_secret if m.HasField("pull_secret") else None,
        ssh_public_key=m.ssh_public_key if m.HasField("ssh_public_key") else None,
        network=private_cluster_network_from_message(m.network) if m.HasField("network") else None,
        version=private_cluster_version_reference_from_message(m.version)
        if m.HasField("version")
        else osac.NO_CLUSTER_VERSION_REFERENCE,
        pull_secret_secret=private_secret_local_reference_from_message(m.pull_secret_secret)
        if m.HasField("pull_secret_secret")
        else osac.NO_SECRET_LOCAL_REFERENCE,
    )


def _private_cluster_template(x: osac.ClusterTemplate) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if v := x.title:
        d["title"] = v
    if v := x.description:
        d["description"] = v
    if x.parameters:
        d["parameters"] = [_private_cluster_template_parameter_definition(v) for v in x.parameters]
    if x.node_sets:
        d["node_sets"] = {k: _private_cluster_template_node_set(v) for k, v in x.node_sets.items()}
    if (v := x.spec_defaults) is not osac.NO_CLUSTER_TEMPLATE_SPEC_DEFAULTS:
        d["spec_defaults"] = _private_cluster_template_spec_defaults(v)
    if x.hub_labels:
        d["hub_labels"] = x.hub_labels
    if x.platform_settings:
        d["platform_settings"] = x.platform_settings
    if v := x.digest:
        d["digest"] = v
    if v := x.form:
        d["form"] = v
    if x.allowed_host_types:
        d["allowed_host_types"] = x.allowed_host_types
    if v := x.version_from:
        d["version_from"] = v
    if v := x.version_below:
        d["version_below"] = v
    if x.phases:
        d["phases"] = x.phases
    if v := x.withdrawn:
        d["withdrawn"] = v
    return d


def private_cluster_template_to_message(x: osac.ClusterTemplate) -> Message:
    return message("osac.private.v1.ClusterTemplate")(**_private_cluster_template(x))


def private_cluster_template_from_message(m: Any) -> osac.ClusterTemplate:
    return osac.ClusterTemplate(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        title=m.title,
        description=m.description,
        parameters=tuple([private_cluster_template_parameter_definition_from_message(v) for v in c])
        if (c := m.parameters)
        else (),
        node_sets={k: private_cluster_template_node_set_from_message(c[k]) for k in c}
        if (c := m.node_sets)
        else {},
        spec_defaults=private_cluster_template_spec_defaults_from_message(m.spec_defaults)
        if m.HasField("spec_defaults")
        else osac.NO_CLUSTER_TEMPLATE_SPEC_DEFAULTS,
        hub_labels={k: c[k] for k in c} if (c := m.hub_labels) else {},
        platform_settings={k: c[k] for k in c} if (c := m.platform_settings) else {},
        digest=m.digest,
        form=m.form,
        allowed_host_types=tuple(c) if (c := m.allowed_host_types) else (),
        version_from=m.version_from,
        version_below=m.version_below,
        phases=tuple(c) if (c := m.phases) else (),
        withdrawn=m.withdrawn,
    )


def _private_hub_spec(x: osac.HubSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.kubeconfig:
        d["kubeconfig"] = v
    if v := x.namespace:
        d["namespace"] = v
    if v := x.zone:
        d["zone"] = v
    if x.labels:
        d["labels"] = x.labels
    if x.drivers:
        d["drivers"] = x.drivers
    if x.capacity:
        d["capacity"] = x.capacity
    if v := x.cordoned:
        d["cordoned"] = v
    if x.settings:
        d["settings"] = x.settings
    if x.templates:
        d["templates"] = x.templates
    return d


def private_hub_spec_to_message(x: osac.HubSpec) -> Message:
    return message("osac.private.v1.HubSpec")(**_private_hub_spec(x))


def private_hub_spec_from_message(m: Any) -> osac.HubSpec:
    return osac.HubSpec(
        kubeconfig=m.kubeconfig,
        namespace=m.namespace,
        zone=m.zone,
        labels={k: c[k] for k in c} if (c := m.labels) else {},
        drivers={k: c[k] for k in c} if (c := m.drivers) else {},
        capacity={k: c[k] for k in c} if (c := m.capacity) else {},
        cordoned=m.cordoned,
        settings={k: c[k] for k in c} if (c := m.settings) else {},
        templates=tuple(c) if (c := m.templates) else (),
    )


def _private_hub_condition(x: osac.HubCondition) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.type:
        d["type"] = int(v)
    if v := x.status:
        d["status"] = int(v)
    if (v := x.last_transition_time) is not None:
        d["last_transition_time"] = timestamp_fields(v)
    if v := x.reason:
        d["reason"] = v
    if v := x.message:
        d["message"] = v
    if v := x.remedy:
        d["remedy"] = v
    return d


def private_hub_condition_to_message(x: osac.HubCondition) -> Message:
    return message("osac.private.v1.HubCondition")(**_private_hub_condition(x))


def private_hub_condition_from_message(m: Any) -> osac.HubCondition:
    return osac.HubCondition(
        type=_HUB_CONDITION_TYPE[m.type],
        status=_CONDITION_STATUS[m.status],
        last_transition_time=moment(m.last_transition_time)
        if m.HasField("last_transition_time")
        else None,
        reason=m.reason,
        message=m.message,
        remedy=m.remedy,
    )


def _private_hub_status(x: osac.HubStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.state:
        d["state"] = int(v)
    if v := x.message:
        d["message"] = v
    if (v := x.last_seen) is not None:
        d["last_seen"] = timestamp_fields(v)
    if x.used:
        d["used"] = x.used
    if v := x.observed_generation:
        d["observed_generation"] = v
    if x.conditions:
        d["conditions"] = [_private_hub_condition(v) for v in x.conditions]
    if v := x.version:
        d["version"] = v
    if x.capacity:
        d["capacity"] = x.capacity
    if v := x.cluster_uid:
        d["cluster_uid"] = v
    return d


def private_hub_status_to_message(x: osac.HubStatus) -> Message:
    return message("osac.private.v1.HubStatus")(**_private_hub_status(x))


def private_hub_status_from_message(m: Any) -> osac.HubStatus:
    return osac.HubStatus(
        state=_HUB_STATE[m.state],
        message=m.message,
        last_seen=moment(m.last_seen) if m.HasField("last_seen") else None,
        used={k: c[k] for k in c} if (c := m.used) else {},
        observed_generation=m.observed_generation,
        conditions=tuple([private_hub_condition_from_message(v) for v in c])
        if (c := m.conditions)
        else (),
        version=m.version,
        capacity={k: c[k] for k in c} if (c := m.capacity) else {},
        cluster_uid=m.cluster_uid,
    )


def _private_hub(x: osac.Hub) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if (v := x.spec) is not osac.NO_HUB_SPEC:
        d["spec"] = _private_hub_spec(v)
    if (v := x.status) is not osac.NO_HUB_STATUS:
        d["status"] = _private_hub_status(v)
    return d


def private_hub_to_message(x: osac.Hub) -> Message:
    return message("osac.private.v1.Hub")(**_private_hub(x))


def private_hub_from_message(m: Any) -> osac.Hub:
    return osac.Hub(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=private_hub_spec_from_message(m.spec) if m.HasField("spec") else osac.NO_HUB_SPEC,
        status=private_hub_status_from_message(m.status)
        if m.HasField("status")
        else osac.NO_HUB_STATUS,
    )


def _private_cluster_template_reference(x: osac.ClusterTemplateReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    if v := x.project:
        d["project"] = v
    if v := x.shared:
        d["shared"] = v
    return d


def private_cluster_template_reference_to_message(x: osac.ClusterTemplateReference) -> Message:
    return message("osac.private.v1.ClusterTemplateReference")(
        **_private_cluster_template_reference(x)
    )


def private_cluster_template_reference_from_message(m: Any) -> osac.ClusterTemplateReference:
    return osac.ClusterTemplateReference(
        id=m.id,
        name=m.name,
        project=m.project,
        shared=m.shared,
    )


def _private_cluster_node_set(x: osac.ClusterNodeSet) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.host_type) is not osac.NO_HOST_TYPE_REFERENCE:
        d["host_type"] = _private_host_type_reference(v)
    if v := x.size:
        d["size"] = v
    if v := x.fabric_interface:
        d["fabric_interface"] = v
    return d


def private_cluster_node_set_to_message(x: osac.ClusterNodeSet) -> Message:
    return message("osac.private.v1.ClusterNodeSet")(**_private_cluster_node_set(x))


def private_cluster_node_set_from_message(m: Any) -> osac.ClusterNodeSet:
    return osac.ClusterNodeSet(
        host_type=private_host_type_reference_from_message(m.host_type)
        if m.HasField("host_type")
        else osac.NO_HOST_TYPE_REFERENCE,
        size=m.size,
        fabric_interface=m.fabric_interface,
    )


def _private_cluster_catalog_item_reference(x: osac.ClusterCatalogItemReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    if v := x.project:
        d["project"] = v
    if v := x.shared:
        d["shared"] = v
    return d


def private_cluster_catalog_item_reference_to_message(
    x: osac.ClusterCatalogItemReference,
) -> Message:
    return message("osac.private.v1.ClusterCatalogItemReference")(
        **_private_cluster_catalog_item_reference(x)
    )


def private_cluster_catalog_item_reference_from_message(m: Any) -> osac.ClusterCatalogItemReference:
    return osac.ClusterCatalogItemReference(
        id=m.id,
        name=m.name,
        project=m.project,
        shared=m.shared,
    )


def _private_subnet_local_reference(x: osac.SubnetLocalReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    return d


def private_subnet_local_reference_to_message(x: osac.SubnetLocalReference) -> Message:
    return message("osac.private.v1.SubnetLocalReference")(**_private_subnet_local_reference(x))


def private_subnet_local_reference_from_message(m: Any) -> osac.SubnetLocalReference:
    return osac.SubnetLocalReference(
        id=m.id,
        name=m.name,
    )


def _private_security_group_local_reference(x: osac.SecurityGroupLocalReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    return d


def private_security_group_local_reference_to_message(
    x: osac.SecurityGroupLocalReference,
) -> Message:
    return message("osac.private.v1.SecurityGroupLocalReference")(
        **_private_security_group_local_reference(x)
    )


def private_security_group_local_reference_from_message(m: Any) -> osac.SecurityGroupLocalReference:
    return osac.SecurityGroupLocalReference(
        id=m.id,
        name=m.name,
    )


def _private_cluster_network_attachment(x: osac.ClusterNetworkAttachment) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.subnet) is not osac.NO_SUBNET_LOCAL_REFERENCE:
        d["subnet"] = _private_subnet_local_reference(v)
    if x.security_groups:
        d["security_groups"] = [
            _private_security_group_local_reference(v) for v in x.security_groups
        ]
    return d


def private_cluster_network_attachment_to_message(x: osac.ClusterNetworkAttachment) -> Message:
    return message("osac.private.v1.ClusterNetworkAttachment")(
        **_private_cluster_network_attachment(x)
    )


def private_cluster_network_attachment_from_message(m: Any) -> osac.ClusterNetworkAttachment:
    return osac.ClusterNetworkAttachment(
        subnet=private_subnet_local_reference_from_message(m.subnet)
        if m.HasField("subnet")
        else osac.NO_SUBNET_LOCAL_REFERENCE,
        security_groups=tuple([private_security_group_local_reference_from_message(v) for v in c])
        if (c := m.security_groups)
        else (),
    )


def _private_cluster_restore(x: osac.ClusterRestore) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.backup:
        d["backup"] = v
    if v := x.request:
        d["request"] = v
    return d


def private_cluster_restore_to_message(x: osac.ClusterRestore) -> Message:
    return message("osac.private.v1.ClusterRestore")(**_private_cluster_restore(x))


def private_cluster_restore_from_message(m: Any) -> osac.ClusterRestore:
    return osac.ClusterRestore(
        backup=m.backup,
        request=m.request,
    )


def _private_cluster_spec(x: osac.ClusterSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.template) is not osac.NO_CLUSTER_TEMPLATE_REFERENCE:
        d["template"] = _private_cluster_template_reference(v)
    if x.template_parameters:
        d["template_parameters"] = {k: any_fields(v) for k, v in x.template_parameters.items()}
    if x.node_sets:
        d["node_sets"] = {k: _private_cluster_node_set(v) for k, v in x.node_sets.items()}
    if (v := x.pull_secret) is not None:
        d["pull_secret"] = v
    if (v := x.ssh_public_key) is not None:
        d["ssh_public_key"] = v
    if (v := x.version) is not osac.NO_CLUSTER_VERSION_REFERENCE:
        d["version"] = _private_cluster_version_reference(v)
    if (v := x.network) is not None:
        d["network"] = _private_cluster_network(v)
    if (v := x.catalog_item) is not osac.NO_CLUSTER_CATALOG_ITEM_REFERENCE:
        d["catalog_item"] = _private_cluster_catalog_item_reference(v)
    if (v := x.network_attachment) is not osac.NO_CLUSTER_NETWORK_ATTACHMENT:
        d["network_attachment"] = _private_cluster_network_attachment(v)
    if v := x.auto_external_ip_attachment:
        d["auto_external_ip_attachment"] = v
    if (v := x.pull_secret_secret) is not osac.NO_SECRET_LOCAL_REFERENCE:
        d["pull_secret_secret"] = _private_secret_local_reference(v)
    if v := x.zone:
        d["zone"] = v
    if x.hub_labels:
        d["hub_labels"] = x.hub_labels
    if v := x.rest:
        d["rest"] = int(v)
    if (v := x.restore) is not osac.NO_CLUSTER_RESTORE:
        d["restore"] = _private_cluster_restore(v)
    if v := x.template_digest:
        d["template_digest"] = v
    if x.template_phases:
        d["template_phases"] = x.template_phases
    if v := x.secret_parameters:
        d["secret_parameters"] = v
    return d


def private_cluster_spec_to_message(x: osac.ClusterSpec) -> Message:
    return message("osac.private.v1.ClusterSpec")(**_private_cluster_spec(x))


def private_cluster_spec_from_message(m: Any) -> osac.ClusterSpec:
    return osac.ClusterSpec(
        template=private_cluster_template_reference_from_message(m.template)
        if m.HasField("template")
        else osac.NO_CLUSTER_TEMPLATE_REFERENCE,
        template_parameters={k: any_value(c[k]) for k in c} if (c := m.template_parameters) else {},
        node_sets={k: private_cluster_node_set_from_message(c[k]) for k in c}
        if (c := m.node_sets)
        else {},
        pull_secret=m.pull_secret if m.HasField("pull_secret") else None,
        ssh_public_key=m.ssh_public_key if m.HasField("ssh_public_key") else None,
        version=private_cluster_version_reference_from_message(m.version)
        if m.HasField("version")
        else osac.NO_CLUSTER_VERSION_REFERENCE,
        network=private_cluster_network_from_message(m.network) if m.HasField("network") else None,
        catalog_item=private_cluster_catalog_item_reference_from_message(m.catalog_item)
        if m.HasField("catalog_item")
        else osac.NO_CLUSTER_CATALOG_ITEM_REFERENCE,
        network_attachment=private_cluster_network_attachment_from_message(m.network_attachment)
        if m.HasField("network_attachment")
        else osac.NO_CLUSTER_NETWORK_ATTACHMENT,
        auto_external_ip_attachment=m.auto_external_ip_attachment,
        pull_secret_secret=private_secret_local_reference_from_message(m.pull_secret_secret)
        if m.HasField("pull_secret_secret")
        else osac.NO_SECRET_LOCAL_REFERENCE,
        zone=m.zone,
        hub_labels={k: c[k] for k in c} if (c := m.hub_labels) else {},
        rest=_CLUSTER_REST[m.rest],
        restore=private_cluster_restore_from_message(m.restore)
        if m.HasField("restore")
        else osac.NO_CLUSTER_RESTORE,
        template_digest=m.template_digest,
        template_phases=tuple(c) if (c := m.template_phases) else (),
        secret_parameters=m.secret_parameters,
    )


def _private_cluster_condition(x: osac.ClusterCondition) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.type:
        d["type"] = int(v)
    if v := x.status:
        d["status"] = int(v)
    if (v := x.last_transition_time) is not None:
        d["last_transition_time"] = timestamp_fields(v)
    if (v := x.reason) is not None:
        d["reason"] = v
    if (v := x.message) is not None:
        d["message"] = v
    return d


def private_cluster_condition_to_message(x: osac.ClusterCondition) -> Message:
    return message("osac.private.v1.ClusterCondition")(**_private_cluster_condition(x))


def private_cluster_condition_from_message(m: Any) -> osac.ClusterCondition:
    return osac.ClusterCondition(
        type=_CLUSTER_CONDITION_TYPE[m.type],
        status=_CONDITION_STATUS[m.status],
        last_transition_time=moment(m.last_transition_time)
        if m.HasField("last_transition_time")
        else None,
        reason=m.reason if m.HasField("reason") else None,
        message=m.message if m.HasField("message") else None,
    )


def _private_placement_candidate(x: osac.PlacementCandidate) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.hub:
        d["hub"] = v
    if v := x.fits:
        d["fits"] = v
    if v := x.score:
        d["score"] = v
    if v := x.reason:
        d["reason"] = v
    return d


def private_placement_candidate_to_message(x: osac.PlacementCandidate) -> Message:
    return message("osac.private.v1.PlacementCandidate")(**_private_placement_candidate(x))


def private_placement_candidate_from_message(m: Any) -> osac.PlacementCandidate:
    return osac.PlacementCandidate(
        hub=m.hub,
        fits=m.fits,
        score=m.score,
        reason=m.reason,
    )


def _private_placement(x: osac.Placement) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.hub:
        d["hub"] = v
    if (v := x.decided_at) is not None:
        d["decided_at"] = timestamp_fields(v)
    if v := x.reason:
        d["reason"] = v
    if x.candidates:
        d["candidates"] = [_private_placement_candidate(v) for v in x.candidates]
    return d


def private_placement_to_message(x: osac.Placement) -> Message:
    return message("osac.private.v1.Placement")(**_private_placement(x))


def private_placement_from_message(m: Any) -> osac.Placement:
    return osac.Placement(
        hub=m.hub,
        decided_at=moment(m.decided_at) if m.HasField("decided_at") else None,
        reason=m.reason,
        candidates=tuple([private_placement_candidate_from_message(v) for v in c])
        if (c := m.candidates)
        else (),
    )


def _private_cluster_status(x: osac.ClusterStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.state:
        d["state"] = int(v)
    if x.conditions:
        d["conditions"] = [_private_cluster_condition(v) for v in x.conditions]
    if v := x.api_url:
        d["api_url"] = v
    if v := x.console_url:
        d["console_url"] = v
    if x.node_sets:
        d["node_sets"] = {k: _private_cluster_node_set(v) for k, v in x.node_sets.items()}
    if v := x.hub:
        d["hub"] = v
    if v := x.api_endpoint:
        d["api_endpoint"] = v
    if v := x.ingress_endpoint:
        d["ingress_endpoint"] = v
    if (v := x.state_transition_time) is not None:
        d["state_transition_time"] = timestamp_fields(v)
    if (v := x.placement) is not osac.NO_PLACEMENT:
        d["placement"] = _private_placement(v)
    if v := x.observed_generation:
        d["observed_generation"] = v
    if x.ready_nodes:
        d["ready_nodes"] = x.ready_nodes
    if v := x.version:
        d["version"] = v
    if v := x.rest:
        d["rest"] = int(v)
    if v := x.restored:
        d["restored"] = v
    return d


def private_cluster_status_to_message(x: osac.ClusterStatus) -> Message:
    return message("osac.private.v1.ClusterStatus")(**_private_cluster_status(x))


def private_cluster_status_from_message(m: Any) -> osac.ClusterStatus:
    return osac.ClusterStatus(
        state=_CLUSTER_STATE[m.state],
        conditions=tuple([private_cluster_condition_from_message(v) for v in c])
        if (c := m.conditions)
        else (),
        api_url=m.api_url,
        console_url=m.console_url,
        node_sets={k: private_cluster_node_set_from_message(c[k]) for k in c}
        if (c := m.node_sets)
        else {},
        hub=m.hub,
        api_endpoint=m.api_endpoint,
        ingress_endpoint=m.ingress_endpoint,
        state_transition_time=moment(m.state_transition_time)
        if m.HasField("state_transition_time")
        else None,
        placement=private_placement_from_message(m.placement)
        if m.HasField("placement")
        else osac.NO_PLACEMENT,
        observed_generation=m.observed_generation,
        ready_nodes={k: c[k] for k in c} if (c := m.ready_nodes) else {},
        version=m.version,
        rest=_CLUSTER_REST[m.rest],
        restored=m.restored,
    )


def _private_cluster(x: osac.Cluster) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if (v := x.spec) is not osac.NO_CLUSTER_SPEC:
        d["spec"] = _private_cluster_spec(v)
    if (v := x.status) is not osac.NO_CLUSTER_STATUS:
        d["status"] = _private_cluster_status(v)
    return d


def private_cluster_to_message(x: osac.Cluster) -> Message:
    return message("osac.private.v1.Cluster")(**_private_cluster(x))


def private_cluster_from_message(m: Any) -> osac.Cluster:
    return osac.Cluster(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=private_cluster_spec_from_message(m.spec)
        if m.HasField("spec")
        else osac.NO_CLUSTER_SPEC,
        status=private_cluster_status_from_message(m.status)
        if m.HasField("status")
        else osac.NO_CLUSTER_STATUS,
    )


def _private_event(x: osac.Event) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.type:
        d["type"] = int(v)
    if (v := x.cluster) is not None:
        d["cluster"] = _private_cluster(v)
    if (v := x.cluster_template) is not None:
        d["cluster_template"] = _private_cluster_template(v)
    if (v := x.host_type) is not None:
        d["host_type"] = _private_host_type(v)
    if (v := x.hub) is not None:
        d["hub"] = _private_hub(v)
    if (v := x.project) is not None:
        d["project"] = _private_project(v)
    if (v := x.tenant) is not None:
        d["tenant"] = _private_tenant(v)
    if (v := x.cluster_version) is not None:
        d["cluster_version"] = _private_cluster_version(v)
    if (v := x.at) is not None:
        d["at"] = timestamp_fields(v)
    if v := x.reason:
        d["reason"] = v
    if v := x.message:
        d["message"] = v
    if v := x.bookmark:
        d["bookmark"] = v
    return d


def private_event_to_message(x: osac.Event) -> Message:
    return message("osac.private.v1.Event")(**_private_event(x))


def private_event_from_message(m: Any) -> osac.Event:
    return osac.Event(
        id=m.id,
        type=_EVENT_TYPE[m.type],
        cluster=private_cluster_from_message(m.cluster) if m.HasField("cluster") else None,
        cluster_template=private_cluster_template_from_message(m.cluster_template)
        if m.HasField("cluster_template")
        else None,
        host_type=private_host_type_from_message(m.host_type) if m.HasField("host_type") else None,
        hub=private_hub_from_message(m.hub) if m.HasField("hub") else None,
        project=private_project_from_message(m.project) if m.HasField("project") else None,
        tenant=private_tenant_from_message(m.tenant) if m.HasField("tenant") else None,
        cluster_version=private_cluster_version_from_message(m.cluster_version)
        if m.HasField("cluster_version")
        else None,
        at=moment(m.at) if m.HasField("at") else None,
        reason=m.reason,
        message=m.message,
        bookmark=m.bookmark,
    )


def _boatyard_access_issue_request(x: boatyard.AccessIssueRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    if v := x.user:
        d["user"] = v
    if (v := x.ttl_seconds) is not None:
        d["ttl_seconds"] = v
    return d


def boatyard_access_issue_request_to_message(x: boatyard.AccessIssueRequest) -> Message:
    return message("boatyard.v1.AccessIssueRequest")(**_boatyard_access_issue_request(x))


def boatyard_access_issue_request_from_message(m: Any) -> boatyard.AccessIssueRequest:
    return boatyard.AccessIssueRequest(
        cluster=m.cluster,
        user=m.user,
        ttl_seconds=m.ttl_seconds if m.HasField("ttl_seconds") else None,
    )


def _boatyard_access_issue_response(x: boatyard.AccessIssueResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.kubeconfig:
        d["kubeconfig"] = v
    if (v := x.expires_at) is not None:
        d["expires_at"] = timestamp_fields(v)
    if v := x.user:
        d["user"] = v
    if x.groups:
        d["groups"] = x.groups
    return d


def boatyard_access_issue_response_to_message(x: boatyard.AccessIssueResponse) -> Message:
    return message("boatyard.v1.AccessIssueResponse")(**_boatyard_access_issue_response(x))


def boatyard_access_issue_response_from_message(m: Any) -> boatyard.AccessIssueResponse:
    return boatyard.AccessIssueResponse(
        kubeconfig=m.kubeconfig,
        expires_at=moment(m.expires_at) if m.HasField("expires_at") else None,
        user=m.user,
        groups=tuple(c) if (c := m.groups) else (),
    )


def _boatyard_backup_spec(x: boatyard.BackupSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    if v := x.folder:
        d["folder"] = v
    return d


def boatyard_backup_spec_to_message(x: boatyard.BackupSpec) -> Message:
    return message("boatyard.v1.BackupSpec")(**_boatyard_backup_spec(x))


def boatyard_backup_spec_from_message(m: Any) -> boatyard.BackupSpec:
    return boatyard.BackupSpec(
        cluster=m.cluster,
        folder=m.folder,
    )


def _boatyard_backup_status(x: boatyard.BackupStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.state:
        d["state"] = int(v)
    if (v := x.taken_at) is not None:
        d["taken_at"] = timestamp_fields(v)
    if v := x.bytes:
        d["bytes"] = v
    if v := x.sha256:
        d["sha256"] = v
    if v := x.version:
        d["version"] = v
    if v := x.cluster_name:
        d["cluster_name"] = v
    if v := x.message:
        d["message"] = v
    if v := x.hub:
        d["hub"] = v
    if v := x.place:
        d["place"] = v
    if v := x.cause:
        d["cause"] = v
    if v := x.tries:
        d["tries"] = v
    if v := x.bugs:
        d["bugs"] = v
    if (v := x.next_look) is not None:
        d["next_look"] = timestamp_fields(v)
    if (v := x.delete_by) is not None:
        d["delete_by"] = timestamp_fields(v)
    return d


def boatyard_backup_status_to_message(x: boatyard.BackupStatus) -> Message:
    return message("boatyard.v1.BackupStatus")(**_boatyard_backup_status(x))


def boatyard_backup_status_from_message(m: Any) -> boatyard.BackupStatus:
    return boatyard.BackupStatus(
        state=_BACKUP_STATE[m.state],
        taken_at=moment(m.taken_at) if m.HasField("taken_at") else None,
        bytes=m.bytes,
        sha256=m.sha256,
        version=m.version,
        cluster_name=m.cluster_name,
        message=m.message,
        hub=m.hub,
        place=m.place,
        cause=m.cause,
        tries=m.tries,
        bugs=m.bugs,
        next_look=moment(m.next_look) if m.HasField("next_look") else None,
        delete_by=moment(m.delete_by) if m.HasField("delete_by") else None,
    )


def _boatyard_backup(x: boatyard.Backup) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if (v := x.spec) is not boatyard.NO_BACKUP_SPEC:
        d["spec"] = _boatyard_backup_spec(v)
    if (v := x.status) is not boatyard.NO_BACKUP_STATUS:
        d["status"] = _boatyard_backup_status(v)
    return d


def boatyard_backup_to_message(x: boatyard.Backup) -> Message:
    return message("boatyard.v1.Backup")(**_boatyard_backup(x))


def boatyard_backup_from_message(m: Any) -> boatyard.Backup:
    return boatyard.Backup(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=boatyard_backup_spec_from_message(m.spec)
        if m.HasField("spec")
        else boatyard.NO_BACKUP_SPEC,
        status=boatyard_backup_status_from_message(m.status)
        if m.HasField("status")
        else boatyard.NO_BACKUP_STATUS,
    )


def _boatyard_backups_list_request(x: boatyard.BackupsListRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.offset) is not None:
        d["offset"] = v
    if (v := x.limit) is not None:
        d["limit"] = v
    if (v := x.filter) is not None:
        d["filter"] = v
    if (v := x.order) is not None:
        d["order"] = v
    return d


def boatyard_backups_list_request_to_message(x: boatyard.BackupsListRequest) -> Message:
    return message("boatyard.v1.BackupsListRequest")(**_boatyard_backups_list_request(x))


def boatyard_backups_list_request_from_message(m: Any) -> boatyard.BackupsListRequest:
    return boatyard.BackupsListRequest(
        offset=m.offset if m.HasField("offset") else None,
        limit=m.limit if m.HasField("limit") else None,
        filter=m.filter if m.HasField("filter") else None,
        order=m.order if m.HasField("order") else None,
    )


def _boatyard_backups_list_response(x: boatyard.BackupsListResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.size:
        d["size"] = v
    if v := x.total:
        d["total"] = v
    if x.items:
        d["items"] = [_boatyard_backup(v) for v in x.items]
    return d


def boatyard_backups_list_response_to_message(x: boatyard.BackupsListResponse) -> Message:
    return message("boatyard.v1.BackupsListResponse")(**_boatyard_backups_list_response(x))


def boatyard_backups_list_response_from_message(m: Any) -> boatyard.BackupsListResponse:
    return boatyard.BackupsListResponse(
        size=m.size,
        total=m.total,
        items=tuple([boatyard_backup_from_message(v) for v in c]) if (c := m.items) else (),
    )


def _boatyard_backups_get_request(x: boatyard.BackupsGetRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    return d


def boatyard_backups_get_request_to_message(x: boatyard.BackupsGetRequest) -> Message:
    return message("boatyard.v1.BackupsGetRequest")(**_boatyard_backups_get_request(x))


def boatyard_backups_get_request_from_message(m: Any) -> boatyard.BackupsGetRequest:
    return boatyard.BackupsGetRequest(
        id=m.id,
    )


def _boatyard_backups_get_response(x: boatyard.BackupsGetResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.object) is not boatyard.NO_BACKUP:
        d["object"] = _boatyard_backup(v)
    return d


def boatyard_backups_get_response_to_message(x: boatyard.BackupsGetResponse) -> Message:
    return message("boatyard.v1.BackupsGetResponse")(**_boatyard_backups_get_response(x))


def boatyard_backups_get_response_from_message(m: Any) -> boatyard.BackupsGetResponse:
    return boatyard.BackupsGetResponse(
        object=boatyard_backup_from_message(m.object)
        if m.HasField("object")
        else boatyard.NO_BACKUP,
    )


def _boatyard_backups_create_request(x: boatyard.BackupsCreateRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.object) is not boatyard.NO_BACKUP:
        d["object"] = _boatyard_backup(v)
    return d


def boatyard_backups_create_request_to_message(x: boatyard.BackupsCreateRequest) -> Message:
    return message("boatyard.v1.BackupsCreateRequest")(**_boatyard_backups_create_request(x))


def boatyard_backups_create_request_from_message(m: Any) -> boatyard.BackupsCreateRequest:
    return boatyard.BackupsCreateRequest(
        object=boatyard_backup_from_message(m.object)
        if m.HasField("object")
        else boatyard.NO_BACKUP,
    )


def _boatyard_backups_create_response(x: boatyard.BackupsCreateResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.object) is not boatyard.NO_BACKUP:
        d["object"] = _boatyard_backup(v)
    return d


def boatyard_backups_create_response_to_message(x: boatyard.BackupsCreateResponse) -> Message:
    return message("boatyard.v1.BackupsCreateResponse")(**_boatyard_backups_create_response(x))


def boatyard_backups_create_response_from_message(m: Any) -> boatyard.BackupsCreateResponse:
    return boatyard.BackupsCreateResponse(
        object=boatyard_backup_from_message(m.object)
        if m.HasField("object")
        else boatyard.NO_BACKUP,
    )


def _boatyard_backups_delete_request(x: boatyard.BackupsDeleteRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    return d


def boatyard_backups_delete_request_to_message(x: boatyard.BackupsDeleteRequest) -> Message:
    return message("boatyard.v1.BackupsDeleteRequest")(**_boatyard_backups_delete_request(x))


def boatyard_backups_delete_request_from_message(m: Any) -> boatyard.BackupsDeleteRequest:
    return boatyard.BackupsDeleteRequest(
        id=m.id,
    )


def _boatyard_backups_delete_response(x: boatyard.BackupsDeleteResponse) -> dict[str, Any]:
    d: dict[str, Any] = {}
    return d


def boatyard_backups_delete_response_to_message(x: boatyard.BackupsDeleteResponse) -> Message:
    return message("boatyard.v1.BackupsDeleteResponse")(**_boatyard_backups_delete_response(x))


def boatyard_backups_delete_response_from_message(m: Any) -> boatyard.BackupsDeleteResponse:
    return boatyard.BackupsDeleteResponse()


def _boatyard_order_node_set(x: boatyard.OrderNodeSet) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.host_type:
        d["host_type"] = v
    if v := x.size:
        d["size"] = v
    return d


def boatyard_order_node_set_to_message(x: boatyard.OrderNodeSet) -> Message:
    return message("boatyard.v1.OrderNodeSet")(**_boatyard_order_node_set(x))


def boatyard_order_node_set_from_message(m: Any) -> boatyard.OrderNodeSet:
    return boatyard.OrderNodeSet(
        host_type=m.host_type,
        size=m.size,
    )


def _boatyard_order_restore(x: boatyard.OrderRestore) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.request:
        d["request"] = v
    if v := x.backup:
        d["backup"] = v
    return d


def boatyard_order_restore_to_message(x: boatyard.OrderRestore) -> Message:
    return message("boatyard.v1.OrderRestore")(**_boatyard_order_restore(x))


def boatyard_order_restore_from_message(m: Any) -> boatyard.OrderRestore:
    return boatyard.OrderRestore(
        request=m.request,
        backup=m.backup,
    )


def _boatyard_order_spec(x: boatyard.OrderSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster_name:
        d["cluster_name"] = v
    if v := x.hub:
        d["hub"] = v
    if v := x.template:
        d["template"] = v
    if x.template_parameters:
        d["template_parameters"] = {k: any_fields(v) for k, v in x.template_parameters.items()}
    if x.node_sets:
        d["node_sets"] = {k: _boatyard_order_node_set(v) for k, v in x.node_sets.items()}
    if v := x.version:
        d["version"] = v
    if v := x.release_image:
        d["release_image"] = v
    if v := x.ssh_public_key:
        d["ssh_public_key"] = v
    if v := x.pull_secret:
        d["pull_secret"] = v
    if v := x.pod_cidr:
        d["pod_cidr"] = v
    if v := x.service_cidr:
        d["service_cidr"] = v
    if v := x.generation:
        d["generation"] = v
    if (v := x.delete_by) is not None:
        d["delete_by"] = timestamp_fields(v)
    if x.platform_settings:
        d["platform_settings"] = x.platform_settings
    if v := x.rest:
        d["rest"] = int(v)
    if (v := x.restore) is not boatyard.NO_ORDER_RESTORE:
        d["restore"] = _boatyard_order_restore(v)
    if x.secret_parameters:
        d["secret_parameters"] = x.secret_parameters
    if v := x.template_digest:
        d["template_digest"] = v
    if v := x.secret_values:
        d["secret_values"] = v
    if x.template_phases:
        d["template_phases"] = x.template_phases
    if x.labels:
        d["labels"] = x.labels
    if x.annotations:
        d["annotations"] = x.annotations
    if v := x.project:
        d["project"] = v
    if v := x.display_name:
        d["display_name"] = v
    return d


def boatyard_order_spec_to_message(x: boatyard.OrderSpec) -> Message:
    return message("boatyard.v1.OrderSpec")(**_boatyard_order_spec(x))


def boatyard_order_spec_from_message(m: Any) -> boatyard.OrderSpec:
    return boatyard.OrderSpec(
        cluster_name=m.cluster_name,
        hub=m.hub,
        template=m.template,
        template_parameters={k: any_value(c[k]) for k in c} if (c := m.template_parameters) else {},
        node_sets={k: boatyard_order_node_set_from_message(c[k]) for k in c}
        if (c := m.node_sets)
        else {},
        version=m.version,
        release_image=m.release_image,
        ssh_public_key=m.ssh_public_key,
        pull_secret=m.pull_secret,
        pod_cidr=m.pod_cidr,
        service_cidr=m.service_cidr,
        generation=m.generation,
        delete_by=moment(m.delete_by) if m.HasField("delete_by") else None,
        platform_settings={k: c[k] for k in c} if (c := m.platform_settings) else {},
        rest=_CLUSTER_REST[m.rest],
        restore=boatyard_order_restore_from_message(m.restore)
        if m.HasField("restore")
        else boatyard.NO_ORDER_RESTORE,
        secret_parameters=tuple(c) if (c := m.secret_parameters) else (),
        template_digest=m.template_digest,
        secret_values=m.secret_values,
        template_phases=tuple(c) if (c := m.template_phases) else (),
        labels={k: c[k] for k in c} if (c := m.labels) else {},
        annotations={k: c[k] for k in c} if (c := m.annotations) else {},
        project=m.project,
        display_name=m.display_name,
    )


def _boatyard_order_condition(x: boatyard.OrderCondition) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.type:
        d["type"] = v
    if v := x.status:
        d["status"] = v
    if (v := x.last_transition_time) is not None:
        d["last_transition_time"] = timestamp_fields(v)
    if v := x.reason:
        d["reason"] = v
    if v := x.message:
        d["message"] = v
    return d


def boatyard_order_condition_to_message(x: boatyard.OrderCondition) -> Message:
    return message("boatyard.v1.OrderCondition")(**_boatyard_order_condition(x))


def boatyard_order_condition_from_message(m: Any) -> boatyard.OrderCondition:
    return boatyard.OrderCondition(
        type=m.type,
        status=m.status,
        last_transition_time=moment(m.last_transition_time)
        if m.HasField("last_transition_time")
        else None,
        reason=m.reason,
        message=m.message,
    )


def _boatyard_step(x: boatyard.Step) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.name:
        d["name"] = v
    if v := x.state:
        d["state"] = int(v)
    if (v := x.since) is not None:
        d["since"] = timestamp_fields(v)
    if v := x.tries:
        d["tries"] = v
    if (v := x.next_look) is not None:
        d["next_look"] = timestamp_fields(v)
    if v := x.reason:
        d["reason"] = v
    if v := x.message:
        d["message"] = v
    if v := x.actor:
        d["actor"] = int(v)
    if v := x.remedy:
        d["remedy"] = v
    if v := x.detail:
        d["detail"] = v
    if x.needs:
        d["needs"] = x.needs
    if v := x.bugs:
        d["bugs"] = v
    if (v := x.started_at) is not None:
        d["started_at"] = timestamp_fields(v)
    if (v := x.finished_at) is not None:
        d["finished_at"] = timestamp_fields(v)
    return d


def boatyard_step_to_message(x: boatyard.Step) -> Message:
    return message("boatyard.v1.Step")(**_boatyard_step(x))


def boatyard_step_from_message(m: Any) -> boatyard.Step:
    return boatyard.Step(
        name=m.name,
        state=_STEP_STATE[m.state],
        since=moment(m.since) if m.HasField("since") else None,
        tries=m.tries,
        next_look=moment(m.next_look) if m.HasField("next_look") else None,
        reason=m.reason,
        message=m.message,
        actor=_ACTOR[m.actor],
        remedy=m.remedy,
        detail=m.detail,
        needs=tuple(c) if (c := m.needs) else (),
        bugs=m.bugs,
        started_at=moment(m.started_at) if m.HasField("started_at") else None,
        finished_at=moment(m.finished_at) if m.HasField("finished_at") else None,
    )


def _boatyard_item(x: boatyard.Item) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.key:
        d["key"] = v
    if v := x.kind:
        d["kind"] = v
    if v := x.step:
        d["step"] = v
    if v := x.node_set:
        d["node_set"] = v
    if v := x.slot:
        d["slot"] = v
    if v := x.state:
        d["state"] = int(v)
    if v := x.want:
        d["want"] = v
    if v := x.have:
        d["have"] = v
    if x.facts:
        d["facts"] = x.facts
    return d


def boatyard_item_to_message(x: boatyard.Item) -> Message:
    return message("boatyard.v1.Item")(**_boatyard_item(x))


def boatyard_item_from_message(m: Any) -> boatyard.Item:
    return boatyard.Item(
        key=m.key,
        kind=m.kind,
        step=m.step,
        node_set=m.node_set,
        slot=m.slot,
        state=_ITEM_STATE[m.state],
        want=m.want,
        have=m.have,
        facts={k: c[k] for k in c} if (c := m.facts) else {},
    )


def _boatyard_receipt_line(x: boatyard.ReceiptLine) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.kind:
        d["kind"] = v
    if v := x.name:
        d["name"] = v
    if v := x.reason:
        d["reason"] = v
    if v := x.key:
        d["key"] = v
    return d


def boatyard_receipt_line_to_message(x: boatyard.ReceiptLine) -> Message:
    return message("boatyard.v1.ReceiptLine")(**_boatyard_receipt_line(x))


def boatyard_receipt_line_from_message(m: Any) -> boatyard.ReceiptLine:
    return boatyard.ReceiptLine(
        kind=m.kind,
        name=m.name,
        reason=m.reason,
        key=m.key,
    )


def _boatyard_receipt(x: boatyard.Receipt) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.requested_at) is not None:
        d["requested_at"] = timestamp_fields(v)
    if (v := x.finished_at) is not None:
        d["finished_at"] = timestamp_fields(v)
    if x.gone:
        d["gone"] = [_boatyard_receipt_line(v) for v in x.gone]
    if x.left:
        d["left"] = [_boatyard_receipt_line(v) for v in x.left]
    if v := x.leftover:
        d["leftover"] = v
    return d


def boatyard_receipt_to_message(x: boatyard.Receipt) -> Message:
    return message("boatyard.v1.Receipt")(**_boatyard_receipt(x))


def boatyard_receipt_from_message(m: Any) -> boatyard.Receipt:
    return boatyard.Receipt(
        requested_at=moment(m.requested_at) if m.HasField("requested_at") else None,
        finished_at=moment(m.finished_at) if m.HasField("finished_at") else None,
        gone=tuple([boatyard_receipt_line_from_message(v) for v in c]) if (c := m.gone) else (),
        left=tuple([boatyard_receipt_line_from_message(v) for v in c]) if (c := m.left) else (),
        leftover=m.leftover,
    )


def _boatyard_credentials(x: boatyard.Credentials) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.kubeconfig:
        d["kubeconfig"] = v
    if v := x.username:
        d["username"] = v
    if v := x.password:
        d["password"] = v
    if v := x.simulated:
        d["simulated"] = v
    return d


def boatyard_credentials_to_message(x: boatyard.Credentials) -> Message:
    return message("boatyard.v1.Credentials")(**_boatyard_credentials(x))


def boatyard_credentials_from_message(m: Any) -> boatyard.Credentials:
    return boatyard.Credentials(
        kubeconfig=m.kubeconfig,
        username=m.username,
        password=m.password,
        simulated=m.simulated,
    )


def _boatyard_order_status(x: boatyard.OrderStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.phase:
        d["phase"] = int(v)
    if x.conditions:
        d["conditions"] = [_boatyard_order_condition(v) for v in x.conditions]
    if x.steps:
        d["steps"] = [_boatyard_step(v) for v in x.steps]
    if x.items:
        d["items"] = [_boatyard_item(v) for v in x.items]
    if x.facts:
        d["facts"] = x.facts
    if v := x.observed_generation:
        d["observed_generation"] = v
    if (v := x.receipt) is not boatyard.NO_RECEIPT:
        d["receipt"] = _boatyard_receipt(v)
    if (v := x.credentials) is not boatyard.NO_CREDENTIALS:
        d["credentials"] = _boatyard_credentials(v)
    if (v := x.started_at) is not None:
        d["started_at"] = timestamp_fields(v)
    if (v := x.finished_at) is not None:
        d["finished_at"] = timestamp_fields(v)
    if v := x.retried:
        d["retried"] = v
    if x.ready_nodes:
        d["ready_nodes"] = x.ready_nodes
    if x.nodes:
        d["nodes"] = x.nodes
    if x.next_slots:
        d["next_slots"] = x.next_slots
    if v := x.version:
        d["version"] = v
    if v := x.rest:
        d["rest"] = int(v)
    if (v := x.resting_since) is not None:
        d["resting_since"] = timestamp_fields(v)
    if v := x.restored:
        d["restored"] = v
    return d


def boatyard_order_status_to_message(x: boatyard.OrderStatus) -> Message:
    return message("boatyard.v1.OrderStatus")(**_boatyard_order_status(x))


def boatyard_order_status_from_message(m: Any) -> boatyard.OrderStatus:
    return boatyard.OrderStatus(
        phase=_ORDER_PHASE[m.phase],
        conditions=tuple([boatyard_order_condition_from_message(v) for v in c])
        if (c := m.conditions)
        else (),
        steps=tuple([boatyard_step_from_message(v) for v in c]) if (c := m.steps) else (),
        items=tuple([boatyard_item_from_message(v) for v in c]) if (c := m.items) else (),
        facts={k: c[k] for k in c} if (c := m.facts) else {},
        observed_generation=m.observed_generation,
        receipt=boatyard_receipt_from_message(m.receipt)
        if m.HasField("receipt")
        else boatyard.NO_RECEIPT,
        credentials=boatyard_credentials_from_message(m.credentials)
        if m.HasField("credentials")
        else boatyard.NO_CREDENTIALS,
        started_at=moment(m.started_at) if m.HasField("started_at") else None,
        finished_at=moment(m.finished_at) if m.HasField("finished_at") else None,
        retried=m.retried,
        ready_nodes={k: c[k] for k in c} if (c := m.ready_nodes) else {},
        nodes={k: c[k] for k in c} if (c := m.nodes) else {},
        next_slots={k: c[k] for k in c} if (c := m.next_slots) else {},
        version=m.version,
        rest=_CLUSTER_REST[m.rest],
        resting_since=moment(m.resting_since) if m.HasField("resting_since") else None,
        restored=m.restored,
    )


def _boatyard_order(x: boatyard.Order) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if (v := x.spec) is not boatyard.NO_ORDER_SPEC:
        d["spec"] = _boatyard_order_spec(v)
    if (v := x.status) is not boatyard.NO_ORDER_STATUS:
        d["status"] = _boatyard_order_status(v)
    return d


def boatyard_order_to_message(x: boatyard.Order) -> Message:
    return message("boatyard.v1.Order")(**_boatyard_order(x))


def boatyard_order_from_message(m: Any) -> boatyard.Order:
    return boatyard.Order(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=boatyard_order_spec_from_message(m.spec)
        if m.HasField("spec")
        else boatyard.NO_ORDER_SPEC,
        status=boatyard_order_status_from_message(m.status)
        if m.HasField("status")
        else boatyard.NO_ORDER_STATUS,
    )


def _boatyard_cluster_order_bare_metal(x: boatyard.ClusterOrderBareMetal) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.instance_type:
        d["instance_type"] = v
    return d


def boatyard_cluster_order_bare_metal_to_message(x: boatyard.ClusterOrderBareMetal) -> Message:
    return message("boatyard.v1.ClusterOrderBareMetal")(**_boatyard_cluster_order_bare_metal(x))


def boatyard_cluster_order_bare_metal_from_message(m: Any) -> boatyard.ClusterOrderBareMetal:
    return boatyard.ClusterOrderBareMetal(
        instance_type=m.instance_type,
    )


def _boatyard_cluster_order_node_request(x: boatyard.ClusterOrderNodeRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.resource_class:
        d["resource_class"] = v
    if v := x.number_of_nodes:
        d["number_of_nodes"] = v
    if v := x.node_set:
        d["node_set"] = v
    if (v := x.bare_metal) is not boatyard.NO_CLUSTER_ORDER_BARE_METAL:
        d["bare_metal"] = _boatyard_cluster_order_bare_metal(v)
    if v := x.fabric_interface:
        d["fabric_interface"] = v
    return d


def boatyard_cluster_order_node_request_to_message(x: boatyard.ClusterOrderNodeRequest) -> Message:
    return message("boatyard.v1.ClusterOrderNodeRequest")(**_boatyard_cluster_order_node_request(x))


def boatyard_cluster_order_node_request_from_message(m: Any) -> boatyard.ClusterOrderNodeRequest:
    return boatyard.ClusterOrderNodeRequest(
        resource_class=m.resource_class,
        number_of_nodes=m.number_of_nodes,
        node_set=m.node_set,
        bare_metal=boatyard_cluster_order_bare_metal_from_message(m.bare_metal)
        if m.HasField("bare_metal")
        else boatyard.NO_CLUSTER_ORDER_BARE_METAL,
        fabric_interface=m.fabric_interface,
    )


def _boatyard_cluster_order_network(x: boatyard.ClusterOrderNetwork) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.pod_cidr:
        d["pod_cidr"] = v
    if v := x.service_cidr:
        d["service_cidr"] = v
    return d


def boatyard_cluster_order_network_to_message(x: boatyard.ClusterOrderNetwork) -> Message:
    return message("boatyard.v1.ClusterOrderNetwork")(**_boatyard_cluster_order_network(x))


def boatyard_cluster_order_network_from_message(m: Any) -> boatyard.ClusterOrderNetwork:
    return boatyard.ClusterOrderNetwork(
        pod_cidr=m.pod_cidr,
        service_cidr=m.service_cidr,
    )


def _boatyard_cluster_order_network_attachment(
    x: boatyard.ClusterOrderNetworkAttachment,
) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.subnet_ref:
        d["subnet_ref"] = v
    if x.security_group_refs:
        d["security_group_refs"] = x.security_group_refs
    return d


def boatyard_cluster_order_network_attachment_to_message(
    x: boatyard.ClusterOrderNetworkAttachment,
) -> Message:
    return message("boatyard.v1.ClusterOrderNetworkAttachment")(
        **_boatyard_cluster_order_network_attachment(x)
    )


def boatyard_cluster_order_network_attachment_from_message(
    m: Any,
) -> boatyard.ClusterOrderNetworkAttachment:
    return boatyard.ClusterOrderNetworkAttachment(
        subnet_ref=m.subnet_ref,
        security_group_refs=tuple(c) if (c := m.security_group_refs) else (),
    )


def _boatyard_cluster_order_secret_reference(
    x: boatyard.ClusterOrderSecretReference,
) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.name:
        d["name"] = v
    if v := x.version:
        d["version"] = v
    return d


def boatyard_cluster_order_secret_reference_to_message(
    x: boatyard.ClusterOrderSecretReference,
) -> Message:
    return message("boatyard.v1.ClusterOrderSecretReference")(
        **_boatyard_cluster_order_secret_reference(x)
    )


def boatyard_cluster_order_secret_reference_from_message(
    m: Any,
) -> boatyard.ClusterOrderSecretReference:
    return boatyard.ClusterOrderSecretReference(
        name=m.name,
        version=m.version,
    )


def _boatyard_cluster_order_extension(x: boatyard.ClusterOrderExtension) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster_id:
        d["cluster_id"] = v
    if v := x.cluster_name:
        d["cluster_name"] = v
    if v := x.hub:
        d["hub"] = v
    if v := x.version:
        d["version"] = v
    if v := x.generation:
        d["generation"] = v
    if (v := x.ordered_at) is not None:
        d["ordered_at"] = timestamp_fields(v)
    if (v := x.deleted_at) is not None:
        d["deleted_at"] = timestamp_fields(v)
    if (v := x.delete_by) is not None:
        d["delete_by"] = timestamp_fields(v)
    if x.platform_settings:
        d["platform_settings"] = x.platform_settings
    if v := x.rest:
        d["rest"] = int(v)
    if (v := x.restore) is not boatyard.NO_ORDER_RESTORE:
        d["restore"] = _boatyard_order_restore(v)
    if (v := x.secret_ref) is not boatyard.NO_CLUSTER_ORDER_SECRET_REFERENCE:
        d["secret_ref"] = _boatyard_cluster_order_secret_reference(v)
    if x.parameter_types:
        d["parameter_types"] = x.parameter_types
    if x.secret_parameters:
        d["secret_parameters"] = x.secret_parameters
    if v := x.template:
        d["template"] = v
    if v := x.release_image:
        d["release_image"] = v
    if v := x.ssh_public_key:
        d["ssh_public_key"] = v
    if v := x.pod_cidr:
        d["pod_cidr"] = v
    if v := x.service_cidr:
        d["service_cidr"] = v
    if v := x.tenant:
        d["tenant"] = v
    if v := x.template_digest:
        d["template_digest"] = v
    if x.template_phases:
        d["template_phases"] = x.template_phases
    if x.labels:
        d["labels"] = x.labels
    if x.annotations:
        d["annotations"] = x.annotations
    if v := x.project:
        d["project"] = v
    if v := x.display_name:
        d["display_name"] = v
    return d


def boatyard_cluster_order_extension_to_message(x: boatyard.ClusterOrderExtension) -> Message:
    return message("boatyard.v1.ClusterOrderExtension")(**_boatyard_cluster_order_extension(x))


def boatyard_cluster_order_extension_from_message(m: Any) -> boatyard.ClusterOrderExtension:
    return boatyard.ClusterOrderExtension(
        cluster_id=m.cluster_id,
        cluster_name=m.cluster_name,
        hub=m.hub,
        version=m.version,
        generation=m.generation,
        ordered_at=moment(m.ordered_at) if m.HasField("ordered_at") else None,
        deleted_at=moment(m.deleted_at) if m.HasField("deleted_at") else None,
        delete_by=moment(m.delete_by) if m.HasField("delete_by") else None,
        platform_settings={k: c[k] for k in c} if (c := m.platform_settings) else {},
        rest=_CLUSTER_REST[m.rest],
        restore=boatyard_order_restore_from_message(m.restore)
        if m.HasField("restore")
        else boatyard.NO_ORDER_RESTORE,
        secret_ref=boatyard_cluster_order_secret_reference_from_message(m.secret_ref)
        if m.HasField("secret_ref")
        else boatyard.NO_CLUSTER_ORDER_SECRET_REFERENCE,
        parameter_types={k: c[k] for k in c} if (c := m.parameter_types) else {},
        secret_parameters=tuple(c) if (c := m.secret_parameters) else (),
        template=m.template,
        release_image=m.release_image,
        ssh_public_key=m.ssh_public_key,
        pod_cidr=m.pod_cidr,
        service_cidr=m.service_cidr,
        tenant=m.tenant,
        template_digest=m.template_digest,
        template_phases=tuple(c) if (c := m.template_phases) else (),
        labels={k: c[k] for k in c} if (c := m.labels) else {},
        annotations={k: c[k] for k in c} if (c := m.annotations) else {},
        project=m.project,
        display_name=m.display_name,
    )


def _boatyard_cluster_order_spec(x: boatyard.ClusterOrderSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.template_id:
        d["template_id"] = v
    if v := x.template_parameters:
        d["template_parameters"] = v
    if x.node_requests:
        d["node_requests"] = [_boatyard_cluster_order_node_request(v) for v in x.node_requests]
    if v := x.pull_secret:
        d["pull_secret"] = v
    if v := x.ssh_public_key:
        d["ssh_public_key"] = v
    if (v := x.network) is not boatyard.NO_CLUSTER_ORDER_NETWORK:
        d["network"] = _boatyard_cluster_order_network(v)
    if (v := x.network_attachment) is not boatyard.NO_CLUSTER_ORDER_NETWORK_ATTACHMENT:
        d["network_attachment"] = _boatyard_cluster_order_network_attachment(v)
    if v := x.release_image:
        d["release_image"] = v
    if (v := x.boatyard) is not boatyard.NO_CLUSTER_ORDER_EXTENSION:
        d["boatyard"] = _boatyard_cluster_order_extension(v)
    return d


def boatyard_cluster_order_spec_to_message(x: boatyard.ClusterOrderSpec) -> Message:
    return message("boatyard.v1.ClusterOrderSpec")(**_boatyard_cluster_order_spec(x))


def boatyard_cluster_order_spec_from_message(m: Any) -> boatyard.ClusterOrderSpec:
    return boatyard.ClusterOrderSpec(
        template_id=m.template_id,
        template_parameters=m.template_parameters,
        node_requests=tuple([boatyard_cluster_order_node_request_from_message(v) for v in c])
        if (c := m.node_requests)
        else (),
        pull_secret=m.pull_secret,
        ssh_public_key=m.ssh_public_key,
        network=boatyard_cluster_order_network_from_message(m.network)
        if m.HasField("network")
        else boatyard.NO_CLUSTER_ORDER_NETWORK,
        network_attachment=boatyard_cluster_order_network_attachment_from_message(
            m.network_attachment
        )
        if m.HasField("network_attachment")
        else boatyard.NO_CLUSTER_ORDER_NETWORK_ATTACHMENT,
        release_image=m.release_image,
        boatyard=boatyard_cluster_order_extension_from_message(m.boatyard)
        if m.HasField("boatyard")
        else boatyard.NO_CLUSTER_ORDER_EXTENSION,
    )


def _boatyard_cluster_order_condition(x: boatyard.ClusterOrderCondition) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.type:
        d["type"] = v
    if v := x.status:
        d["status"] = v
    if (v := x.last_transition_time) is not None:
        d["last_transition_time"] = timestamp_fields(v)
    if v := x.reason:
        d["reason"] = v
    if v := x.message:
        d["message"] = v
    if v := x.observed_generation:
        d["observed_generation"] = v
    return d


def boatyard_cluster_order_condition_to_message(x: boatyard.ClusterOrderCondition) -> Message:
    return message("boatyard.v1.ClusterOrderCondition")(**_boatyard_cluster_order_condition(x))


def boatyard_cluster_order_condition_from_message(m: Any) -> boatyard.ClusterOrderCondition:
    return boatyard.ClusterOrderCondition(
        type=m.type,
        status=m.status,
        last_transition_time=moment(m.last_transition_time)
        if m.HasField("last_transition_time")
        else None,
        reason=m.reason,
        message=m.message,
        observed_generation=m.observed_generation,
    )


def _boatyard_cluster_order_reference(x: boatyard.ClusterOrderReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.namespace:
        d["namespace"] = v
    if v := x.hosted_cluster_name:
        d["hosted_cluster_name"] = v
    if v := x.service_account_name:
        d["service_account_name"] = v
    if v := x.role_binding_name:
        d["role_binding_name"] = v
    return d


def boatyard_cluster_order_reference_to_message(x: boatyard.ClusterOrderReference) -> Message:
    return message("boatyard.v1.ClusterOrderReference")(**_boatyard_cluster_order_reference(x))


def boatyard_cluster_order_reference_from_message(m: Any) -> boatyard.ClusterOrderReference:
    return boatyard.ClusterOrderReference(
        namespace=m.namespace,
        hosted_cluster_name=m.hosted_cluster_name,
        service_account_name=m.service_account_name,
        role_binding_name=m.role_binding_name,
    )


def _boatyard_cluster_order_agent(x: boatyard.ClusterOrderAgent) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.agent_name:
        d["agent_name"] = v
    if v := x.host_name:
        d["host_name"] = v
    if v := x.subnet_ref:
        d["subnet_ref"] = v
    if v := x.ip_address:
        d["ip_address"] = v
    return d


def boatyard_cluster_order_agent_to_message(x: boatyard.ClusterOrderAgent) -> Message:
    return message("boatyard.v1.ClusterOrderAgent")(**_boatyard_cluster_order_agent(x))


def boatyard_cluster_order_agent_from_message(m: Any) -> boatyard.ClusterOrderAgent:
    return boatyard.ClusterOrderAgent(
        agent_name=m.agent_name,
        host_name=m.host_name,
        subnet_ref=m.subnet_ref,
        ip_address=m.ip_address,
    )


def _boatyard_cluster_order_node_set(x: boatyard.ClusterOrderNodeSet) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.name:
        d["name"] = v
    if v := x.fabric_interface:
        d["fabric_interface"] = v
    if x.agents:
        d["agents"] = [_boatyard_cluster_order_agent(v) for v in x.agents]
    return d


def boatyard_cluster_order_node_set_to_message(x: boatyard.ClusterOrderNodeSet) -> Message:
    return message("boatyard.v1.ClusterOrderNodeSet")(**_boatyard_cluster_order_node_set(x))


def boatyard_cluster_order_node_set_from_message(m: Any) -> boatyard.ClusterOrderNodeSet:
    return boatyard.ClusterOrderNodeSet(
        name=m.name,
        fabric_interface=m.fabric_interface,
        agents=tuple([boatyard_cluster_order_agent_from_message(v) for v in c])
        if (c := m.agents)
        else (),
    )


def _boatyard_cluster_order_credentials_reference(
    x: boatyard.ClusterOrderCredentialsReference,
) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.namespace:
        d["namespace"] = v
    if v := x.name:
        d["name"] = v
    return d


def boatyard_cluster_order_credentials_reference_to_message(
    x: boatyard.ClusterOrderCredentialsReference,
) -> Message:
    return message("boatyard.v1.ClusterOrderCredentialsReference")(
        **_boatyard_cluster_order_credentials_reference(x)
    )


def boatyard_cluster_order_credentials_reference_from_message(
    m: Any,
) -> boatyard.ClusterOrderCredentialsReference:
    return boatyard.ClusterOrderCredentialsReference(
        namespace=m.namespace,
        name=m.name,
    )


def _boatyard_cluster_order_status(x: boatyard.ClusterOrderStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.phase:
        d["phase"] = v
    if x.conditions:
        d["conditions"] = [_boatyard_cluster_order_condition(v) for v in x.conditions]
    if (v := x.cluster_reference) is not boatyard.NO_CLUSTER_ORDER_REFERENCE:
        d["cluster_reference"] = _boatyard_cluster_order_reference(v)
    if x.node_requests:
        d["node_requests"] = [_boatyard_cluster_order_node_request(v) for v in x.node_requests]
    if v := x.desired_config_version:
        d["desired_config_version"] = v
    if v := x.api_endpoint:
        d["api_endpoint"] = v
    if v := x.ingress_endpoint:
        d["ingress_endpoint"] = v
    if x.node_sets:
        d["node_sets"] = [_boatyard_cluster_order_node_set(v) for v in x.node_sets]
    if (v := x.desired_workers) is not None:
        d["desired_workers"] = v
    if (v := x.current_workers) is not None:
        d["current_workers"] = v
    if (v := x.ready_workers) is not None:
        d["ready_workers"] = v
    if (v := x.boatyard) is not boatyard.NO_ORDER_STATUS:
        d["boatyard"] = _boatyard_order_status(v)
    if (v := x.credentials_ref) is not boatyard.NO_CLUSTER_ORDER_CREDENTIALS_REFERENCE:
        d["credentials_ref"] = _boatyard_cluster_order_credentials_reference(v)
    return d


def boatyard_cluster_order_status_to_message(x: boatyard.ClusterOrderStatus) -> Message:
    return message("boatyard.v1.ClusterOrderStatus")(**_boatyard_cluster_order_status(x))


def boatyard_cluster_order_status_from_message(m: Any) -> boatyard.ClusterOrderStatus:
    return boatyard.ClusterOrderStatus(
        phase=m.phase,
        conditions=tuple([boatyard_cluster_order_condition_from_message(v) for v in c])
        if (c := m.conditions)
        else (),
        cluster_reference=boatyard_cluster_order_reference_from_message(m.cluster_reference)
        if m.HasField("cluster_reference")
        else boatyard.NO_CLUSTER_ORDER_REFERENCE,
        node_requests=tuple([boatyard_cluster_order_node_request_from_message(v) for v in c])
        if (c := m.node_requests)
        else (),
        desired_config_version=m.desired_config_version,
        api_endpoint=m.api_endpoint,
        ingress_endpoint=m.ingress_endpoint,
        node_sets=tuple([boatyard_cluster_order_node_set_from_message(v) for v in c])
        if (c := m.node_sets)
        else (),
        desired_workers=m.desired_workers if m.HasField("desired_workers") else None,
        current_workers=m.current_workers if m.HasField("current_workers") else None,
        ready_workers=m.ready_workers if m.HasField("ready_workers") else None,
        boatyard=boatyard_order_status_from_message(m.boatyard)
        if m.HasField("boatyard")
        else boatyard.NO_ORDER_STATUS,
        credentials_ref=boatyard_cluster_order_credentials_reference_from_message(m.credentials_ref)
        if m.HasField("credentials_ref")
        else boatyard.NO_CLUSTER_ORDER_CREDENTIALS_REFERENCE,
    )


def _boatyard_hub_claim_spec(x: boatyard.HubClaimSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.pool:
        d["pool"] = v
    if v := x.item:
        d["item"] = v
    if v := x.owner:
        d["owner"] = v
    if (v := x.claimed_at) is not None:
        d["claimed_at"] = timestamp_fields(v)
    return d


def boatyard_hub_claim_spec_to_message(x: boatyard.HubClaimSpec) -> Message:
    return message("boatyard.v1.HubClaimSpec")(**_boatyard_hub_claim_spec(x))


def boatyard_hub_claim_spec_from_message(m: Any) -> boatyard.HubClaimSpec:
    return boatyard.HubClaimSpec(
        pool=m.pool,
        item=m.item,
        owner=m.owner,
        claimed_at=moment(m.claimed_at) if m.HasField("claimed_at") else None,
    )


def _boatyard_hub_leftover_spec(x: boatyard.HubLeftoverSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.order:
        d["order"] = v
    if v := x.tenant:
        d["tenant"] = v
    if v := x.cluster_name:
        d["cluster_name"] = v
    if v := x.hub:
        d["hub"] = v
    if (v := x.left_at) is not None:
        d["left_at"] = timestamp_fields(v)
    return d


def boatyard_hub_leftover_spec_to_message(x: boatyard.HubLeftoverSpec) -> Message:
    return message("boatyard.v1.HubLeftoverSpec")(**_boatyard_hub_leftover_spec(x))


def boatyard_hub_leftover_spec_from_message(m: Any) -> boatyard.HubLeftoverSpec:
    return boatyard.HubLeftoverSpec(
        order=m.order,
        tenant=m.tenant,
        cluster_name=m.cluster_name,
        hub=m.hub,
        left_at=moment(m.left_at) if m.HasField("left_at") else None,
    )


def _boatyard_hubs_check_request(x: boatyard.HubsCheckRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.hub:
        d["hub"] = v
    return d


def boatyard_hubs_check_request_to_message(x: boatyard.HubsCheckRequest) -> Message:
    return message("boatyard.v1.HubsCheckRequest")(**_boatyard_hubs_check_request(x))


def boatyard_hubs_check_request_from_message(m: Any) -> boatyard.HubsCheckRequest:
    return boatyard.HubsCheckRequest(
        hub=m.hub,
    )


def _boatyard_hub_finding(x: boatyard.HubFinding) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.check:
        d["check"] = v
    if v := x.result:
        d["result"] = int(v)
    if v := x.message:
        d["message"] = v
    if v := x.remedy:
        d["remedy"] = v
    return d


def boatyard_hub_finding_to_message(x: boatyard.HubFinding) -> Message:
    return message("boatyard.v1.HubFinding")(**_boatyard_hub_finding(x))


def boatyard_hub_finding_from_message(m: Any) -> boatyard.HubFinding:
    return boatyard.HubFinding(
        check=m.check,
        result=_HUB_FINDING_RESULT[m.result],
        message=m.message,
        remedy=m.remedy,
    )


def _boatyard_hub_report(x: boatyard.HubReport) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.hub:
        d["hub"] = v
    if v := x.version:
        d["version"] = v
    if v := x.ready:
        d["ready"] = v
    if x.findings:
        d["findings"] = [_boatyard_hub_finding(v) for v in x.findings]
    return d


def boatyard_hub_report_to_message(x: boatyard.HubReport) -> Message:
    return message("boatyard.v1.HubReport")(**_boatyard_hub_report(x))


def boatyard_hub_report_from_message(m: Any) -> boatyard.HubReport:
    return boatyard.HubReport(
        hub=m.hub,
        version=m.version,
        ready=m.ready,
        findings=tuple([boatyard_hub_finding_from_message(v) for v in c])
        if (c := m.findings)
        else (),
    )


def _boatyard_hubs_check_response(x: boatyard.HubsCheckResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.report) is not boatyard.NO_HUB_REPORT:
        d["report"] = _boatyard_hub_report(v)
    return d


def boatyard_hubs_check_response_to_message(x: boatyard.HubsCheckResponse) -> Message:
    return message("boatyard.v1.HubsCheckResponse")(**_boatyard_hubs_check_response(x))


def boatyard_hubs_check_response_from_message(m: Any) -> boatyard.HubsCheckResponse:
    return boatyard.HubsCheckResponse(
        report=boatyard_hub_report_from_message(m.report)
        if m.HasField("report")
        else boatyard.NO_HUB_REPORT,
    )


def _boatyard_hubs_prepare_request(x: boatyard.HubsPrepareRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.hub:
        d["hub"] = v
    return d


def boatyard_hubs_prepare_request_to_message(x: boatyard.HubsPrepareRequest) -> Message:
    return message("boatyard.v1.HubsPrepareRequest")(**_boatyard_hubs_prepare_request(x))


def boatyard_hubs_prepare_request_from_message(m: Any) -> boatyard.HubsPrepareRequest:
    return boatyard.HubsPrepareRequest(
        hub=m.hub,
    )


def _boatyard_hubs_prepare_response(x: boatyard.HubsPrepareResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if x.done:
        d["done"] = x.done
    if (v := x.report) is not boatyard.NO_HUB_REPORT:
        d["report"] = _boatyard_hub_report(v)
    return d


def boatyard_hubs_prepare_response_to_message(x: boatyard.HubsPrepareResponse) -> Message:
    return message("boatyard.v1.HubsPrepareResponse")(**_boatyard_hubs_prepare_response(x))


def boatyard_hubs_prepare_response_from_message(m: Any) -> boatyard.HubsPrepareResponse:
    return boatyard.HubsPrepareResponse(
        done=tuple(c) if (c := m.done) else (),
        report=boatyard_hub_report_from_message(m.report)
        if m.HasField("report")
        else boatyard.NO_HUB_REPORT,
    )


def _boatyard_leftover_spec(x: boatyard.LeftoverSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.order:
        d["order"] = v
    if v := x.cluster_name:
        d["cluster_name"] = v
    if v := x.hub:
        d["hub"] = v
    return d


def boatyard_leftover_spec_to_message(x: boatyard.LeftoverSpec) -> Message:
    return message("boatyard.v1.LeftoverSpec")(**_boatyard_leftover_spec(x))


def boatyard_leftover_spec_from_message(m: Any) -> boatyard.LeftoverSpec:
    return boatyard.LeftoverSpec(
        order=m.order,
        cluster_name=m.cluster_name,
        hub=m.hub,
    )


def _boatyard_leftover_status(x: boatyard.LeftoverStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if x.items:
        d["items"] = [_boatyard_item(v) for v in x.items]
    if x.steps:
        d["steps"] = [_boatyard_step(v) for v in x.steps]
    if v := x.tries:
        d["tries"] = v
    if (v := x.next_look) is not None:
        d["next_look"] = timestamp_fields(v)
    if v := x.message:
        d["message"] = v
    return d


def boatyard_leftover_status_to_message(x: boatyard.LeftoverStatus) -> Message:
    return message("boatyard.v1.LeftoverStatus")(**_boatyard_leftover_status(x))


def boatyard_leftover_status_from_message(m: Any) -> boatyard.LeftoverStatus:
    return boatyard.LeftoverStatus(
        items=tuple([boatyard_item_from_message(v) for v in c]) if (c := m.items) else (),
        steps=tuple([boatyard_step_from_message(v) for v in c]) if (c := m.steps) else (),
        tries=m.tries,
        next_look=moment(m.next_look) if m.HasField("next_look") else None,
        message=m.message,
    )


def _boatyard_leftover(x: boatyard.Leftover) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if (v := x.spec) is not boatyard.NO_LEFTOVER_SPEC:
        d["spec"] = _boatyard_leftover_spec(v)
    if (v := x.status) is not boatyard.NO_LEFTOVER_STATUS:
        d["status"] = _boatyard_leftover_status(v)
    return d


def boatyard_leftover_to_message(x: boatyard.Leftover) -> Message:
    return message("boatyard.v1.Leftover")(**_boatyard_leftover(x))


def boatyard_leftover_from_message(m: Any) -> boatyard.Leftover:
    return boatyard.Leftover(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=boatyard_leftover_spec_from_message(m.spec)
        if m.HasField("spec")
        else boatyard.NO_LEFTOVER_SPEC,
        status=boatyard_leftover_status_from_message(m.status)
        if m.HasField("status")
        else boatyard.NO_LEFTOVER_STATUS,
    )


def _boatyard_leftovers_list_request(x: boatyard.LeftoversListRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.offset) is not None:
        d["offset"] = v
    if (v := x.limit) is not None:
        d["limit"] = v
    if (v := x.filter) is not None:
        d["filter"] = v
    if (v := x.order) is not None:
        d["order"] = v
    return d


def boatyard_leftovers_list_request_to_message(x: boatyard.LeftoversListRequest) -> Message:
    return message("boatyard.v1.LeftoversListRequest")(**_boatyard_leftovers_list_request(x))


def boatyard_leftovers_list_request_from_message(m: Any) -> boatyard.LeftoversListRequest:
    return boatyard.LeftoversListRequest(
        offset=m.offset if m.HasField("offset") else None,
        limit=m.limit if m.HasField("limit") else None,
        filter=m.filter if m.HasField("filter") else None,
        order=m.order if m.HasField("order") else None,
    )


def _boatyard_leftovers_list_response(x: boatyard.LeftoversListResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.size:
        d["size"] = v
    if v := x.total:
        d["total"] = v
    if x.items:
        d["items"] = [_boatyard_leftover(v) for v in x.items]
    return d


def boatyard_leftovers_list_response_to_message(x: boatyard.LeftoversListResponse) -> Message:
    return message("boatyard.v1.LeftoversListResponse")(**_boatyard_leftovers_list_response(x))


def boatyard_leftovers_list_response_from_message(m: Any) -> boatyard.LeftoversListResponse:
    return boatyard.LeftoversListResponse(
        size=m.size,
        total=m.total,
        items=tuple([boatyard_leftover_from_message(v) for v in c]) if (c := m.items) else (),
    )


def _boatyard_leftovers_get_request(x: boatyard.LeftoversGetRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    return d


def boatyard_leftovers_get_request_to_message(x: boatyard.LeftoversGetRequest) -> Message:
    return message("boatyard.v1.LeftoversGetRequest")(**_boatyard_leftovers_get_request(x))


def boatyard_leftovers_get_request_from_message(m: Any) -> boatyard.LeftoversGetRequest:
    return boatyard.LeftoversGetRequest(
        id=m.id,
    )


def _boatyard_leftovers_get_response(x: boatyard.LeftoversGetResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.object) is not boatyard.NO_LEFTOVER:
        d["object"] = _boatyard_leftover(v)
    return d


def boatyard_leftovers_get_response_to_message(x: boatyard.LeftoversGetResponse) -> Message:
    return message("boatyard.v1.LeftoversGetResponse")(**_boatyard_leftovers_get_response(x))


def boatyard_leftovers_get_response_from_message(m: Any) -> boatyard.LeftoversGetResponse:
    return boatyard.LeftoversGetResponse(
        object=boatyard_leftover_from_message(m.object)
        if m.HasField("object")
        else boatyard.NO_LEFTOVER,
    )


def _boatyard_orders_list_request(x: boatyard.OrdersListRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.offset) is not None:
        d["offset"] = v
    if (v := x.limit) is not None:
        d["limit"] = v
    if (v := x.filter) is not None:
        d["filter"] = v
    if (v := x.order) is not None:
        d["order"] = v
    return d


def boatyard_orders_list_request_to_message(x: boatyard.OrdersListRequest) -> Message:
    return message("boatyard.v1.OrdersListRequest")(**_boatyard_orders_list_request(x))


def boatyard_orders_list_request_from_message(m: Any) -> boatyard.OrdersListRequest:
    return boatyard.OrdersListRequest(
        offset=m.offset if m.HasField("offset") else None,
        limit=m.limit if m.HasField("limit") else None,
        filter=m.filter if m.HasField("filter") else None,
        order=m.order if m.HasField("order") else None,
    )


def _boatyard_orders_list_response(x: boatyard.OrdersListResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.size:
        d["size"] = v
    if v := x.total:
        d["total"] = v
    if x.items:
        d["items"] = [_boatyard_order(v) for v in x.items]
    return d


def boatyard_orders_list_response_to_message(x: boatyard.OrdersListResponse) -> Message:
    return message("boatyard.v1.OrdersListResponse")(**_boatyard_orders_list_response(x))


def boatyard_orders_list_response_from_message(m: Any) -> boatyard.OrdersListResponse:
    return boatyard.OrdersListResponse(
        size=m.size,
        total=m.total,
        items=tuple([boatyard_order_from_message(v) for v in c]) if (c := m.items) else (),
    )


def _boatyard_orders_get_request(x: boatyard.OrdersGetRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    return d


def boatyard_orders_get_request_to_message(x: boatyard.OrdersGetRequest) -> Message:
    return message("boatyard.v1.OrdersGetRequest")(**_boatyard_orders_get_request(x))


def boatyard_orders_get_request_from_message(m: Any) -> boatyard.OrdersGetRequest:
    return boatyard.OrdersGetRequest(
        id=m.id,
    )


def _boatyard_orders_get_response(x: boatyard.OrdersGetResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.object) is not boatyard.NO_ORDER:
        d["object"] = _boatyard_order(v)
    return d


def boatyard_orders_get_response_to_message(x: boatyard.OrdersGetResponse) -> Message:
    return message("boatyard.v1.OrdersGetResponse")(**_boatyard_orders_get_response(x))


def boatyard_orders_get_response_from_message(m: Any) -> boatyard.OrdersGetResponse:
    return boatyard.OrdersGetResponse(
        object=boatyard_order_from_message(m.object) if m.HasField("object") else boatyard.NO_ORDER,
    )


def _boatyard_orders_explain_request(x: boatyard.OrdersExplainRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    return d


def boatyard_orders_explain_request_to_message(x: boatyard.OrdersExplainRequest) -> Message:
    return message("boatyard.v1.OrdersExplainRequest")(**_boatyard_orders_explain_request(x))


def boatyard_orders_explain_request_from_message(m: Any) -> boatyard.OrdersExplainRequest:
    return boatyard.OrdersExplainRequest(
        cluster=m.cluster,
    )


def _boatyard_hub_reason(x: boatyard.HubReason) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.hub:
        d["hub"] = v
    if v := x.fits:
        d["fits"] = v
    if v := x.score:
        d["score"] = v
    if v := x.reason:
        d["reason"] = v
    return d


def boatyard_hub_reason_to_message(x: boatyard.HubReason) -> Message:
    return message("boatyard.v1.HubReason")(**_boatyard_hub_reason(x))


def boatyard_hub_reason_from_message(m: Any) -> boatyard.HubReason:
    return boatyard.HubReason(
        hub=m.hub,
        fits=m.fits,
        score=m.score,
        reason=m.reason,
    )


def _boatyard_explanation(x: boatyard.Explanation) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    if v := x.name:
        d["name"] = v
    if v := x.state:
        d["state"] = v
    if v := x.summary:
        d["summary"] = v
    if x.steps:
        d["steps"] = [_boatyard_step(v) for v in x.steps]
    if v := x.blocked_by:
        d["blocked_by"] = v
    if v := x.actor:
        d["actor"] = int(v)
    if v := x.remedy:
        d["remedy"] = v
    if (v := x.since) is not None:
        d["since"] = timestamp_fields(v)
    if (v := x.next_look) is not None:
        d["next_look"] = timestamp_fields(v)
    if v := x.tries:
        d["tries"] = v
    if v := x.placement:
        d["placement"] = v
    if x.hubs:
        d["hubs"] = [_boatyard_hub_reason(v) for v in x.hubs]
    if (v := x.receipt) is not boatyard.NO_RECEIPT:
        d["receipt"] = _boatyard_receipt(v)
    if v := x.gone:
        d["gone"] = v
    if v := x.template:
        d["template"] = v
    if (v := x.started_at) is not None:
        d["started_at"] = timestamp_fields(v)
    if v := x.hub:
        d["hub"] = v
    return d


def boatyard_explanation_to_message(x: boatyard.Explanation) -> Message:
    return message("boatyard.v1.Explanation")(**_boatyard_explanation(x))


def boatyard_explanation_from_message(m: Any) -> boatyard.Explanation:
    return boatyard.Explanation(
        cluster=m.cluster,
        name=m.name,
        state=m.state,
        summary=m.summary,
        steps=tuple([boatyard_step_from_message(v) for v in c]) if (c := m.steps) else (),
        blocked_by=m.blocked_by,
        actor=_ACTOR[m.actor],
        remedy=m.remedy,
        since=moment(m.since) if m.HasField("since") else None,
        next_look=moment(m.next_look) if m.HasField("next_look") else None,
        tries=m.tries,
        placement=m.placement,
        hubs=tuple([boatyard_hub_reason_from_message(v) for v in c]) if (c := m.hubs) else (),
        receipt=boatyard_receipt_from_message(m.receipt)
        if m.HasField("receipt")
        else boatyard.NO_RECEIPT,
        gone=m.gone,
        template=m.template,
        started_at=moment(m.started_at) if m.HasField("started_at") else None,
        hub=m.hub,
    )


def _boatyard_orders_explain_response(x: boatyard.OrdersExplainResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.explanation) is not boatyard.NO_EXPLANATION:
        d["explanation"] = _boatyard_explanation(v)
    return d


def boatyard_orders_explain_response_to_message(x: boatyard.OrdersExplainResponse) -> Message:
    return message("boatyard.v1.OrdersExplainResponse")(**_boatyard_orders_explain_response(x))


def boatyard_orders_explain_response_from_message(m: Any) -> boatyard.OrdersExplainResponse:
    return boatyard.OrdersExplainResponse(
        explanation=boatyard_explanation_from_message(m.explanation)
        if m.HasField("explanation")
        else boatyard.NO_EXPLANATION,
    )


def _boatyard_orders_follow_request(x: boatyard.OrdersFollowRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    return d


def boatyard_orders_follow_request_to_message(x: boatyard.OrdersFollowRequest) -> Message:
    return message("boatyard.v1.OrdersFollowRequest")(**_boatyard_orders_follow_request(x))


def boatyard_orders_follow_request_from_message(m: Any) -> boatyard.OrdersFollowRequest:
    return boatyard.OrdersFollowRequest(
        cluster=m.cluster,
    )


def _boatyard_orders_follow_response(x: boatyard.OrdersFollowResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.explanation) is not boatyard.NO_EXPLANATION:
        d["explanation"] = _boatyard_explanation(v)
    return d


def boatyard_orders_follow_response_to_message(x: boatyard.OrdersFollowResponse) -> Message:
    return message("boatyard.v1.OrdersFollowResponse")(**_boatyard_orders_follow_response(x))


def boatyard_orders_follow_response_from_message(m: Any) -> boatyard.OrdersFollowResponse:
    return boatyard.OrdersFollowResponse(
        explanation=boatyard_explanation_from_message(m.explanation)
        if m.HasField("explanation")
        else boatyard.NO_EXPLANATION,
    )


def _boatyard_orders_retry_request(x: boatyard.OrdersRetryRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    return d


def boatyard_orders_retry_request_to_message(x: boatyard.OrdersRetryRequest) -> Message:
    return message("boatyard.v1.OrdersRetryRequest")(**_boatyard_orders_retry_request(x))


def boatyard_orders_retry_request_from_message(m: Any) -> boatyard.OrdersRetryRequest:
    return boatyard.OrdersRetryRequest(
        cluster=m.cluster,
    )


def _boatyard_orders_retry_response(x: boatyard.OrdersRetryResponse) -> dict[str, Any]:
    d: dict[str, Any] = {}
    return d


def boatyard_orders_retry_response_to_message(x: boatyard.OrdersRetryResponse) -> Message:
    return message("boatyard.v1.OrdersRetryResponse")(**_boatyard_orders_retry_response(x))


def boatyard_orders_retry_response_from_message(m: Any) -> boatyard.OrdersRetryResponse:
    return boatyard.OrdersRetryResponse()


def _boatyard_orders_get_receipt_request(x: boatyard.OrdersGetReceiptRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    return d


def boatyard_orders_get_receipt_request_to_message(x: boatyard.OrdersGetReceiptRequest) -> Message:
    return message("boatyard.v1.OrdersGetReceiptRequest")(**_boatyard_orders_get_receipt_request(x))


def boatyard_orders_get_receipt_request_from_message(m: Any) -> boatyard.OrdersGetReceiptRequest:
    return boatyard.OrdersGetReceiptRequest(
        cluster=m.cluster,
    )


def _boatyard_orders_get_receipt_response(x: boatyard.OrdersGetReceiptResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.receipt) is not boatyard.NO_RECEIPT:
        d["receipt"] = _boatyard_receipt(v)
    return d


def boatyard_orders_get_receipt_response_to_message(
    x: boatyard.OrdersGetReceiptResponse,
) -> Message:
    return message("boatyard.v1.OrdersGetReceiptResponse")(
        **_boatyard_orders_get_receipt_response(x)
    )


def boatyard_orders_get_receipt_response_from_message(m: Any) -> boatyard.OrdersGetReceiptResponse:
    return boatyard.OrdersGetReceiptResponse(
        receipt=boatyard_receipt_from_message(m.receipt)
        if m.HasField("receipt")
        else boatyard.NO_RECEIPT,
    )


def _boatyard_orders_history_request(x: boatyard.OrdersHistoryRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    if (v := x.limit) is not None:
        d["limit"] = v
    return d


def boatyard_orders_history_request_to_message(x: boatyard.OrdersHistoryRequest) -> Message:
    return message("boatyard.v1.OrdersHistoryRequest")(**_boatyard_orders_history_request(x))


def boatyard_orders_history_request_from_message(m: Any) -> boatyard.OrdersHistoryRequest:
    return boatyard.OrdersHistoryRequest(
        cluster=m.cluster,
        limit=m.limit if m.HasField("limit") else None,
    )


def _boatyard_history_entry(x: boatyard.HistoryEntry) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.at) is not None:
        d["at"] = timestamp_fields(v)
    if v := x.reason:
        d["reason"] = v
    if v := x.message:
        d["message"] = v
    return d


def boatyard_history_entry_to_message(x: boatyard.HistoryEntry) -> Message:
    return message("boatyard.v1.HistoryEntry")(**_boatyard_history_entry(x))


def boatyard_history_entry_from_message(m: Any) -> boatyard.HistoryEntry:
    return boatyard.HistoryEntry(
        at=moment(m.at) if m.HasField("at") else None,
        reason=m.reason,
        message=m.message,
    )


def _boatyard_orders_history_response(x: boatyard.OrdersHistoryResponse) -> dict[str, Any]:
    d: dict[str, Any] = {}
    if x.items:
        d["items"] = [_boatyard_history_entry(v) for v in x.items]
    return d


def boatyard_orders_history_response_to_message(x: boatyard.OrdersHistoryResponse) -> Message:
    return message("boatyard.v1.OrdersHistoryResponse")(**_boatyard_orders_history_response(x))


def boatyard_orders_history_response_from_message(m: Any) -> boatyard.OrdersHistoryResponse:
    return boatyard.OrdersHistoryResponse(
        items=tuple([boatyard_history_entry_from_message(v) for v in c]) if (c := m.items) else (),
    )


def _boatyard_role_runs_ask_request(x: boatyard.RoleRunsAskRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.order:
        d["order"] = v
    if v := x.step:
        d["step"] = v
    return d


def boatyard_role_runs_ask_request_to_message(x: boatyard.RoleRunsAskRequest) -> Message:
    return message("boatyard.v1.RoleRunsAskRequest")(**_boatyard_role_runs_ask_request(x))


def boatyard_role_runs_ask_request_from_message(m: Any) -> boatyard.RoleRunsAskRequest:
    return boatyard.RoleRunsAskRequest(
        order=m.order,
        step=m.step,
    )


def _boatyard_role_runs_ask_response(x: boatyard.RoleRunsAskResponse) -> dict[str, Any]:
    d: dict[str, Any] = {}
    if x.steps:
        d["steps"] = x.steps
    return d


def boatyard_role_runs_ask_response_to_message(x: boatyard.RoleRunsAskResponse) -> Message:
    return message("boatyard.v1.RoleRunsAskResponse")(**_boatyard_role_runs_ask_response(x))


def boatyard_role_runs_ask_response_from_message(m: Any) -> boatyard.RoleRunsAskResponse:
    return boatyard.RoleRunsAskResponse(
        steps=tuple(c) if (c := m.steps) else (),
    )


def _boatyard_role_runs_get_request(x: boatyard.RoleRunsGetRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.order:
        d["order"] = v
    if v := x.kubeconfig:
        d["kubeconfig"] = v
    return d


def boatyard_role_runs_get_request_to_message(x: boatyard.RoleRunsGetRequest) -> Message:
    return message("boatyard.v1.RoleRunsGetRequest")(**_boatyard_role_runs_get_request(x))


def boatyard_role_runs_get_request_from_message(m: Any) -> boatyard.RoleRunsGetRequest:
    return boatyard.RoleRunsGetRequest(
        order=m.order,
        kubeconfig=m.kubeconfig,
    )


def _boatyard_role_run_step(x: boatyard.RoleRunStep) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.name:
        d["name"] = v
    if v := x.asked:
        d["asked"] = v
    if v := x.state:
        d["state"] = int(v)
    if v := x.reason:
        d["reason"] = v
    if v := x.message:
        d["message"] = v
    if v := x.remedy:
        d["remedy"] = v
    if v := x.detail:
        d["detail"] = v
    if v := x.blocked:
        d["blocked"] = v
    return d


def boatyard_role_run_step_to_message(x: boatyard.RoleRunStep) -> Message:
    return message("boatyard.v1.RoleRunStep")(**_boatyard_role_run_step(x))


def boatyard_role_run_step_from_message(m: Any) -> boatyard.RoleRunStep:
    return boatyard.RoleRunStep(
        name=m.name,
        asked=m.asked,
        state=_STEP_STATE[m.state],
        reason=m.reason,
        message=m.message,
        remedy=m.remedy,
        detail=m.detail,
        blocked=m.blocked,
    )


def _boatyard_role_run_node(x: boatyard.RoleRunNode) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.slot:
        d["slot"] = v
    if v := x.node_set:
        d["node_set"] = v
    if v := x.host:
        d["host"] = v
    if v := x.address:
        d["address"] = v
    return d


def boatyard_role_run_node_to_message(x: boatyard.RoleRunNode) -> Message:
    return message("boatyard.v1.RoleRunNode")(**_boatyard_role_run_node(x))


def boatyard_role_run_node_from_message(m: Any) -> boatyard.RoleRunNode:
    return boatyard.RoleRunNode(
        slot=m.slot,
        node_set=m.node_set,
        host=m.host,
        address=m.address,
    )


def _boatyard_role_run(x: boatyard.RoleRun) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.order:
        d["order"] = v
    if x.steps:
        d["steps"] = [_boatyard_role_run_step(v) for v in x.steps]
    if x.nodes:
        d["nodes"] = [_boatyard_role_run_node(v) for v in x.nodes]
    if v := x.cidr:
        d["cidr"] = v
    if v := x.gateway:
        d["gateway"] = v
    if v := x.api_address:
        d["api_address"] = v
    if v := x.ingress_address:
        d["ingress_address"] = v
    if v := x.api_name:
        d["api_name"] = v
    if v := x.ingress_name:
        d["ingress_name"] = v
    if v := x.api_url:
        d["api_url"] = v
    if v := x.kubeconfig:
        d["kubeconfig"] = v
    if v := x.simulated:
        d["simulated"] = v
    if v := x.has_kubeconfig:
        d["has_kubeconfig"] = v
    return d


def boatyard_role_run_to_message(x: boatyard.RoleRun) -> Message:
    return message("boatyard.v1.RoleRun")(**_boatyard_role_run(x))


def boatyard_role_run_from_message(m: Any) -> boatyard.RoleRun:
    return boatyard.RoleRun(
        order=m.order,
        steps=tuple([boatyard_role_run_step_from_message(v) for v in c]) if (c := m.steps) else (),
        nodes=tuple([boatyard_role_run_node_from_message(v) for v in c]) if (c := m.nodes) else (),
        cidr=m.cidr,
        gateway=m.gateway,
        api_address=m.api_address,
        ingress_address=m.ingress_address,
        api_name=m.api_name,
        ingress_name=m.ingress_name,
        api_url=m.api_url,
        kubeconfig=m.kubeconfig,
        simulated=m.simulated,
        has_kubeconfig=m.has_kubeconfig,
    )


def _boatyard_role_runs_get_response(x: boatyard.RoleRunsGetResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.object) is not boatyard.NO_ROLE_RUN:
        d["object"] = _boatyard_role_run(v)
    return d


def boatyard_role_runs_get_response_to_message(x: boatyard.RoleRunsGetResponse) -> Message:
    return message("boatyard.v1.RoleRunsGetResponse")(**_boatyard_role_runs_get_response(x))


def boatyard_role_runs_get_response_from_message(m: Any) -> boatyard.RoleRunsGetResponse:
    return boatyard.RoleRunsGetResponse(
        object=boatyard_role_run_from_message(m.object)
        if m.HasField("object")
        else boatyard.NO_ROLE_RUN,
    )


def _boatyard_run_logs_read_request(x: boatyard.RunLogsReadRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    if v := x.run:
        d["run"] = v
    if v := x.after:
        d["after"] = v
    if (v := x.limit) is not None:
        d["limit"] = v
    return d


def boatyard_run_logs_read_request_to_message(x: boatyard.RunLogsReadRequest) -> Message:
    return message("boatyard.v1.RunLogsReadRequest")(**_boatyard_run_logs_read_request(x))


def boatyard_run_logs_read_request_from_message(m: Any) -> boatyard.RunLogsReadRequest:
    return boatyard.RunLogsReadRequest(
        cluster=m.cluster,
        run=m.run,
        after=m.after,
        limit=m.limit if m.HasField("limit") else None,
    )


def _boatyard_log_line(x: boatyard.LogLine) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.run:
        d["run"] = v
    if v := x.part:
        d["part"] = v
    if v := x.attempt:
        d["attempt"] = v
    if v := x.number:
        d["number"] = v
    if (v := x.at) is not None:
        d["at"] = timestamp_fields(v)
    if v := x.kind:
        d["kind"] = v
    if v := x.task:
        d["task"] = v
    if v := x.text:
        d["text"] = v
    return d


def boatyard_log_line_to_message(x: boatyard.LogLine) -> Message:
    return message("boatyard.v1.LogLine")(**_boatyard_log_line(x))


def boatyard_log_line_from_message(m: Any) -> boatyard.LogLine:
    return boatyard.LogLine(
        id=m.id,
        run=m.run,
        part=m.part,
        attempt=m.attempt,
        number=m.number,
        at=moment(m.at) if m.HasField("at") else None,
        kind=m.kind,
        task=m.task,
        text=m.text,
    )


def _boatyard_run_logs_read_response(x: boatyard.RunLogsReadResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if x.items:
        d["items"] = [_boatyard_log_line(v) for v in x.items]
    if v := x.missing:
        d["missing"] = v
    return d


def boatyard_run_logs_read_response_to_message(x: boatyard.RunLogsReadResponse) -> Message:
    return message("boatyard.v1.RunLogsReadResponse")(**_boatyard_run_logs_read_response(x))


def boatyard_run_logs_read_response_from_message(m: Any) -> boatyard.RunLogsReadResponse:
    return boatyard.RunLogsReadResponse(
        items=tuple([boatyard_log_line_from_message(v) for v in c]) if (c := m.items) else (),
        missing=m.missing,
    )


def _boatyard_run_logs_watch_request(x: boatyard.RunLogsWatchRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.cluster:
        d["cluster"] = v
    if v := x.run:
        d["run"] = v
    if v := x.after:
        d["after"] = v
    if v := x.follow:
        d["follow"] = v
    return d


def boatyard_run_logs_watch_request_to_message(x: boatyard.RunLogsWatchRequest) -> Message:
    return message("boatyard.v1.RunLogsWatchRequest")(**_boatyard_run_logs_watch_request(x))


def boatyard_run_logs_watch_request_from_message(m: Any) -> boatyard.RunLogsWatchRequest:
    return boatyard.RunLogsWatchRequest(
        cluster=m.cluster,
        run=m.run,
        after=m.after,
        follow=m.follow,
    )


def _boatyard_run_logs_watch_response(x: boatyard.RunLogsWatchResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.line) is not boatyard.NO_LOG_LINE:
        d["line"] = _boatyard_log_line(v)
    if v := x.missing:
        d["missing"] = v
    return d


def boatyard_run_logs_watch_response_to_message(x: boatyard.RunLogsWatchResponse) -> Message:
    return message("boatyard.v1.RunLogsWatchResponse")(**_boatyard_run_logs_watch_response(x))


def boatyard_run_logs_watch_response_from_message(m: Any) -> boatyard.RunLogsWatchResponse:
    return boatyard.RunLogsWatchResponse(
        line=boatyard_log_line_from_message(m.line) if m.HasField("line") else boatyard.NO_LOG_LINE,
        missing=m.missing,
    )


def _boatyard_template_mistake(x: boatyard.TemplateMistake) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.file:
        d["file"] = v
    if v := x.line:
        d["line"] = v
    if v := x.path:
        d["path"] = v
    if v := x.message:
        d["message"] = v
    if v := x.remedy:
        d["remedy"] = v
    return d


def boatyard_template_mistake_to_message(x: boatyard.TemplateMistake) -> Message:
    return message("boatyard.v1.TemplateMistake")(**_boatyard_template_mistake(x))


def boatyard_template_mistake_from_message(m: Any) -> boatyard.TemplateMistake:
    return boatyard.TemplateMistake(
        file=m.file,
        line=m.line,
        path=m.path,
        message=m.message,
        remedy=m.remedy,
    )


def _boatyard_template_source_status(x: boatyard.TemplateSourceStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.state:
        d["state"] = int(v)
    if v := x.origin:
        d["origin"] = v
    if v := x.template:
        d["template"] = v
    if v := x.digest:
        d["digest"] = v
    if x.mistakes:
        d["mistakes"] = [_boatyard_template_mistake(v) for v in x.mistakes]
    if (v := x.changed_at) is not None:
        d["changed_at"] = timestamp_fields(v)
    return d


def boatyard_template_source_status_to_message(x: boatyard.TemplateSourceStatus) -> Message:
    return message("boatyard.v1.TemplateSourceStatus")(**_boatyard_template_source_status(x))


def boatyard_template_source_status_from_message(m: Any) -> boatyard.TemplateSourceStatus:
    return boatyard.TemplateSourceStatus(
        state=_TEMPLATE_SOURCE_STATE[m.state],
        origin=m.origin,
        template=m.template,
        digest=m.digest,
        mistakes=tuple([boatyard_template_mistake_from_message(v) for v in c])
        if (c := m.mistakes)
        else (),
        changed_at=moment(m.changed_at) if m.HasField("changed_at") else None,
    )


def _boatyard_template_source(x: boatyard.TemplateSource) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _private_metadata(v)
    if (v := x.status) is not boatyard.NO_TEMPLATE_SOURCE_STATUS:
        d["status"] = _boatyard_template_source_status(v)
    return d


def boatyard_template_source_to_message(x: boatyard.TemplateSource) -> Message:
    return message("boatyard.v1.TemplateSource")(**_boatyard_template_source(x))


def boatyard_template_source_from_message(m: Any) -> boatyard.TemplateSource:
    return boatyard.TemplateSource(
        id=m.id,
        metadata=private_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        status=boatyard_template_source_status_from_message(m.status)
        if m.HasField("status")
        else boatyard.NO_TEMPLATE_SOURCE_STATUS,
    )


def _boatyard_template_sources_list_request(
    x: boatyard.TemplateSourcesListRequest,
) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.offset) is not None:
        d["offset"] = v
    if (v := x.limit) is not None:
        d["limit"] = v
    if (v := x.filter) is not None:
        d["filter"] = v
    if (v := x.order) is not None:
        d["order"] = v
    return d


def boatyard_template_sources_list_request_to_message(
    x: boatyard.TemplateSourcesListRequest,
) -> Message:
    return message("boatyard.v1.TemplateSourcesListRequest")(
        **_boatyard_template_sources_list_request(x)
    )


def boatyard_template_sources_list_request_from_message(
    m: Any,
) -> boatyard.TemplateSourcesListRequest:
    return boatyard.TemplateSourcesListRequest(
        offset=m.offset if m.HasField("offset") else None,
        limit=m.limit if m.HasField("limit") else None,
        filter=m.filter if m.HasField("filter") else None,
        order=m.order if m.HasField("order") else None,
    )


def _boatyard_template_sources_list_response(
    x: boatyard.TemplateSourcesListResponse,
) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.size:
        d["size"] = v
    if v := x.total:
        d["total"] = v
    if x.items:
        d["items"] = [_boatyard_template_source(v) for v in x.items]
    return d


def boatyard_template_sources_list_response_to_message(
    x: boatyard.TemplateSourcesListResponse,
) -> Message:
    return message("boatyard.v1.TemplateSourcesListResponse")(
        **_boatyard_template_sources_list_response(x)
    )


def boatyard_template_sources_list_response_from_message(
    m: Any,
) -> boatyard.TemplateSourcesListResponse:
    return boatyard.TemplateSourcesListResponse(
        size=m.size,
        total=m.total,
        items=tuple([boatyard_template_source_from_message(v) for v in c])
        if (c := m.items)
        else (),
    )


def _boatyard_template_sources_get_request(x: boatyard.TemplateSourcesGetRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    return d


def boatyard_template_sources_get_request_to_message(
    x: boatyard.TemplateSourcesGetRequest,
) -> Message:
    return message("boatyard.v1.TemplateSourcesGetRequest")(
        **_boatyard_template_sources_get_request(x)
    )


def boatyard_template_sources_get_request_from_message(
    m: Any,
) -> boatyard.TemplateSourcesGetRequest:
    return boatyard.TemplateSourcesGetRequest(
        id=m.id,
    )


def _boatyard_template_sources_get_response(
    x: boatyard.TemplateSourcesGetResponse,
) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.object) is not boatyard.NO_TEMPLATE_SOURCE:
        d["object"] = _boatyard_template_source(v)
    return d


def boatyard_template_sources_get_response_to_message(
    x: boatyard.TemplateSourcesGetResponse,
) -> Message:
    return message("boatyard.v1.TemplateSourcesGetResponse")(
        **_boatyard_template_sources_get_response(x)
    )


def boatyard_template_sources_get_response_from_message(
    m: Any,
) -> boatyard.TemplateSourcesGetResponse:
    return boatyard.TemplateSourcesGetResponse(
        object=boatyard_template_source_from_message(m.object)
        if m.HasField("object")
        else boatyard.NO_TEMPLATE_SOURCE,
    )


def _boatyard_templates_get_schema_request(x: boatyard.TemplatesGetSchemaRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.template:
        d["template"] = v
    return d


def boatyard_templates_get_schema_request_to_message(
    x: boatyard.TemplatesGetSchemaRequest,
) -> Message:
    return message("boatyard.v1.TemplatesGetSchemaRequest")(
        **_boatyard_templates_get_schema_request(x)
    )


def boatyard_templates_get_schema_request_from_message(
    m: Any,
) -> boatyard.TemplatesGetSchemaRequest:
    return boatyard.TemplatesGetSchemaRequest(
        template=m.template,
    )


def _boatyard_role_file(x: boatyard.RoleFile) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.path:
        d["path"] = v
    if v := x.content:
        d["content"] = v
    if v := x.executable:
        d["executable"] = v
    return d


def boatyard_role_file_to_message(x: boatyard.RoleFile) -> Message:
    return message("boatyard.v1.RoleFile")(**_boatyard_role_file(x))


def boatyard_role_file_from_message(m: Any) -> boatyard.RoleFile:
    return boatyard.RoleFile(
        path=m.path,
        content=m.content,
        executable=m.executable,
    )


def _boatyard_templates_publish_request(x: boatyard.TemplatesPublishRequest) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.role:
        d["role"] = v
    if x.files:
        d["files"] = [_boatyard_role_file(v) for v in x.files]
    return d


def boatyard_templates_publish_request_to_message(x: boatyard.TemplatesPublishRequest) -> Message:
    return message("boatyard.v1.TemplatesPublishRequest")(**_boatyard_templates_publish_request(x))


def boatyard_templates_publish_request_from_message(m: Any) -> boatyard.TemplatesPublishRequest:
    return boatyard.TemplatesPublishRequest(
        role=m.role,
        files=tuple([boatyard_role_file_from_message(v) for v in c]) if (c := m.files) else (),
    )


def _boatyard_templates_publish_response(x: boatyard.TemplatesPublishResponse) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.object) is not boatyard.NO_TEMPLATE_SOURCE:
        d["object"] = _boatyard_template_source(v)
    return d


def boatyard_templates_publish_response_to_message(x: boatyard.TemplatesPublishResponse) -> Message:
    return message("boatyard.v1.TemplatesPublishResponse")(
        **_boatyard_templates_publish_response(x)
    )


def boatyard_templates_publish_response_from_message(m: Any) -> boatyard.TemplatesPublishResponse:
    return boatyard.TemplatesPublishResponse(
        object=boatyard_template_source_from_message(m.object)
        if m.HasField("object")
        else boatyard.NO_TEMPLATE_SOURCE,
    )


def _public_authn_capabilities(x: osac.AuthnCapabilities) -> dict[str, Any]:
    d: dict[str, Any] = {}
    if x.trusted_token_issuers:
        d["trusted_token_issuers"] = x.trusted_token_issuers
    return d


def public_authn_capabilities_to_message(x: osac.AuthnCapabilities) -> Message:
    return message("osac.public.v1.AuthnCapabilities")(**_public_authn_capabilities(x))


def public_authn_capabilities_from_message(m: Any) -> osac.AuthnCapabilities:
    return osac.AuthnCapabilities(
        trusted_token_issuers=tuple(c) if (c := m.trusted_token_issuers) else (),
    )


def _public_metadata(x: osac.Metadata) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.creation_timestamp) is not None:
        d["creation_timestamp"] = timestamp_fields(v)
    if (v := x.deletion_timestamp) is not None:
        d["deletion_timestamp"] = timestamp_fields(v)
    if v := x.creator:
        d["creator"] = v
    if v := x.tenant:
        d["tenant"] = v
    if v := x.name:
        d["name"] = v
    if x.labels:
        d["labels"] = x.labels
    if x.annotations:
        d["annotations"] = x.annotations
    if v := x.version:
        d["version"] = v
    if v := x.project:
        d["project"] = v
    if v := x.display_name:
        d["display_name"] = v
    if v := x.description:
        d["description"] = v
    if v := x.generation:
        d["generation"] = v
    return d


def public_metadata_to_message(x: osac.Metadata) -> Message:
    return message("osac.public.v1.Metadata")(**_public_metadata(x))


def public_metadata_from_message(m: Any) -> osac.Metadata:
    return osac.Metadata(
        creation_timestamp=moment(m.creation_timestamp)
        if m.HasField("creation_timestamp")
        else None,
        deletion_timestamp=moment(m.deletion_timestamp)
        if m.HasField("deletion_timestamp")
        else None,
        creator=m.creator,
        tenant=m.tenant,
        name=m.name,
        labels={k: c[k] for k in c} if (c := m.labels) else {},
        annotations={k: c[k] for k in c} if (c := m.annotations) else {},
        version=m.version,
        project=m.project,
        display_name=m.display_name,
        description=m.description,
        generation=m.generation,
    )


def _public_tenant_spec(x: osac.TenantSpec) -> dict[str, Any]:
    d: dict[str, Any] = {}
    if x.domains:
        d["domains"] = x.domains
    return d


def public_tenant_spec_to_message(x: osac.TenantSpec) -> Message:
    return message("osac.public.v1.TenantSpec")(**_public_tenant_spec(x))


def public_tenant_spec_from_message(m: Any) -> osac.TenantSpec:
    return osac.TenantSpec(
        domains=tuple(c) if (c := m.domains) else (),
    )


def _public_break_glass_credentials(x: osac.BreakGlassCredentials) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.username:
        d["username"] = v
    if v := x.password:
        d["password"] = v
    return d


def public_break_glass_credentials_to_message(x: osac.BreakGlassCredentials) -> Message:
    return message("osac.public.v1.BreakGlassCredentials")(**_public_break_glass_credentials(x))


def public_break_glass_credentials_from_message(m: Any) -> osac.BreakGlassCredentials:
    return osac.BreakGlassCredentials(
        username=m.username,
        password=m.password,
    )


def _public_tenant(x: osac.Tenant) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _public_metadata(v)
    if (v := x.spec) is not osac.NO_TENANT_SPEC:
        d["spec"] = _public_tenant_spec(v)
    return d


def public_tenant_to_message(x: osac.Tenant) -> Message:
    return message("osac.public.v1.Tenant")(**_public_tenant(x))


def public_tenant_from_message(m: Any) -> osac.Tenant:
    return osac.Tenant(
        id=m.id,
        metadata=public_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=public_tenant_spec_from_message(m.spec) if m.HasField("spec") else osac.NO_TENANT_SPEC,
    )


def _public_project_spec(x: osac.ProjectSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.title:
        d["title"] = v
    if (v := x.description) is not None:
        d["description"] = v
    return d


def public_project_spec_to_message(x: osac.ProjectSpec) -> Message:
    return message("osac.public.v1.ProjectSpec")(**_public_project_spec(x))


def public_project_spec_from_message(m: Any) -> osac.ProjectSpec:
    return osac.ProjectSpec(
        title=m.title,
        description=m.description if m.HasField("description") else None,
    )


def _public_project_status(x: osac.ProjectStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.state:
        d["state"] = int(v)
    if (v := x.message) is not None:
        d["message"] = v
    return d


def public_project_status_to_message(x: osac.ProjectStatus) -> Message:
    return message("osac.public.v1.ProjectStatus")(**_public_project_status(x))


def public_project_status_from_message(m: Any) -> osac.ProjectStatus:
    return osac.ProjectStatus(
        state=_PROJECT_STATE[m.state],
        message=m.message if m.HasField("message") else None,
    )


def _public_project(x: osac.Project) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _public_metadata(v)
    if (v := x.spec) is not osac.NO_PROJECT_SPEC:
        d["spec"] = _public_project_spec(v)
    if (v := x.status) is not osac.NO_PROJECT_STATUS:
        d["status"] = _public_project_status(v)
    return d


def public_project_to_message(x: osac.Project) -> Message:
    return message("osac.public.v1.Project")(**_public_project(x))


def public_project_from_message(m: Any) -> osac.Project:
    return osac.Project(
        id=m.id,
        metadata=public_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=public_project_spec_from_message(m.spec)
        if m.HasField("spec")
        else osac.NO_PROJECT_SPEC,
        status=public_project_status_from_message(m.status)
        if m.HasField("status")
        else osac.NO_PROJECT_STATUS,
    )


def _public_network_interface(x: osac.NetworkInterface) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.name:
        d["name"] = v
    if v := x.role:
        d["role"] = v
    if v := x.description:
        d["description"] = v
    return d


def public_network_interface_to_message(x: osac.NetworkInterface) -> Message:
    return message("osac.public.v1.NetworkInterface")(**_public_network_interface(x))


def public_network_interface_from_message(m: Any) -> osac.NetworkInterface:
    return osac.NetworkInterface(
        name=m.name,
        role=m.role,
        description=m.description,
    )


def _public_host_type(x: osac.HostType) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _public_metadata(v)
    if v := x.title:
        d["title"] = v
    if v := x.description:
        d["description"] = v
    if x.interfaces:
        d["interfaces"] = [_public_network_interface(v) for v in x.interfaces]
    if x.resources:
        d["resources"] = x.resources
    return d


def public_host_type_to_message(x: osac.HostType) -> Message:
    return message("osac.public.v1.HostType")(**_public_host_type(x))


def public_host_type_from_message(m: Any) -> osac.HostType:
    return osac.HostType(
        id=m.id,
        metadata=public_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        title=m.title,
        description=m.description,
        interfaces=tuple([public_network_interface_from_message(v) for v in c])
        if (c := m.interfaces)
        else (),
        resources={k: c[k] for k in c} if (c := m.resources) else {},
    )


def _public_cluster_version_deprecation(x: osac.ClusterVersionDeprecation) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.deprecation_timestamp) is not None:
        d["deprecation_timestamp"] = timestamp_fields(v)
    if (v := x.obsolescence_timestamp) is not None:
        d["obsolescence_timestamp"] = timestamp_fields(v)
    return d


def public_cluster_version_deprecation_to_message(x: osac.ClusterVersionDeprecation) -> Message:
    return message("osac.public.v1.ClusterVersionDeprecation")(
        **_public_cluster_version_deprecation(x)
    )


def public_cluster_version_deprecation_from_message(m: Any) -> osac.ClusterVersionDeprecation:
    return osac.ClusterVersionDeprecation(
        deprecation_timestamp=moment(m.deprecation_timestamp)
        if m.HasField("deprecation_timestamp")
        else None,
        obsolescence_timestamp=moment(m.obsolescence_timestamp)
        if m.HasField("obsolescence_timestamp")
        else None,
    )


def _public_cluster_version_spec(x: osac.ClusterVersionSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.enabled) is not None:
        d["enabled"] = v
    if (v := x.is_default) is not None:
        d["is_default"] = v
    if v := x.state:
        d["state"] = int(v)
    if (v := x.deprecation) is not osac.NO_CLUSTER_VERSION_DEPRECATION:
        d["deprecation"] = _public_cluster_version_deprecation(v)
    if v := x.version:
        d["version"] = v
    return d


def public_cluster_version_spec_to_message(x: osac.ClusterVersionSpec) -> Message:
    return message("osac.public.v1.ClusterVersionSpec")(**_public_cluster_version_spec(x))


def public_cluster_version_spec_from_message(m: Any) -> osac.ClusterVersionSpec:
    return osac.ClusterVersionSpec(
        enabled=m.enabled if m.HasField("enabled") else None,
        is_default=m.is_default if m.HasField("is_default") else None,
        state=_CLUSTER_VERSION_STATE[m.state],
        deprecation=public_cluster_version_deprecation_from_message(m.deprecation)
        if m.HasField("deprecation")
        else osac.NO_CLUSTER_VERSION_DEPRECATION,
        version=m.version,
    )


def _public_cluster_version_status(x: osac.ClusterVersionStatus) -> dict[str, Any]:
    d: dict[str, Any] = {}
    return d


def public_cluster_version_status_to_message(x: osac.ClusterVersionStatus) -> Message:
    return message("osac.public.v1.ClusterVersionStatus")(**_public_cluster_version_status(x))


def public_cluster_version_status_from_message(m: Any) -> osac.ClusterVersionStatus:
    return osac.ClusterVersionStatus()


def _public_cluster_version(x: osac.ClusterVersion) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _public_metadata(v)
    if (v := x.spec) is not osac.NO_CLUSTER_VERSION_SPEC:
        d["spec"] = _public_cluster_version_spec(v)
    if (v := x.status) is not osac.NO_CLUSTER_VERSION_STATUS:
        d["status"] = _public_cluster_version_status(v)
    return d


def public_cluster_version_to_message(x: osac.ClusterVersion) -> Message:
    return message("osac.public.v1.ClusterVersion")(**_public_cluster_version(x))


def public_cluster_version_from_message(m: Any) -> osac.ClusterVersion:
    return osac.ClusterVersion(
        id=m.id,
        metadata=public_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=public_cluster_version_spec_from_message(m.spec)
        if m.HasField("spec")
        else osac.NO_CLUSTER_VERSION_SPEC,
        status=public_cluster_version_status_from_message(m.status)
        if m.HasField("status")
        else osac.NO_CLUSTER_VERSION_STATUS,
    )


def _public_cluster_template_parameter_definition(
    x: osac.ClusterTemplateParameterDefinition,
) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.name:
        d["name"] = v
    if v := x.title:
        d["title"] = v
    if v := x.description:
        d["description"] = v
    if v := x.required:
        d["required"] = v
    if v := x.type:
        d["type"] = v
    if (v := x.default) is not None:
        d["default"] = any_fields(v)
    if v := x.no_log:
        d["no_log"] = v
    return d


def public_cluster_template_parameter_definition_to_message(
    x: osac.ClusterTemplateParameterDefinition,
) -> Message:
    return message("osac.public.v1.ClusterTemplateParameterDefinition")(
        **_public_cluster_template_parameter_definition(x)
    )


def public_cluster_template_parameter_definition_from_message(
    m: Any,
) -> osac.ClusterTemplateParameterDefinition:
    return osac.ClusterTemplateParameterDefinition(
        name=m.name,
        title=m.title,
        description=m.description,
        required=m.required,
        type=m.type,
        default=any_value(m.default) if m.HasField("default") else None,
        no_log=m.no_log,
    )


def _public_host_type_reference(x: osac.HostTypeReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    if v := x.project:
        d["project"] = v
    if v := x.shared:
        d["shared"] = v
    return d


def public_host_type_reference_to_message(x: osac.HostTypeReference) -> Message:
    return message("osac.public.v1.HostTypeReference")(**_public_host_type_reference(x))


def public_host_type_reference_from_message(m: Any) -> osac.HostTypeReference:
    return osac.HostTypeReference(
        id=m.id,
        name=m.name,
        project=m.project,
        shared=m.shared,
    )


def _public_cluster_template_node_set(x: osac.ClusterTemplateNodeSet) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.host_type) is not osac.NO_HOST_TYPE_REFERENCE:
        d["host_type"] = _public_host_type_reference(v)
    if v := x.size:
        d["size"] = v
    return d


def public_cluster_template_node_set_to_message(x: osac.ClusterTemplateNodeSet) -> Message:
    return message("osac.public.v1.ClusterTemplateNodeSet")(**_public_cluster_template_node_set(x))


def public_cluster_template_node_set_from_message(m: Any) -> osac.ClusterTemplateNodeSet:
    return osac.ClusterTemplateNodeSet(
        host_type=public_host_type_reference_from_message(m.host_type)
        if m.HasField("host_type")
        else osac.NO_HOST_TYPE_REFERENCE,
        size=m.size,
    )


def _public_cluster_network(x: osac.ClusterNetwork) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.pod_cidr) is not None:
        d["pod_cidr"] = v
    if (v := x.service_cidr) is not None:
        d["service_cidr"] = v
    return d


def public_cluster_network_to_message(x: osac.ClusterNetwork) -> Message:
    return message("osac.public.v1.ClusterNetwork")(**_public_cluster_network(x))


def public_cluster_network_from_message(m: Any) -> osac.ClusterNetwork:
    return osac.ClusterNetwork(
        pod_cidr=m.pod_cidr if m.HasField("pod_cidr") else None,
        service_cidr=m.service_cidr if m.HasField("service_cidr") else None,
    )


def _public_cluster_version_reference(x: osac.ClusterVersionReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    if v := x.project:
        d["project"] = v
    if v := x.shared:
        d["shared"] = v
    return d


def public_cluster_version_reference_to_message(x: osac.ClusterVersionReference) -> Message:
    return message("osac.public.v1.ClusterVersionReference")(**_public_cluster_version_reference(x))


def public_cluster_version_reference_from_message(m: Any) -> osac.ClusterVersionReference:
    return osac.ClusterVersionReference(
        id=m.id,
        name=m.name,
        project=m.project,
        shared=m.shared,
    )


def _public_secret_local_reference(x: osac.SecretLocalReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    return d


def public_secret_local_reference_to_message(x: osac.SecretLocalReference) -> Message:
    return message("osac.public.v1.SecretLocalReference")(**_public_secret_local_reference(x))


def public_secret_local_reference_from_message(m: Any) -> osac.SecretLocalReference:
    return osac.SecretLocalReference(
        id=m.id,
        name=m.name,
    )


def _public_cluster_template_spec_defaults(x: osac.ClusterTemplateSpecDefaults) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.ssh_public_key) is not None:
        d["ssh_public_key"] = v
    if (v := x.network) is not None:
        d["network"] = _public_cluster_network(v)
    if (v := x.version) is not osac.NO_CLUSTER_VERSION_REFERENCE:
        d["version"] = _public_cluster_version_reference(v)
    if (v := x.pull_secret_secret) is not osac.NO_SECRET_LOCAL_REFERENCE:
        d["pull_secret_secret"] = _public_secret_local_reference(v)
    return d


def public_cluster_template_spec_defaults_to_message(
    x: osac.ClusterTemplateSpecDefaults,
) -> Message:
    return message("osac.public.v1.ClusterTemplateSpecDefaults")(
        **_public_cluster_template_spec_defaults(x)
    )


def public_cluster_template_spec_defaults_from_message(m: Any) -> osac.ClusterTemplateSpecDefaults:
    return osac.ClusterTemplateSpecDefaults(
        ssh_public_key=m.ssh_public_key if m.HasField("ssh_public_key") else None,
        network=public_cluster_network_from_message(m.network) if m.HasField("network") else None,
        version=public_cluster_version_reference_from_message(m.version)
        if m.HasField("version")
        else osac.NO_CLUSTER_VERSION_REFERENCE,
        pull_secret_secret=public_secret_local_reference_from_message(m.pull_secret_secret)
        if m.HasField("pull_secret_secret")
        else osac.NO_SECRET_LOCAL_REFERENCE,
    )


def _public_cluster_template(x: osac.ClusterTemplate) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _public_metadata(v)
    if v := x.title:
        d["title"] = v
    if v := x.description:
        d["description"] = v
    if x.parameters:
        d["parameters"] = [_public_cluster_template_parameter_definition(v) for v in x.parameters]
    if x.node_sets:
        d["node_sets"] = {k: _public_cluster_template_node_set(v) for k, v in x.node_sets.items()}
    if (v := x.spec_defaults) is not osac.NO_CLUSTER_TEMPLATE_SPEC_DEFAULTS:
        d["spec_defaults"] = _public_cluster_template_spec_defaults(v)
    if v := x.digest:
        d["digest"] = v
    if x.allowed_host_types:
        d["allowed_host_types"] = x.allowed_host_types
    if v := x.version_from:
        d["version_from"] = v
    if v := x.version_below:
        d["version_below"] = v
    if x.phases:
        d["phases"] = x.phases
    if v := x.withdrawn:
        d["withdrawn"] = v
    return d


def public_cluster_template_to_message(x: osac.ClusterTemplate) -> Message:
    return message("osac.public.v1.ClusterTemplate")(**_public_cluster_template(x))


def public_cluster_template_from_message(m: Any) -> osac.ClusterTemplate:
    return osac.ClusterTemplate(
        id=m.id,
        metadata=public_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        title=m.title,
        description=m.description,
        parameters=tuple([public_cluster_template_parameter_definition_from_message(v) for v in c])
        if (c := m.parameters)
        else (),
        node_sets={k: public_cluster_template_node_set_from_message(c[k]) for k in c}
        if (c := m.node_sets)
        else {},
        spec_defaults=public_cluster_template_spec_defaults_from_message(m.spec_defaults)
        if m.HasField("spec_defaults")
        else osac.NO_CLUSTER_TEMPLATE_SPEC_DEFAULTS,
        digest=m.digest,
        allowed_host_types=tuple(c) if (c := m.allowed_host_types) else (),
        version_from=m.version_from,
        version_below=m.version_below,
        phases=tuple(c) if (c := m.phases) else (),
        withdrawn=m.withdrawn,
    )


def _public_cluster_template_reference(x: osac.ClusterTemplateReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    if v := x.project:
        d["project"] = v
    if v := x.shared:
        d["shared"] = v
    return d


def public_cluster_template_reference_to_message(x: osac.ClusterTemplateReference) -> Message:
    return message("osac.public.v1.ClusterTemplateReference")(
        **_public_cluster_template_reference(x)
    )


def public_cluster_template_reference_from_message(m: Any) -> osac.ClusterTemplateReference:
    return osac.ClusterTemplateReference(
        id=m.id,
        name=m.name,
        project=m.project,
        shared=m.shared,
    )


def _public_cluster_node_set(x: osac.ClusterNodeSet) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.host_type) is not osac.NO_HOST_TYPE_REFERENCE:
        d["host_type"] = _public_host_type_reference(v)
    if v := x.size:
        d["size"] = v
    return d


def public_cluster_node_set_to_message(x: osac.ClusterNodeSet) -> Message:
    return message("osac.public.v1.ClusterNodeSet")(**_public_cluster_node_set(x))


def public_cluster_node_set_from_message(m: Any) -> osac.ClusterNodeSet:
    return osac.ClusterNodeSet(
        host_type=public_host_type_reference_from_message(m.host_type)
        if m.HasField("host_type")
        else osac.NO_HOST_TYPE_REFERENCE,
        size=m.size,
    )


def _public_cluster_catalog_item_reference(x: osac.ClusterCatalogItemReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    if v := x.project:
        d["project"] = v
    if v := x.shared:
        d["shared"] = v
    return d


def public_cluster_catalog_item_reference_to_message(
    x: osac.ClusterCatalogItemReference,
) -> Message:
    return message("osac.public.v1.ClusterCatalogItemReference")(
        **_public_cluster_catalog_item_reference(x)
    )


def public_cluster_catalog_item_reference_from_message(m: Any) -> osac.ClusterCatalogItemReference:
    return osac.ClusterCatalogItemReference(
        id=m.id,
        name=m.name,
        project=m.project,
        shared=m.shared,
    )


def _public_subnet_local_reference(x: osac.SubnetLocalReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    return d


def public_subnet_local_reference_to_message(x: osac.SubnetLocalReference) -> Message:
    return message("osac.public.v1.SubnetLocalReference")(**_public_subnet_local_reference(x))


def public_subnet_local_reference_from_message(m: Any) -> osac.SubnetLocalReference:
    return osac.SubnetLocalReference(
        id=m.id,
        name=m.name,
    )


def _public_security_group_local_reference(x: osac.SecurityGroupLocalReference) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.name:
        d["name"] = v
    return d


def public_security_group_local_reference_to_message(
    x: osac.SecurityGroupLocalReference,
) -> Message:
    return message("osac.public.v1.SecurityGroupLocalReference")(
        **_public_security_group_local_reference(x)
    )


def public_security_group_local_reference_from_message(m: Any) -> osac.SecurityGroupLocalReference:
    return osac.SecurityGroupLocalReference(
        id=m.id,
        name=m.name,
    )


def _public_cluster_network_attachment(x: osac.ClusterNetworkAttachment) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.subnet) is not osac.NO_SUBNET_LOCAL_REFERENCE:
        d["subnet"] = _public_subnet_local_reference(v)
    if x.security_groups:
        d["security_groups"] = [
            _public_security_group_local_reference(v) for v in x.security_groups
        ]
    return d


def public_cluster_network_attachment_to_message(x: osac.ClusterNetworkAttachment) -> Message:
    return message("osac.public.v1.ClusterNetworkAttachment")(
        **_public_cluster_network_attachment(x)
    )


def public_cluster_network_attachment_from_message(m: Any) -> osac.ClusterNetworkAttachment:
    return osac.ClusterNetworkAttachment(
        subnet=public_subnet_local_reference_from_message(m.subnet)
        if m.HasField("subnet")
        else osac.NO_SUBNET_LOCAL_REFERENCE,
        security_groups=tuple([public_security_group_local_reference_from_message(v) for v in c])
        if (c := m.security_groups)
        else (),
    )


def _public_cluster_restore(x: osac.ClusterRestore) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.backup:
        d["backup"] = v
    if v := x.request:
        d["request"] = v
    return d


def public_cluster_restore_to_message(x: osac.ClusterRestore) -> Message:
    return message("osac.public.v1.ClusterRestore")(**_public_cluster_restore(x))


def public_cluster_restore_from_message(m: Any) -> osac.ClusterRestore:
    return osac.ClusterRestore(
        backup=m.backup,
        request=m.request,
    )


def _public_cluster_spec(x: osac.ClusterSpec) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if (v := x.template) is not osac.NO_CLUSTER_TEMPLATE_REFERENCE:
        d["template"] = _public_cluster_template_reference(v)
    if x.template_parameters:
        d["template_parameters"] = {k: any_fields(v) for k, v in x.template_parameters.items()}
    if x.node_sets:
        d["node_sets"] = {k: _public_cluster_node_set(v) for k, v in x.node_sets.items()}
    if (v := x.pull_secret) is not None:
        d["pull_secret"] = v
    if (v := x.ssh_public_key) is not None:
        d["ssh_public_key"] = v
    if (v := x.version) is not osac.NO_CLUSTER_VERSION_REFERENCE:
        d["version"] = _public_cluster_version_reference(v)
    if (v := x.network) is not None:
        d["network"] = _public_cluster_network(v)
    if (v := x.catalog_item) is not osac.NO_CLUSTER_CATALOG_ITEM_REFERENCE:
        d["catalog_item"] = _public_cluster_catalog_item_reference(v)
    if (v := x.network_attachment) is not osac.NO_CLUSTER_NETWORK_ATTACHMENT:
        d["network_attachment"] = _public_cluster_network_attachment(v)
    if v := x.auto_external_ip_attachment:
        d["auto_external_ip_attachment"] = v
    if (v := x.pull_secret_secret) is not osac.NO_SECRET_LOCAL_REFERENCE:
        d["pull_secret_secret"] = _public_secret_local_reference(v)
    if v := x.zone:
        d["zone"] = v
    if x.hub_labels:
        d["hub_labels"] = x.hub_labels
    if v := x.rest:
        d["rest"] = int(v)
    if (v := x.restore) is not osac.NO_CLUSTER_RESTORE:
        d["restore"] = _public_cluster_restore(v)
    if v := x.template_digest:
        d["template_digest"] = v
    if x.template_phases:
        d["template_phases"] = x.template_phases
    if v := x.secret_parameters:
        d["secret_parameters"] = v
    return d


def public_cluster_spec_to_message(x: osac.ClusterSpec) -> Message:
    return message("osac.public.v1.ClusterSpec")(**_public_cluster_spec(x))


def public_cluster_spec_from_message(m: Any) -> osac.ClusterSpec:
    return osac.ClusterSpec(
        template=public_cluster_template_reference_from_message(m.template)
        if m.HasField("template")
        else osac.NO_CLUSTER_TEMPLATE_REFERENCE,
        template_parameters={k: any_value(c[k]) for k in c} if (c := m.template_parameters) else {},
        node_sets={k: public_cluster_node_set_from_message(c[k]) for k in c}
        if (c := m.node_sets)
        else {},
        pull_secret=m.pull_secret if m.HasField("pull_secret") else None,
        ssh_public_key=m.ssh_public_key if m.HasField("ssh_public_key") else None,
        version=public_cluster_version_reference_from_message(m.version)
        if m.HasField("version")
        else osac.NO_CLUSTER_VERSION_REFERENCE,
        network=public_cluster_network_from_message(m.network) if m.HasField("network") else None,
        catalog_item=public_cluster_catalog_item_reference_from_message(m.catalog_item)
        if m.HasField("catalog_item")
        else osac.NO_CLUSTER_CATALOG_ITEM_REFERENCE,
        network_attachment=public_cluster_network_attachment_from_message(m.network_attachment)
        if m.HasField("network_attachment")
        else osac.NO_CLUSTER_NETWORK_ATTACHMENT,
        auto_external_ip_attachment=m.auto_external_ip_attachment,
        pull_secret_secret=public_secret_local_reference_from_message(m.pull_secret_secret)
        if m.HasField("pull_secret_secret")
        else osac.NO_SECRET_LOCAL_REFERENCE,
        zone=m.zone,
        hub_labels={k: c[k] for k in c} if (c := m.hub_labels) else {},
        rest=_CLUSTER_REST[m.rest],
        restore=public_cluster_restore_from_message(m.restore)
        if m.HasField("restore")
        else osac.NO_CLUSTER_RESTORE,
        template_digest=m.template_digest,
        template_phases=tuple(c) if (c := m.template_phases) else (),
        secret_parameters=m.secret_parameters,
    )


def _public_cluster_condition(x: osac.ClusterCondition) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.type:
        d["type"] = int(v)
    if v := x.status:
        d["status"] = int(v)
    if (v := x.last_transition_time) is not None:
        d["last_transition_time"] = timestamp_fields(v)
    if (v := x.reason) is not None:
        d["reason"] = v
    if (v := x.message) is not None:
        d["message"] = v
    return d


def public_cluster_condition_to_message(x: osac.ClusterCondition) -> Message:
    return message("osac.public.v1.ClusterCondition")(**_public_cluster_condition(x))


def public_cluster_condition_from_message(m: Any) -> osac.ClusterCondition:
    return osac.ClusterCondition(
        type=_CLUSTER_CONDITION_TYPE[m.type],
        status=_CONDITION_STATUS[m.status],
        last_transition_time=moment(m.last_transition_time)
        if m.HasField("last_transition_time")
        else None,
        reason=m.reason if m.HasField("reason") else None,
        message=m.message if m.HasField("message") else None,
    )


def _public_cluster_status(x: osac.ClusterStatus) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.state:
        d["state"] = int(v)
    if x.conditions:
        d["conditions"] = [_public_cluster_condition(v) for v in x.conditions]
    if v := x.api_url:
        d["api_url"] = v
    if v := x.console_url:
        d["console_url"] = v
    if x.node_sets:
        d["node_sets"] = {k: _public_cluster_node_set(v) for k, v in x.node_sets.items()}
    if v := x.api_endpoint:
        d["api_endpoint"] = v
    if v := x.ingress_endpoint:
        d["ingress_endpoint"] = v
    if (v := x.state_transition_time) is not None:
        d["state_transition_time"] = timestamp_fields(v)
    if x.ready_nodes:
        d["ready_nodes"] = x.ready_nodes
    if v := x.version:
        d["version"] = v
    if v := x.rest:
        d["rest"] = int(v)
    if v := x.restored:
        d["restored"] = v
    return d


def public_cluster_status_to_message(x: osac.ClusterStatus) -> Message:
    return message("osac.public.v1.ClusterStatus")(**_public_cluster_status(x))


def public_cluster_status_from_message(m: Any) -> osac.ClusterStatus:
    return osac.ClusterStatus(
        state=_CLUSTER_STATE[m.state],
        conditions=tuple([public_cluster_condition_from_message(v) for v in c])
        if (c := m.conditions)
        else (),
        api_url=m.api_url,
        console_url=m.console_url,
        node_sets={k: public_cluster_node_set_from_message(c[k]) for k in c}
        if (c := m.node_sets)
        else {},
        api_endpoint=m.api_endpoint,
        ingress_endpoint=m.ingress_endpoint,
        state_transition_time=moment(m.state_transition_time)
        if m.HasField("state_transition_time")
        else None,
        ready_nodes={k: c[k] for k in c} if (c := m.ready_nodes) else {},
        version=m.version,
        rest=_CLUSTER_REST[m.rest],
        restored=m.restored,
    )


def _public_cluster(x: osac.Cluster) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if (v := x.metadata) is not osac.NO_METADATA:
        d["metadata"] = _public_metadata(v)
    if (v := x.spec) is not osac.NO_CLUSTER_SPEC:
        d["spec"] = _public_cluster_spec(v)
    if (v := x.status) is not osac.NO_CLUSTER_STATUS:
        d["status"] = _public_cluster_status(v)
    return d


def public_cluster_to_message(x: osac.Cluster) -> Message:
    return message("osac.public.v1.Cluster")(**_public_cluster(x))


def public_cluster_from_message(m: Any) -> osac.Cluster:
    return osac.Cluster(
        id=m.id,
        metadata=public_metadata_from_message(m.metadata)
        if m.HasField("metadata")
        else osac.NO_METADATA,
        spec=public_cluster_spec_from_message(m.spec)
        if m.HasField("spec")
        else osac.NO_CLUSTER_SPEC,
        status=public_cluster_status_from_message(m.status)
        if m.HasField("status")
        else osac.NO_CLUSTER_STATUS,
    )


def _public_event(x: osac.Event) -> dict[str, Any]:
    v: Any
    d: dict[str, Any] = {}
    if v := x.id:
        d["id"] = v
    if v := x.type:
        d["type"] = int(v)
    if (v := x.cluster) is not None:
        d["cluster"] = _public_cluster(v)
    if (v := x.cluster_template) is not None:
        d["cluster_template"] = _public_cluster_template(v)
    if (v := x.host_type) is not None:
        d["host_type"] = _public_host_type(v)
    if (v := x.project) is not None:
        d["project"] = _public_project(v)
    if (v := x.tenant) is not None:
        d["tenant"] = _public_tenant(v)
    if (v := x.cluster_version) is not None:
        d["cluster_version"] = _public_cluster_version(v)
    if (v := x.at) is not None:
        d["at"] = timestamp_fields(v)
    if v := x.reason:
        d["reason"] = v
    if v := x.message:
        d["message"] = v
    if v := x.bookmark:
        d["bookmark"] = v
    return d


def public_event_to_message(x: osac.Event) -> Message:
    return message("osac.public.v1.Event")(**_public_event(x))


def public_event_from_message(m: Any) -> osac.Event:
    return osac.Event(
        id=m.id,
        type=_EVENT_TYPE[m.type],
        cluster=public_cluster_from_message(m.cluster) if m.HasField("cluster") else None,
        cluster_template=public_cluster_template_from_message(m.cluster_template)
        if m.HasField("cluster_template")
        else None,
        host_type=public_host_type_from_message(m.host_type) if m.HasField("host_type") else None,
        project=public_project_from_message(m.project) if m.HasField("project") else None,
        tenant=public_tenant_from_message(m.tenant) if m.HasField("tenant") else None,
        cluster_version=public_cluster_version_from_message(m.cluster_version)
        if m.HasField("cluster_version")
        else None,
        at=moment(m.at) if m.HasField("at") else None,
        reason=m.reason,
        message=m.message,
        bookmark=m.bookmark,
    )


TO_FIELDS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "osac.private.v1.AuthnCapabilities": _private_authn_capabilities,
    "osac.private.v1.Metadata": _private_metadata,
    "osac.private.v1.TenantSpec": _private_tenant_spec,
    "osac.private.v1.BreakGlassCredentials": _private_break_glass_credentials,
    "osac.private.v1.TenantCondition": _private_tenant_condition,
    "osac.private.v1.TenantStatus": _private_tenant_status,
    "osac.private.v1.Tenant": _private_tenant,
    "osac.private.v1.ProjectSpec": _private_project_spec,
    "osac.private.v1.ProjectCondition": _private_project_condition,
    "osac.private.v1.ProjectStatus": _private_project_status,
    "osac.private.v1.Project": _private_project,
    "osac.private.v1.NetworkInterface": _private_network_interface,
    "osac.private.v1.HostType": _private_host_type,
    "osac.private.v1.ClusterVersionDeprecation": _private_cluster_version_deprecation,
    "osac.private.v1.ClusterVersionSpec": _private_cluster_version_spec,
    "osac.private.v1.ClusterVersionStatus": _private_cluster_version_status,
    "osac.private.v1.ClusterVersion": _private_cluster_version,
    "osac.private.v1.ClusterTemplateParameterDefinition": _private_cluster_template_parameter_definition,
    "osac.private.v1.HostTypeReference": _private_host_type_reference,
    "osac.private.v1.ClusterTemplateNodeSet": _private_cluster_template_node_set,
    "osac.private.v1.ClusterNetwork": _private_cluster_network,
    "osac.private.v1.ClusterVersionReference": _private_cluster_version_reference,
    "osac.private.v1.SecretLocalReference": _private_secret_local_reference,
    "osac.private.v1.ClusterTemplateSpecDefaults": _private_cluster_template_spec_defaults,
    "osac.private.v1.ClusterTemplate": _private_cluster_template,
    "osac.private.v1.HubSpec": _private_hub_spec,
    "osac.private.v1.HubCondition": _private_hub_condition,
    "osac.private.v1.HubStatus": _private_hub_status,
    "osac.private.v1.Hub": _private_hub,
    "osac.private.v1.ClusterTemplateReference": _private_cluster_template_reference,
    "osac.private.v1.ClusterNodeSet": _private_cluster_node_set,
    "osac.private.v1.ClusterCatalogItemReference": _private_cluster_catalog_item_reference,
    "osac.private.v1.SubnetLocalReference": _private_subnet_local_reference,
    "osac.private.v1.SecurityGroupLocalReference": _private_security_group_local_reference,
    "osac.private.v1.ClusterNetworkAttachment": _private_cluster_network_attachment,
    "osac.private.v1.ClusterRestore": _private_cluster_restore,
    "osac.private.v1.ClusterSpec": _private_cluster_spec,
    "osac.private.v1.ClusterCondition": _private_cluster_condition,
    "osac.private.v1.PlacementCandidate": _private_placement_candidate,
    "osac.private.v1.Placement": _private_placement,
    "osac.private.v1.ClusterStatus": _private_cluster_status,
    "osac.private.v1.Cluster": _private_cluster,
    "osac.private.v1.Event": _private_event,
    "boatyard.v1.AccessIssueRequest": _boatyard_access_issue_request,
    "boatyard.v1.AccessIssueResponse": _boatyard_access_issue_response,
    "boatyard.v1.BackupSpec": _boatyard_backup_spec,
    "boatyard.v1.BackupStatus": _boatyard_backup_status,
    "boatyard.v1.Backup": _boatyard_backup,
    "boatyard.v1.BackupsListRequest": _boatyard_backups_list_request,
    "boatyard.v1.BackupsListResponse": _boatyard_backups_list_response,
    "boatyard.v1.BackupsGetRequest": _boatyard_backups_get_request,
    "boatyard.v1.BackupsGetResponse": _boatyard_backups_get_response,
    "boatyard.v1.BackupsCreateRequest": _boatyard_backups_create_request,
    "boatyard.v1.BackupsCreateResponse": _boatyard_backups_create_response,
    "boatyard.v1.BackupsDeleteRequest": _boatyard_backups_delete_request,
    "boatyard.v1.BackupsDeleteResponse": _boatyard_backups_delete_response,
    "boatyard.v1.OrderNodeSet": _boatyard_order_node_set,
    "boatyard.v1.OrderRestore": _boatyard_order_restore,
    "boatyard.v1.OrderSpec": _boatyard_order_spec,
    "boatyard.v1.OrderCondition": _boatyard_order_condition,
    "boatyard.v1.Step": _boatyard_step,
    "boatyard.v1.Item": _boatyard_item,
    "boatyard.v1.ReceiptLine": _boatyard_receipt_line,
    "boatyard.v1.Receipt": _boatyard_receipt,
    "boatyard.v1.Credentials": _boatyard_credentials,
    "boatyard.v1.OrderStatus": _boatyard_order_status,
    "boatyard.v1.Order": _boatyard_order,
    "boatyard.v1.ClusterOrderBareMetal": _boatyard_cluster_order_bare_metal,
    "boatyard.v1.ClusterOrderNodeRequest": _boatyard_cluster_order_node_request,
    "boatyard.v1.ClusterOrderNetwork": _boatyard_cluster_order_network,
    "boatyard.v1.ClusterOrderNetworkAttachment": _boatyard_cluster_order_network_attachment,
    "boatyard.v1.ClusterOrderSecretReference": _boatyard_cluster_order_secret_reference,
    "boatyard.v1.ClusterOrderExtension": _boatyard_cluster_order_extension,
    "boatyard.v1.ClusterOrderSpec": _boatyard_cluster_order_spec,
    "boatyard.v1.ClusterOrderCondition": _boatyard_cluster_order_condition,
    "boatyard.v1.ClusterOrderReference": _boatyard_cluster_order_reference,
    "boatyard.v1.ClusterOrderAgent": _boatyard_cluster_order_agent,
    "boatyard.v1.ClusterOrderNodeSet": _boatyard_cluster_order_node_set,
    "boatyard.v1.ClusterOrderCredentialsReference": _boatyard_cluster_order_credentials_reference,
    "boatyard.v1.ClusterOrderStatus": _boatyard_cluster_order_status,
    "boatyard.v1.HubClaimSpec": _boatyard_hub_claim_spec,
    "boatyard.v1.HubLeftoverSpec": _boatyard_hub_leftover_spec,
    "boatyard.v1.HubsCheckRequest": _boatyard_hubs_check_request,
    "boatyard.v1.HubFinding": _boatyard_hub_finding,
    "boatyard.v1.HubReport": _boatyard_hub_report,
    "boatyard.v1.HubsCheckResponse": _boatyard_hubs_check_response,
    "boatyard.v1.HubsPrepareRequest": _boatyard_hubs_prepare_request,
    "boatyard.v1.HubsPrepareResponse": _boatyard_hubs_prepare_response,
    "boatyard.v1.LeftoverSpec": _boatyard_leftover_spec,
    "boatyard.v1.LeftoverStatus": _boatyard_leftover_status,
    "boatyard.v1.Leftover": _boatyard_leftover,
    "boatyard.v1.LeftoversListRequest": _boatyard_leftovers_list_request,
    "boatyard.v1.LeftoversListResponse": _boatyard_leftovers_list_response,
    "boatyard.v1.LeftoversGetRequest": _boatyard_leftovers_get_request,
    "boatyard.v1.LeftoversGetResponse": _boatyard_leftovers_get_response,
    "boatyard.v1.OrdersListRequest": _boatyard_orders_list_request,
    "boatyard.v1.OrdersListResponse": _boatyard_orders_list_response,
    "boatyard.v1.OrdersGetRequest": _boatyard_orders_get_request,
    "boatyard.v1.OrdersGetResponse": _boatyard_orders_get_response,
    "boatyard.v1.OrdersExplainRequest": _boatyard_orders_explain_request,
    "boatyard.v1.HubReason": _boatyard_hub_reason,
    "boatyard.v1.Explanation": _boatyard_explanation,
    "boatyard.v1.OrdersExplainResponse": _boatyard_orders_explain_response,
    "boatyard.v1.OrdersFollowRequest": _boatyard_orders_follow_request,
    "boatyard.v1.OrdersFollowResponse": _boatyard_orders_follow_response,
    "boatyard.v1.OrdersRetryRequest": _boatyard_orders_retry_request,
    "boatyard.v1.OrdersRetryResponse": _boatyard_orders_retry_response,
    "boatyard.v1.OrdersGetReceiptRequest": _boatyard_orders_get_receipt_request,
    "boatyard.v1.OrdersGetReceiptResponse": _boatyard_orders_get_receipt_response,
    "boatyard.v1.OrdersHistoryRequest": _boatyard_orders_history_request,
    "boatyard.v1.HistoryEntry": _boatyard_history_entry,
    "boatyard.v1.OrdersHistoryResponse": _boatyard_orders_history_response,
    "boatyard.v1.RoleRunsAskRequest": _boatyard_role_runs_ask_request,
    "boatyard.v1.RoleRunsAskResponse": _boatyard_role_runs_ask_response,
    "boatyard.v1.RoleRunsGetRequest": _boatyard_role_runs_get_request,
    "boatyard.v1.RoleRunStep": _boatyard_role_run_step,
    "boatyard.v1.RoleRunNode": _boatyard_role_run_node,
    "boatyard.v1.RoleRun": _boatyard_role_run,
    "boatyard.v1.RoleRunsGetResponse": _boatyard_role_runs_get_response,
    "boatyard.v1.RunLogsReadRequest": _boatyard_run_logs_read_request,
    "boatyard.v1.LogLine": _boatyard_log_line,
    "boatyard.v1.RunLogsReadResponse": _boatyard_run_logs_read_response,
    "boatyard.v1.RunLogsWatchRequest": _boatyard_run_logs_watch_request,
    "boatyard.v1.RunLogsWatchResponse": _boatyard_run_logs_watch_response,
    "boatyard.v1.TemplateMistake": _boatyard_template_mistake,
    "boatyard.v1.TemplateSourceStatus": _boatyard_template_source_status,
    "boatyard.v1.TemplateSource": _boatyard_template_source,
    "boatyard.v1.TemplateSourcesListRequest": _boatyard_template_sources_list_request,
    "boatyard.v1.TemplateSourcesListResponse": _boatyard_template_sources_list_response,
    "boatyard.v1.TemplateSourcesGetRequest": _boatyard_template_sources_get_request,
    "boatyard.v1.TemplateSourcesGetResponse": _boatyard_template_sources_get_response,
    "boatyard.v1.TemplatesGetSchemaRequest": _boatyard_templates_get_schema_request,
    "boatyard.v1.RoleFile": _boatyard_role_file,
    "boatyard.v1.TemplatesPublishRequest": _boatyard_templates_publish_request,
    "boatyard.v1.TemplatesPublishResponse": _boatyard_templates_publish_response,
    "osac.public.v1.AuthnCapabilities": _public_authn_capabilities,
    "osac.public.v1.Metadata": _public_metadata,
    "osac.public.v1.TenantSpec": _public_tenant_spec,
    "osac.public.v1.BreakGlassCredentials": _public_break_glass_credentials,
    "osac.public.v1.Tenant": _public_tenant,
    "osac.public.v1.ProjectSpec": _public_project_spec,
    "osac.public.v1.ProjectStatus": _public_project_status,
    "osac.public.v1.Project": _public_project,
    "osac.public.v1.NetworkInterface": _public_network_interface,
    "osac.public.v1.HostType": _public_host_type,
    "osac.public.v1.ClusterVersionDeprecation": _public_cluster_version_deprecation,
    "osac.public.v1.ClusterVersionSpec": _public_cluster_version_spec,
    "osac.public.v1.ClusterVersionStatus": _public_cluster_version_status,
    "osac.public.v1.ClusterVersion": _public_cluster_version,
    "osac.public.v1.ClusterTemplateParameterDefinition": _public_cluster_template_parameter_definition,
    "osac.public.v1.HostTypeReference": _public_host_type_reference,
    "osac.public.v1.ClusterTemplateNodeSet": _public_cluster_template_node_set,
    "osac.public.v1.ClusterNetwork": _public_cluster_network,
    "osac.public.v1.ClusterVersionReference": _public_cluster_version_reference,
    "osac.public.v1.SecretLocalReference": _public_secret_local_reference,
    "osac.public.v1.ClusterTemplateSpecDefaults": _public_cluster_template_spec_defaults,
    "osac.public.v1.ClusterTemplate": _public_cluster_template,
    "osac.public.v1.ClusterTemplateReference": _public_cluster_template_reference,
    "osac.public.v1.ClusterNodeSet": _public_cluster_node_set,
    "osac.public.v1.ClusterCatalogItemReference": _public_cluster_catalog_item_reference,
    "osac.public.v1.SubnetLocalReference": _public_subnet_local_reference,
    "osac.public.v1.SecurityGroupLocalReference": _public_security_group_local_reference,
    "osac.public.v1.ClusterNetworkAttachment": _public_cluster_network_attachment,
    "osac.public.v1.ClusterRestore": _public_cluster_restore,
    "osac.public.v1.ClusterSpec": _public_cluster_spec,
    "osac.public.v1.ClusterCondition": _public_cluster_condition,
    "osac.public.v1.ClusterStatus": _public_cluster_status,
    "osac.public.v1.Cluster": _public_cluster,
    "osac.public.v1.Event": _public_event,
}

TO_MESSAGE: Mapping[str, Callable[[Any], Message]] = {
    "osac.private.v1.AuthnCapabilities": private_authn_capabilities_to_message,
    "osac.private.v1.Metadata": private_metadata_to_message,
    "osac.private.v1.TenantSpec": private_tenant_spec_to_message,
    "osac.private.v1.BreakGlassCredentials": private_break_glass_credentials_to_message,
    "osac.private.v1.TenantCondition": private_tenant_condition_to_message,
    "osac.private.v1.TenantStatus": private_tenant_status_to_message,
    "osac.private.v1.Tenant": private_tenant_to_message,
    "osac.private.v1.ProjectSpec": private_project_spec_to_message,
    "osac.private.v1.ProjectCondition": private_project_condition_to_message,
    "osac.private.v1.ProjectStatus": private_project_status_to_message,
    "osac.private.v1.Project": private_project_to_message,
    "osac.private.v1.NetworkInterface": private_network_interface_to_message,
    "osac.private.v1.HostType": private_host_type_to_message,
    "osac.private.v1.ClusterVersionDeprecation": private_cluster_version_deprecation_to_message,
    "osac.private.v1.ClusterVersionSpec": private_cluster_version_spec_to_message,
    "osac.private.v1.ClusterVersionStatus": private_cluster_version_status_to_message,
    "osac.private.v1.ClusterVersion": private_cluster_version_to_message,
    "osac.private.v1.ClusterTemplateParameterDefinition": private_cluster_template_parameter_definition_to_message,
    "osac.private.v1.HostTypeReference": private_host_type_reference_to_message,
    "osac.private.v1.ClusterTemplateNodeSet": private_cluster_template_node_set_to_message,
    "osac.private.v1.ClusterNetwork": private_cluster_network_to_message,
    "osac.private.v1.ClusterVersionReference": private_cluster_version_reference_to_message,
    "osac.private.v1.SecretLocalReference": private_secret_local_reference_to_message,
    "osac.private.v1.ClusterTemplateSpecDefaults": private_cluster_template_spec_defaults_to_message,
    "osac.private.v1.ClusterTemplate": private_cluster_template_to_message,
    "osac.private.v1.HubSpec": private_hub_spec_to_message,
    "osac.private.v1.HubCondition": private_hub_condition_to_message,
    "osac.private.v1.HubStatus": private_hub_status_to_message,
    "osac.private.v1.Hub": private_hub_to_message,
    "osac.private.v1.ClusterTemplateReference": private_cluster_template_reference_to_message,
    "osac.private.v1.ClusterNodeSet": private_cluster_node_set_to_message,
    "osac.private.v1.ClusterCatalogItemReference": private_cluster_catalog_item_reference_to_message,
    "osac.private.v1.SubnetLocalReference": private_subnet_local_reference_to_message,
    "osac.private.v1.SecurityGroupLocalReference": private_security_group_local_reference_to_message,
    "osac.private.v1.ClusterNetworkAttachment": private_cluster_network_attachment_to_message,
    "osac.private.v1.ClusterRestore": private_cluster_restore_to_message,
    "osac.private.v1.ClusterSpec": private_cluster_spec_to_message,
    "osac.private.v1.ClusterCondition": private_cluster_condition_to_message,
    "osac.private.v1.PlacementCandidate": private_placement_candidate_to_message,
    "osac.private.v1.Placement": private_placement_to_message,
    "osac.private.v1.ClusterStatus": private_cluster_status_to_message,
    "osac.private.v1.Cluster": private_cluster_to_message,
    "osac.private.v1.Event": private_event_to_message,
    "boatyard.v1.AccessIssueRequest": boatyard_access_issue_request_to_message,
    "boatyard.v1.AccessIssueResponse": boatyard_access_issue_response_to_message,
    "boatyard.v1.BackupSpec": boatyard_backup_spec_to_message,
    "boatyard.v1.BackupStatus": boatyard_backup_status_to_message,
    "boatyard.v1.Backup": boatyard_backup_to_message,
    "boatyard.v1.BackupsListRequest": boatyard_backups_list_request_to_message,
    "boatyard.v1.BackupsListResponse": boatyard_backups_list_response_to_message,
    "boatyard.v1.BackupsGetRequest": boatyard_backups_get_request_to_message,
    "boatyard.v1.BackupsGetResponse": boatyard_backups_get_response_to_message,
    "boatyard.v1.BackupsCreateRequest": boatyard_backups_create_request_to_message,
    "boatyard.v1.BackupsCreateResponse": boatyard_backups_create_response_to_message,
    "boatyard.v1.BackupsDeleteRequest": boatyard_backups_delete_request_to_message,
    "boatyard.v1.BackupsDeleteResponse": boatyard_backups_delete_response_to_message,
    "boatyard.v1.OrderNodeSet": boatyard_order_node_set_to_message,
    "boatyard.v1.OrderRestore": boatyard_order_restore_to_message,
    "boatyard.v1.OrderSpec": boatyard_order_spec_to_message,
    "boatyard.v1.OrderCondition": boatyard_order_condition_to_message,
    "boatyard.v1.Step": boatyard_step_to_message,
    "boatyard.v1.Item": boatyard_item_to_message,
    "boatyard.v1.ReceiptLine": boatyard_receipt_line_to_message,
    "boatyard.v1.Receipt": boatyard_receipt_to_message,
    "boatyard.v1.Credentials": boatyard_credentials_to_message,
    "boatyard.v1.OrderStatus": boatyard_order_status_to_message,
    "boatyard.v1.Order": boatyard_order_to_message,
    "boatyard.v1.ClusterOrderBareMetal": boatyard_cluster_order_bare_metal_to_message,
    "boatyard.v1.ClusterOrderNodeRequest": boatyard_cluster_order_node_request_to_message,
    "boatyard.v1.ClusterOrderNetwork": boatyard_cluster_order_network_to_message,
    "boatyard.v1.ClusterOrderNetworkAttachment": boatyard_cluster_order_network_attachment_to_message,
    "boatyard.v1.ClusterOrderSecretReference": boatyard_cluster_order_secret_reference_to_message,
    "boatyard.v1.ClusterOrderExtension": boatyard_cluster_order_extension_to_message,
    "boatyard.v1.ClusterOrderSpec": boatyard_cluster_order_spec_to_message,
    "boatyard.v1.ClusterOrderCondition": boatyard_cluster_order_condition_to_message,
    "boatyard.v1.ClusterOrderReference": boatyard_cluster_order_reference_to_message,
    "boatyard.v1.ClusterOrderAgent": boatyard_cluster_order_agent_to_message,
    "boatyard.v1.ClusterOrderNodeSet": boatyard_cluster_order_node_set_to_message,
    "boatyard.v1.ClusterOrderCredentialsReference": boatyard_cluster_order_credentials_reference_to_message,
    "boatyard.v1.ClusterOrderStatus": boatyard_cluster_order_status_to_message,
    "boatyard.v1.HubClaimSpec": boatyard_hub_claim_spec_to_message,
    "boatyard.v1.HubLeftoverSpec": boatyard_hub_leftover_spec_to_message,
    "boatyard.v1.HubsCheckRequest": boatyard_hubs_check_request_to_message,
    "boatyard.v1.HubFinding": boatyard_hub_finding_to_message,
    "boatyard.v1.HubReport": boatyard_hub_report_to_message,
    "boatyard.v1.HubsCheckResponse": boatyard_hubs_check_response_to_message,
    "boatyard.v1.HubsPrepareRequest": boatyard_hubs_prepare_request_to_message,
    "boatyard.v1.HubsPrepareResponse": boatyard_hubs_prepare_response_to_message,
    "boatyard.v1.LeftoverSpec": boatyard_leftover_spec_to_message,
    "boatyard.v1.LeftoverStatus": boatyard_leftover_status_to_message,
    "boatyard.v1.Leftover": boatyard_leftover_to_message,
    "boatyard.v1.LeftoversListRequest": boatyard_leftovers_list_request_to_message,
    "boatyard.v1.LeftoversListResponse": boatyard_leftovers_list_response_to_message,
    "boatyard.v1.LeftoversGetRequest": boatyard_leftovers_get_request_to_message,
    "boatyard.v1.LeftoversGetResponse": boatyard_leftovers_get_response_to_message,
    "boatyard.v1.OrdersListRequest": boatyard_orders_list_request_to_message,
    "boatyard.v1.OrdersListResponse": boatyard_orders_list_response_to_message,
    "boatyard.v1.OrdersGetRequest": boatyard_orders_get_request_to_message,
    "boatyard.v1.OrdersGetResponse": boatyard_orders_get_response_to_message,
    "boatyard.v1.OrdersExplainRequest": boatyard_orders_explain_request_to_message,
    "boatyard.v1.HubReason": boatyard_hub_reason_to_message,
    "boatyard.v1.Explanation": boatyard_explanation_to_message,
    "boatyard.v1.OrdersExplainResponse": boatyard_orders_explain_response_to_message,
    "boatyard.v1.OrdersFollowRequest": boatyard_orders_follow_request_to_message,
    "boatyard.v1.OrdersFollowResponse": boatyard_orders_follow_response_to_message,
    "boatyard.v1.OrdersRetryRequest": boatyard_orders_retry_request_to_message,
    "boatyard.v1.OrdersRetryResponse": boatyard_orders_retry_response_to_message,
    "boatyard.v1.OrdersGetReceiptRequest": boatyard_orders_get_receipt_request_to_message,
    "boatyard.v1.OrdersGetReceiptResponse": boatyard_orders_get_receipt_response_to_message,
    "boatyard.v1.OrdersHistoryRequest": boatyard_orders_history_request_to_message,
    "boatyard.v1.HistoryEntry": boatyard_history_entry_to_message,
    "boatyard.v1.OrdersHistoryResponse": boatyard_orders_history_response_to_message,
    "boatyard.v1.RoleRunsAskRequest": boatyard_role_runs_ask_request_to_message,
    "boatyard.v1.RoleRunsAskResponse": boatyard_role_runs_ask_response_to_message,
    "boatyard.v1.RoleRunsGetRequest": boatyard_role_runs_get_request_to_message,
    "boatyard.v1.RoleRunStep": boatyard_role_run_step_to_message,
    "boatyard.v1.RoleRunNode": boatyard_role_run_node_to_message,
    "boatyard.v1.RoleRun": boatyard_role_run_to_message,
    "boatyard.v1.RoleRunsGetResponse": boatyard_role_runs_get_response_to_message,
    "boatyard.v1.RunLogsReadRequest": boatyard_run_logs_read_request_to_message,
    "boatyard.v1.LogLine": boatyard_log_line_to_message,
    "boatyard.v1.RunLogsReadResponse": boatyard_run_logs_read_response_to_message,
    "boatyard.v1.RunLogsWatchRequest": boatyard_run_logs_watch_request_to_message,
    "boatyard.v1.RunLogsWatchResponse": boatyard_run_logs_watch_response_to_message,
    "boatyard.v1.TemplateMistake": boatyard_template_mistake_to_message,
    "boatyard.v1.TemplateSourceStatus": boatyard_template_source_status_to_message,
    "boatyard.v1.TemplateSource": boatyard_template_source_to_message,
    "boatyard.v1.TemplateSourcesListRequest": boatyard_template_sources_list_request_to_message,
    "boatyard.v1.TemplateSourcesListResponse": boatyard_template_sources_list_response_to_message,
    "boatyard.v1.TemplateSourcesGetRequest": boatyard_template_sources_get_request_to_message,
    "boatyard.v1.TemplateSourcesGetResponse": boatyard_template_sources_get_response_to_message,
    "boatyard.v1.TemplatesGetSchemaRequest": boatyard_templates_get_schema_request_to_message,
    "boatyard.v1.RoleFile": boatyard_role_file_to_message,
    "boatyard.v1.TemplatesPublishRequest": boatyard_templates_publish_request_to_message,
    "boatyard.v1.TemplatesPublishResponse": boatyard_templates_publish_response_to_message,
    "osac.public.v1.AuthnCapabilities": public_authn_capabilities_to_message,
    "osac.public.v1.Metadata": public_metadata_to_message,
    "osac.public.v1.TenantSpec": public_tenant_spec_to_message,
    "osac.public.v1.BreakGlassCredentials": public_break_glass_credentials_to_message,
    "osac.public.v1.Tenant": public_tenant_to_message,
    "osac.public.v1.ProjectSpec": public_project_spec_to_message,
    "osac.public.v1.ProjectStatus": public_project_status_to_message,
    "osac.public.v1.Project": public_project_to_message,
    "osac.public.v1.NetworkInterface": public_network_interface_to_message,
    "osac.public.v1.HostType": public_host_type_to_message,
    "osac.public.v1.ClusterVersionDeprecation": public_cluster_version_deprecation_to_message,
    "osac.public.v1.ClusterVersionSpec": public_cluster_version_spec_to_message,
    "osac.public.v1.ClusterVersionStatus": public_cluster_version_status_to_message,
    "osac.public.v1.ClusterVersion": public_cluster_version_to_message,
    "osac.public.v1.ClusterTemplateParameterDefinition": public_cluster_template_parameter_definition_to_message,
    "osac.public.v1.HostTypeReference": public_host_type_reference_to_message,
    "osac.public.v1.ClusterTemplateNodeSet": public_cluster_template_node_set_to_message,
    "osac.public.v1.ClusterNetwork": public_cluster_network_to_message,
    "osac.public.v1.ClusterVersionReference": public_cluster_version_reference_to_message,
    "osac.public.v1.SecretLocalReference": public_secret_local_reference_to_message,
    "osac.public.v1.ClusterTemplateSpecDefaults": public_cluster_template_spec_defaults_to_message,
    "osac.public.v1.ClusterTemplate": public_cluster_template_to_message,
    "osac.public.v1.ClusterTemplateReference": public_cluster_template_reference_to_message,
    "osac.public.v1.ClusterNodeSet": public_cluster_node_set_to_message,
    "osac.public.v1.ClusterCatalogItemReference": public_cluster_catalog_item_reference_to_message,
    "osac.public.v1.SubnetLocalReference": public_subnet_local_reference_to_message,
    "osac.public.v1.SecurityGroupLocalReference": public_security_group_local_reference_to_message,
    "osac.public.v1.ClusterNetworkAttachment": public_cluster_network_attachment_to_message,
    "osac.public.v1.ClusterRestore": public_cluster_restore_to_message,
    "osac.public.v1.ClusterSpec": public_cluster_spec_to_message,
    "osac.public.v1.ClusterCondition": public_cluster_condition_to_message,
    "osac.public.v1.ClusterStatus": public_cluster_status_to_message,
    "osac.public.v1.Cluster": public_cluster_to_message,
    "osac.public.v1.Event": public_event_to_message,
}

FROM_MESSAGE: Mapping[str, Callable[[Any], Any]] = {
    "osac.private.v1.AuthnCapabilities": private_authn_capabilities_from_message,
    "osac.private.v1.Metadata": private_metadata_from_message,
    "osac.private.v1.TenantSpec": private_tenant_spec_from_message,
    "osac.private.v1.BreakGlassCredentials": private_break_glass_credentials_from_message,
    "osac.private.v1.TenantCondition": private_tenant_condition_from_message,
    "osac.private.v1.TenantStatus": private_tenant_status_from_message,
    "osac.private.v1.Tenant": private_tenant_from_message,
    "osac.private.v1.ProjectSpec": private_project_spec_from_message,
    "osac.private.v1.ProjectCondition": private_project_condition_from_message,
    "osac.private.v1.ProjectStatus": private_project_status_from_message,
    "osac.private.v1.Project": private_project_from_message,
    "osac.private.v1.NetworkInterface": private_network_interface_from_message,
    "osac.private.v1.HostType": private_host_type_from_message,
    "osac.private.v1.ClusterVersionDeprecation": private_cluster_version_deprecation_from_message,
    "osac.private.v1.ClusterVersionSpec": private_cluster_version_spec_from_message,
    "osac.private.v1.ClusterVersionStatus": private_cluster_version_status_from_message,
    "osac.private.v1.ClusterVersion": private_cluster_version_from_message,
    "osac.private.v1.ClusterTemplateParameterDefinition": private_cluster_template_parameter_definition_from_message,
    "osac.private.v1.HostTypeReference": private_host_type_reference_from_message,
    "osac.private.v1.ClusterTemplateNodeSet": private_cluster_template_node_set_from_message,
    "osac.private.v1.ClusterNetwork": private_cluster_network_from_message,
    "osac.private.v1.ClusterVersionReference": private_cluster_version_reference_from_message,
    "osac.private.v1.SecretLocalReference": private_secret_local_reference_from_message,
    "osac.private.v1.ClusterTemplateSpecDefaults": private_cluster_template_spec_defaults_from_message,
    "osac.private.v1.ClusterTemplate": private_cluster_template_from_message,
    "osac.private.v1.HubSpec": private_hub_spec_from_message,
    "osac.private.v1.HubCondition": private_hub_condition_from_message,
    "osac.private.v1.HubStatus": private_hub_status_from_message,
    "osac.private.v1.Hub": private_hub_from_message,
    "osac.private.v1.ClusterTemplateReference": private_cluster_template_reference_from_message,
    "osac.private.v1.ClusterNodeSet": private_cluster_node_set_from_message,
    "osac.private.v1.ClusterCatalogItemReference": private_cluster_catalog_item_reference_from_message,
    "osac.private.v1.SubnetLocalReference": private_subnet_local_reference_from_message,
    "osac.private.v1.SecurityGroupLocalReference": private_security_group_local_reference_from_message,
    "osac.private.v1.ClusterNetworkAttachment": private_cluster_network_attachment_from_message,
    "osac.private.v1.ClusterRestore": private_cluster_restore_from_message,
    "osac.private.v1.ClusterSpec": private_cluster_spec_from_message,
    "osac.private.v1.ClusterCondition": private_cluster_condition_from_message,
    "osac.private.v1.PlacementCandidate": private_placement_candidate_from_message,
    "osac.private.v1.Placement": private_placement_from_message,
    "osac.private.v1.ClusterStatus": private_cluster_status_from_message,
    "osac.private.v1.Cluster": private_cluster_from_message,
    "osac.private.v1.Event": private_event_from_message,
    "boatyard.v1.AccessIssueRequest": boatyard_access_issue_request_from_message,
    "boatyard.v1.AccessIssueResponse": boatyard_access_issue_response_from_message,
    "boatyard.v1.BackupSpec": boatyard_backup_spec_from_message,
    "boatyard.v1.BackupStatus": boatyard_backup_status_from_message,
    "boatyard.v1.Backup": boatyard_backup_from_message,
    "boatyard.v1.BackupsListRequest": boatyard_backups_list_request_from_message,
    "boatyard.v1.BackupsListResponse": boatyard_backups_list_response_from_message,
    "boatyard.v1.BackupsGetRequest": boatyard_backups_get_request_from_message,
    "boatyard.v1.BackupsGetResponse": boatyard_backups_get_response_from_message,
    "boatyard.v1.BackupsCreateRequest": boatyard_backups_create_request_from_message,
    "boatyard.v1.BackupsCreateResponse": boatyard_backups_create_response_from_message,
    "boatyard.v1.BackupsDeleteRequest": boatyard_backups_delete_request_from_message,
    "boatyard.v1.BackupsDeleteResponse": boatyard_backups_delete_response_from_message,
    "boatyard.v1.OrderNodeSet": boatyard_order_node_set_from_message,
    "boatyard.v1.OrderRestore": boatyard_order_restore_from_message,
    "boatyard.v1.OrderSpec": boatyard_order_spec_from_message,
    "boatyard.v1.OrderCondition": boatyard_order_condition_from_message,
    "boatyard.v1.Step": boatyard_step_from_message,
    "boatyard.v1.Item": boatyard_item_from_message,
    "boatyard.v1.ReceiptLine": boatyard_receipt_line_from_message,
    "boatyard.v1.Receipt": boatyard_receipt_from_message,
    "boatyard.v1.Credentials": boatyard_credentials_from_message,
    "boatyard.v1.OrderStatus": boatyard_order_status_from_message,
    "boatyard.v1.Order": boatyard_order_from_message,
    "boatyard.v1.ClusterOrderBareMetal": boatyard_cluster_order_bare_metal_from_message,
    "boatyard.v1.ClusterOrderNodeRequest": boatyard_cluster_order_node_request_from_message,
    "boatyard.v1.ClusterOrderNetwork": boatyard_cluster_order_network_from_message,
    "boatyard.v1.ClusterOrderNetworkAttachment": boatyard_cluster_order_network_attachment_from_message,
    "boatyard.v1.ClusterOrderSecretReference": boatyard_cluster_order_secret_reference_from_message,
    "boatyard.v1.ClusterOrderExtension": boatyard_cluster_order_extension_from_message,
    "boatyard.v1.ClusterOrderSpec": boatyard_cluster_order_spec_from_message,
    "boatyard.v1.ClusterOrderCondition": boatyard_cluster_order_condition_from_message,
    "boatyard.v1.ClusterOrderReference": boatyard_cluster_order_reference_from_message,
    "boatyard.v1.ClusterOrderAgent": boatyard_cluster_order_agent_from_message,
    "boatyard.v1.ClusterOrderNodeSet": boatyard_cluster_order_node_set_from_message,
    "boatyard.v1.ClusterOrderCredentialsReference": boatyard_cluster_order_credentials_reference_from_message,
    "boatyard.v1.ClusterOrderStatus": boatyard_cluster_order_status_from_message,
    "boatyard.v1.HubClaimSpec": boatyard_hub_claim_spec_from_message,
    "boatyard.v1.HubLeftoverSpec": boatyard_hub_leftover_spec_from_message,
    "boatyard.v1.HubsCheckRequest": boatyard_hubs_check_request_from_message,
    "boatyard.v1.HubFinding": boatyard_hub_finding_from_message,
    "boatyard.v1.HubReport": boatyard_hub_report_from_message,
    "boatyard.v1.HubsCheckResponse": boatyard_hubs_check_response_from_message,
    "boatyard.v1.HubsPrepareRequest": boatyard_hubs_prepare_request_from_message,
    "boatyard.v1.HubsPrepareResponse": boatyard_hubs_prepare_response_from_message,
    "boatyard.v1.LeftoverSpec": boatyard_leftover_spec_from_message,
    "boatyard.v1.LeftoverStatus": boatyard_leftover_status_from_message,
    "boatyard.v1.Leftover": boatyard_leftover_from_message,
    "boatyard.v1.LeftoversListRequest": boatyard_leftovers_list_request_from_message,
    "boatyard.v1.LeftoversListResponse": boatyard_leftovers_list_response_from_message,
    "boatyard.v1.LeftoversGetRequest": boatyard_leftovers_get_request_from_message,
    "boatyard.v1.LeftoversGetResponse": boatyard_leftovers_get_response_from_message,
    "boatyard.v1.OrdersListRequest": boatyard_orders_list_request_from_message,
    "boatyard.v1.OrdersListResponse": boatyard_orders_list_response_from_message,
    "boatyard.v1.OrdersGetRequest": boatyard_orders_get_request_from_message,
    "boatyard.v1.OrdersGetResponse": boatyard_orders_get_response_from_message,
    "boatyard.v1.OrdersExplainRequest": boatyard_orders_explain_request_from_message,
    "boatyard.v1.HubReason": boatyard_hub_reason_from_message,
    "boatyard.v1.Explanation": boatyard_explanation_from_message,
    "boatyard.v1.OrdersExplainResponse": boatyard_orders_explain_response_from_message,
    "boatyard.v1.OrdersFollowRequest": boatyard_orders_follow_request_from_message,
    "boatyard.v1.OrdersFollowResponse": boatyard_orders_follow_response_from_message,
    "boatyard.v1.OrdersRetryRequest": boatyard_orders_retry_request_from_message,
    "boatyard.v1.OrdersRetryResponse": boatyard_orders_retry_response_from_message,
    "boatyard.v1.OrdersGetReceiptRequest": boatyard_orders_get_receipt_request_from_message,
    "boatyard.v1.OrdersGetReceiptResponse": boatyard_orders_get_receipt_response_from_message,
    "boatyard.v1.OrdersHistoryRequest": boatyard_orders_history_request_from_message,
    "boatyard.v1.HistoryEntry": boatyard_history_entry_from_message,
    "boatyard.v1.OrdersHistoryResponse": boatyard_orders_history_response_from_message,
    "boatyard.v1.RoleRunsAskRequest": boatyard_role_runs_ask_request_from_message,
    "boatyard.v1.RoleRunsAskResponse": boatyard_role_runs_ask_response_from_message,
    "boatyard.v1.RoleRunsGetRequest": boatyard_role_runs_get_request_from_message,
    "boatyard.v1.RoleRunStep": boatyard_role_run_step_from_message,
    "boatyard.v1.RoleRunNode": boatyard_role_run_node_from_message,
    "boatyard.v1.RoleRun": boatyard_role_run_from_message,
    "boatyard.v1.RoleRunsGetResponse": boatyard_role_runs_get_response_from_message,
    "boatyard.v1.RunLogsReadRequest": boatyard_run_logs_read_request_from_message,
    "boatyard.v1.LogLine": boatyard_log_line_from_message,
    "boatyard.v1.RunLogsReadResponse": boatyard_run_logs_read_response_from_message,
    "boatyard.v1.RunLogsWatchRequest": boatyard_run_logs_watch_request_from_message,
    "boatyard.v1.RunLogsWatchResponse": boatyard_run_logs_watch_response_from_message,
    "boatyard.v1.TemplateMistake": boatyard_template_mistake_from_message,
    "boatyard.v1.TemplateSourceStatus": boatyard_template_source_status_from_message,
    "boatyard.v1.TemplateSource": boatyard_template_source_from_message,
    "boatyard.v1.TemplateSourcesListRequest": boatyard_template_sources_list_request_from_message,
    "boatyard.v1.TemplateSourcesListResponse": boatyard_template_sources_list_response_from_message,
    "boatyard.v1.TemplateSourcesGetRequest": boatyard_template_sources_get_request_from_message,
    "boatyard.v1.TemplateSourcesGetResponse": boatyard_template_sources_get_response_from_message,
    "boatyard.v1.TemplatesGetSchemaRequest": boatyard_templates_get_schema_request_from_message,
    "boatyard.v1.RoleFile": boatyard_role_file_from_message,
    "boatyard.v1.TemplatesPublishRequest": boatyard_templates_publish_request_from_message,
    "boatyard.v1.TemplatesPublishResponse": boatyard_templates_publish_response_from_message,
    "osac.public.v1.AuthnCapabilities": public_authn_capabilities_from_message,
    "osac.public.v1.Metadata": public_metadata_from_message,
    "osac.public.v1.TenantSpec": public_tenant_spec_from_message,
    "osac.public.v1.BreakGlassCredentials": public_break_glass_credentials_from_message,
    "osac.public.v1.Tenant": public_tenant_from_message,
    "osac.public.v1.ProjectSpec": public_project_spec_from_message,
    "osac.public.v1.ProjectStatus": public_project_status_from_message,
    "osac.public.v1.Project": public_project_from_message,
    "osac.public.v1.NetworkInterface": public_network_interface_from_message,
    "osac.public.v1.HostType": public_host_type_from_message,
    "osac.public.v1.ClusterVersionDeprecation": public_cluster_version_deprecation_from_message,
    "osac.public.v1.ClusterVersionSpec": public_cluster_version_spec_from_message,
    "osac.public.v1.ClusterVersionStatus": public_cluster_version_status_from_message,
    "osac.public.v1.ClusterVersion": public_cluster_version_from_message,
    "osac.public.v1.ClusterTemplateParameterDefinition": public_cluster_template_parameter_definition_from_message,
    "osac.public.v1.HostTypeReference": public_host_type_reference_from_message,
    "osac.public.v1.ClusterTemplateNodeSet": public_cluster_template_node_set_from_message,
    "osac.public.v1.ClusterNetwork": public_cluster_network_from_message,
    "osac.public.v1.ClusterVersionReference": public_cluster_version_reference_from_message,
    "osac.public.v1.SecretLocalReference": public_secret_local_reference_from_message,
    "osac.public.v1.ClusterTemplateSpecDefaults": public_cluster_template_spec_defaults_from_message,
    "osac.public.v1.ClusterTemplate": public_cluster_template_from_message,
    "osac.public.v1.ClusterTemplateReference": public_cluster_template_reference_from_message,
    "osac.public.v1.ClusterNodeSet": public_cluster_node_set_from_message,
    "osac.public.v1.ClusterCatalogItemReference": public_cluster_catalog_item_reference_from_message,
    "osac.public.v1.SubnetLocalReference": public_subnet_local_reference_from_message,
    "osac.public.v1.SecurityGroupLocalReference": public_security_group_local_reference_from_message,
    "osac.public.v1.ClusterNetworkAttachment": public_cluster_network_attachment_from_message,
    "osac.public.v1.ClusterRestore": public_cluster_restore_from_message,
    "osac.public.v1.ClusterSpec": public_cluster_spec_from_message,
    "osac.public.v1.ClusterCondition": public_cluster_condition_from_message,
    "osac.public.v1.ClusterStatus": public_cluster_status_from_message,
    "osac.public.v1.Cluster": public_cluster_from_message,
    "osac.public.v1.Event": public_event_from_message,
}

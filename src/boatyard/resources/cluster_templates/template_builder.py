"""Builds the cluster template of a role. Pure; called when a role is published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from boatyard.model.caller import SHARED
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import (
    ClusterNetwork,
    ClusterTemplate,
    ClusterTemplateNodeSet,
    ClusterTemplateSpecDefaults,
    ClusterVersion,
    ClusterVersionReference,
    HostType,
    HostTypeReference,
    Hub,
    Metadata,
)
from boatyard.resources.cluster_templates.rules import admit
from boatyard.resources.clusters.placement import PLATFORM_LABEL
from boatyard.resources.metadata import name_violations
from boatyard.roles.form import form_to_json
from boatyard.roles.mistakes import Mistake
from boatyard.roles.parameter_values import definitions
from boatyard.roles.role import TemplateRole
from boatyard.roles.template_metadata import ANY_PLATFORM

TEMPLATE_CREATOR = "templates"
LARGEST_FORM = 256 * 1024


def build_template(
    role: TemplateRole,
    old: ClusterTemplate | None,
    *,
    host_types: Sequence[HostType],
    versions: Sequence[ClusterVersion],
    hubs: Sequence[Hub],
    now: datetime,
    mistakes: list[Mistake],
) -> ClusterTemplate:
    """The template to publish; equal to `old` when nothing has changed.

    References to missing host types and versions are appended to `mistakes`.
    """

    def add_mistake(path: str, message: str, remedy: str = "") -> None:
        mistakes.append(Mistake(role.file, 0, path, message, remedy))

    declaration = role.metadata
    host_types_by_name = _index_host_types(host_types)

    def host(path: str, name: str) -> HostTypeReference:
        host_type = host_types_by_name.get(name)
        if host_type is None:
            names = ", ".join(sorted(host_types_by_name)) or "none"
            add_mistake(path, f"there is no host type {name[:80]!r}", f"there are: {names}")
            return HostTypeReference(id=name, name=name)  # never published, because of the mistake
        return HostTypeReference(id=host_type.id, name=host_type.metadata.name)

    template = replace(
        old or _new_template(role, now),
        title=declaration.title,
        description=declaration.description,
        parameters=definitions(role.form),
        node_sets={
            name: ClusterTemplateNodeSet(
                host_type=host(f"node_sets.{name}.host_type", node_set.host_type),
                size=node_set.size,
            )
            for name, node_set in declaration.node_sets.items()
        },
        # Keys and secrets are set by the operator and stay.
        spec_defaults=replace(
            old.spec_defaults if old is not None else ClusterTemplateSpecDefaults(),
            network=_network(declaration.pod_cidr, declaration.service_cidr),
            version=_version(declaration.versions.default, versions, add_mistake),
        ),
        hub_labels={
            **declaration.hub_labels,
            **_choose_platform_label(declaration.platforms, hubs),
        },
        platform_settings=declaration.platform_settings,
        digest=role.digest,
        form=form_to_json(role.form) if role.form.options else "",
        allowed_host_types=tuple(
            host(f"allowed_host_types[{index}]", name).id
            for index, name in enumerate(declaration.allowed_host_types)
        ),
        version_from=declaration.versions.at_least,
        version_below=declaration.versions.below,
        phases=role.phases,
        withdrawn=False,
    )
    if len(template.form) > LARGEST_FORM:
        add_mistake("", f"its form has {len(template.form)} characters", f"at most {LARGEST_FORM}")
    for violation in name_violations(template.metadata.name, path="name"):
        add_mistake(violation.path, violation.message, violation.remedy)
    try:
        template = admit(template, [])
    except Refused as error:
        for violation in error.violations:
            add_mistake(violation.path, violation.message, violation.remedy)
    if old is not None and template != old:
        metadata = replace(old.metadata, generation=old.metadata.generation + 1)
        return replace(template, metadata=metadata)
    return template


def _new_template(role: TemplateRole, now: datetime) -> ClusterTemplate:
    return ClusterTemplate(
        id=role.metadata.id,
        metadata=Metadata(
            name=role.metadata.name,
            tenant=SHARED,
            creator=TEMPLATE_CREATOR,
            creation_timestamp=now,
            generation=1,
        ),
    )


def _choose_platform_label(platforms: Sequence[str], hubs: Sequence[Hub]) -> Mapping[str, str]:
    """The label that a hub must have: the first platform of the list that some hub has, else the last one."""
    hub_platforms = {hub.spec.labels.get(PLATFORM_LABEL) for hub in hubs}
    chosen = next(
        (platform for platform in platforms if platform in hub_platforms),
        platforms[-1] if platforms else ANY_PLATFORM,
    )
    return {} if chosen == ANY_PLATFORM else {PLATFORM_LABEL: chosen}


def _index_host_types(host_types: Sequence[HostType]) -> Mapping[str, HostType]:
    """Host types by name and by id; when a name equals the id of another, the id wins."""
    return {host_type.metadata.name: host_type for host_type in host_types} | {
        host_type.id: host_type for host_type in host_types
    }


def _network(pod_cidr: str, service_cidr: str) -> ClusterNetwork | None:
    if not pod_cidr and not service_cidr:
        return None
    return ClusterNetwork(pod_cidr=pod_cidr or None, service_cidr=service_cidr or None)


def _version(
    version_name: str,
    versions: Sequence[ClusterVersion],
    add_mistake: Callable[[str, str, str], None],
) -> ClusterVersionReference:
    if not version_name:
        return ClusterVersionReference()
    for version in versions:
        if version_name in (version.spec.version, version.metadata.name, version.id):
            return ClusterVersionReference(id=version.id, name=version.metadata.name)
    numbers = ", ".join(sorted(version.spec.version for version in versions)) or "none"
    add_mistake(
        "versions.default", f"there is no version {version_name[:80]!r}", f"there are: {numbers}"
    )
    return ClusterVersionReference()

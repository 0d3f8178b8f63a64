"""Makes the catalogue's entry of a role. Pure; called when a role is offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from boatyard.model.caller import SHARED
from boatyard.model.errors import Refused, Violation
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
from boatyard.resources.clusters.placement import PLATFORM
from boatyard.resources.metadata import name_violations
from boatyard.roles.about import ANY
from boatyard.roles.form import to_text
from boatyard.roles.mistakes import Mistake
from boatyard.roles.role import Role
from boatyard.roles.values import definitions

CREATOR = "templates"
LARGEST_FORM = 256 * 1024


def make_template(
    role: Role,
    old: ClusterTemplate | None,
    *,
    host_types: Sequence[HostType],
    versions: Sequence[ClusterVersion],
    hubs: Sequence[Hub],
    now: datetime,
    mistakes: list[Mistake],
) -> ClusterTemplate:
    """The template as it is offered: the same as `old` when nothing has changed.

    What the catalogue does not have goes to `mistakes`.
    """

    def wrong(path: str, message: str, remedy: str = "") -> None:
        mistakes.append(Mistake(role.file, 0, path, message, remedy))

    about = role.about
    known = _by_name(host_types)

    def host(path: str, name: str) -> HostTypeReference:
        found = known.get(name)
        if found is None:
            there = ", ".join(sorted(known)) or "none"
            wrong(path, f"there is no host type {name[:80]!r}", f"there are: {there}")
            return HostTypeReference(id=name, name=name)  # told once; it is not offered
        return HostTypeReference(id=found.id, name=found.metadata.name)

    made = replace(
        old or _new(role, now),
        title=about.title,
        description=about.description,
        parameters=definitions(role.form),
        node_sets={
            name: ClusterTemplateNodeSet(
                host_type=host(f"node_sets.{name}.host_type", one.host_type), size=one.size
            )
            for name, one in about.node_sets.items()
        },
        # Keys and secrets are the operator's to set, and stay.
        spec_defaults=replace(
            old.spec_defaults if old is not None else ClusterTemplateSpecDefaults(),
            network=_network(about.pod_cidr, about.service_cidr),
            version=_version(about.versions.default, versions, wrong),
        ),
        hub_labels={**about.hub_labels, **_platform(about.platforms, hubs)},
        platform_settings=about.platform_settings,
        digest=role.digest,
        form=to_text(role.form) if role.form.options else "",
        allowed_host_types=tuple(
            host(f"allowed_host_types[{index}]", name).id
            for index, name in enumerate(about.allowed_host_types)
        ),
        version_from=about.versions.at_least,
        version_below=about.versions.below,
        phases=role.phases,
        withdrawn=False,
    )
    if len(made.form) > LARGEST_FORM:
        wrong("", f"its form has {len(made.form)} characters", f"at most {LARGEST_FORM}")
    for violation in name_violations(made.metadata.name, path="name"):
        wrong(violation.path, violation.message, violation.remedy)
    try:
        made = admit(made, [])
    except Refused as error:
        for violation in error.violations:
            wrong(violation.path, violation.message, violation.remedy)
    if old is not None and made != old:
        metadata = replace(old.metadata, generation=old.metadata.generation + 1)
        return replace(made, metadata=metadata)
    return made


def _new(role: Role, now: datetime) -> ClusterTemplate:
    return ClusterTemplate(
        id=role.about.id,
        metadata=Metadata(
            name=role.about.name,
            tenant=SHARED,
            creator=CREATOR,
            creation_timestamp=now,
            generation=1,
        ),
    )


def _platform(wanted: Sequence[str], hubs: Sequence[Hub]) -> Mapping[str, str]:
    """The label that a hub must have: the first platform of the list that some hub has, else the last."""
    there = {hub.spec.labels.get(PLATFORM) for hub in hubs}
    chosen = next((one for one in wanted if one in there), wanted[-1] if wanted else ANY)
    return {} if chosen == ANY else {PLATFORM: chosen}


def _by_name(host_types: Sequence[HostType]) -> Mapping[str, HostType]:
    """By name and by id; where one's name is another's id, the id counts."""
    return {one.metadata.name: one for one in host_types} | {one.id: one for one in host_types}


def _network(pod_cidr: str, service_cidr: str) -> ClusterNetwork | None:
    if not pod_cidr and not service_cidr:
        return None
    return ClusterNetwork(pod_cidr=pod_cidr or None, service_cidr=service_cidr or None)


def _version(
    wanted: str, versions: Sequence[ClusterVersion], wrong: Callable[[str, str, str], None]
) -> ClusterVersionReference:
    if not wanted:
        return ClusterVersionReference()
    for one in versions:
        if wanted in (one.spec.version, one.metadata.name, one.id):
            return ClusterVersionReference(id=one.id, name=one.metadata.name)
    there = ", ".join(sorted(one.spec.version for one in versions)) or "none"
    wrong("versions.default", f"there is no version {wanted[:80]!r}", f"there are: {there}")
    return ClusterVersionReference()


def as_violations(mistakes: Sequence[Mistake]) -> list[Violation]:
    """Mistakes of a role as those of a request."""
    found = []
    for one in mistakes:
        place = f"{one.file}:{one.line}" if one.line else one.file
        message = f"{one.path}: {one.message}" if one.path else one.message
        found.append(Violation(place, message, one.remedy))
    return found

"""Admission rules of clusters, for creation and change. Called by the API before a cluster is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from boatyard.model.caller import SHARED, Caller
from boatyard.model.errors import Precondition, Refused, Violation
from boatyard.model.generated.osac import (
    Cluster,
    ClusterNetwork,
    ClusterNodeSet,
    ClusterSpec,
    ClusterState,
    ClusterStatus,
    ClusterTemplate,
    ClusterVersion,
    ClusterVersionReference,
)
from boatyard.resources import cidrs
from boatyard.resources.admission_context import AdmissionContext, DocumentLookup, KindLookup
from boatyard.resources.cluster_templates import parameters, versions
from boatyard.resources.cluster_versions.rules import is_usable
from boatyard.resources.clusters import lifecycle
from boatyard.resources.kind_rules import KindRules
from boatyard.resources.metadata import quote_text
from boatyard.roles.parameter_values import encode_secrets

LARGEST_NODE_SET = 10_000
LONGEST_PULL_SECRET = 262_144
LONGEST_SSH_KEY = 16_384
MOST_HUB_LABELS = 64
_CATALOG_REMEDY = "name a template in spec.template"


class ClusterRules(KindRules[Cluster]):
    def list_wants(self, old: Cluster | None, new: Cluster) -> tuple[KindLookup, ...]:
        """Requests the catalogue's versions for a new cluster that names none, and for a change of version.

        A new cluster gets the template's or the default one; a refused change names the versions in between.
        """
        version = new.spec.version.id
        needs_versions = not version if old is None else version not in ("", old.spec.version.id)
        return (KindLookup(ClusterVersion),) if needs_versions else ()

    def list_lookups(
        self, old: Cluster | None, new: Cluster, caller: Caller
    ) -> tuple[DocumentLookup, ...]:
        return lifecycle.list_backup_lookups(old, new)

    def required_documents(self, doc: Cluster) -> set[tuple[str, str]]:
        """Documents that must exist when the cluster is stored, besides its references."""
        backup = doc.spec.restore.backup
        return {("Backup", backup)} if backup else set()

    def admit_create(self, new: Cluster, context: AdmissionContext) -> Cluster:
        """Admits a new cluster, completed from its template: node sets, parameters, version, network, keys."""
        spec = new.spec
        violations = list(_size_violations(spec)) + list(_unsupported_field_violations(spec))
        violations += lifecycle.new_cluster_rest_violations(spec)
        template = context.get(ClusterTemplate, spec.template.id)
        if template is None:
            violations.append(Violation("spec.template", "is required", _CATALOG_REMEDY))
            raise Refused("", *violations)
        violations += _template_violations(spec, template)
        parameter_violations: list[Violation] = []
        visible_parameters, secret_parameters = parameters.complete_values(
            spec.template_parameters, template, parameter_violations
        )
        violations += parameter_violations
        defaults = template.spec_defaults
        if not spec.version.id:
            spec = replace(spec, version=lifecycle.get_backup_version(spec, context, violations))
        spec = replace(
            spec,
            node_sets=_make_node_sets(spec.node_sets, template, violations),
            template_parameters=visible_parameters,
            secret_parameters=encode_secrets(secret_parameters),
            template_digest=template.digest,
            template_phases=template.phases,
            version=_choose_version(spec.version, template, context, violations),
            network=_complete_network(spec.network, defaults.network, violations),
            pull_secret=spec.pull_secret or defaults.pull_secret,
            ssh_public_key=spec.ssh_public_key or defaults.ssh_public_key,
            hub_labels=_merge_hub_labels(spec.hub_labels, template, violations),
        )
        spec = replace(spec, restore=lifecycle.admit_restore(None, spec, context, violations))
        if violations:
            raise Refused("", *violations)
        status = new.status if context.private else ClusterStatus()
        if not status.state:
            status = replace(
                status, state=ClusterState.PROGRESSING, state_transition_time=context.now
            )
        return replace(new, spec=spec, status=status)

    def admit_update(self, old: Cluster, new: Cluster, context: AdmissionContext) -> Cluster:
        """Admits a change of sizes, node sets, version, keys, rest and restore; template and network may not change."""
        violations = list(_condition_violations(new)) if context.private else []
        if new.spec == old.spec:
            if violations:
                raise Refused("", *violations)
            return new
        if old.metadata.deletion_timestamp is not None:
            raise Precondition(
                f"the cluster {old.metadata.name} is being deleted and cannot change"
            )
        spec = _keep_fixed_fields(old.spec, new.spec)
        lifecycle.check_rest_change(old, spec)
        violations += _size_violations(spec)
        violations += _unsupported_field_violations(spec)
        template = context.get(ClusterTemplate, old.spec.template.id)
        if template is not None and not old.status.hub:
            labels = _merge_hub_labels(spec.hub_labels, template, violations)
            spec = replace(spec, hub_labels=labels)
        violations += _fixed_violations(old, spec)
        violations += _update_set_violations(old.spec.node_sets, spec.node_sets, template)
        if spec.version != old.spec.version:
            version = context.get(ClusterVersion, spec.version.id)
            _check_version(version, violations)
            # The bounds of a newer role say nothing about what this cluster was ordered with.
            if template is not None and template.digest == spec.template_digest:
                violations += _range_violations(version, template)
            violations += lifecycle.version_violations(old, spec, context)
        spec = replace(spec, restore=lifecycle.admit_restore(old, spec, context, violations))
        spec = replace(
            spec, network=cidrs.canonicalize_network(spec.network, "spec.network", violations)
        )
        if spec.network != old.spec.network:
            violations.append(Violation("spec.network", "cannot change", "order a new cluster"))
        if violations:
            raise Refused("", *violations)
        return replace(new, spec=_fill_host_types(spec, template))

    def mark_deleted(self, doc: Cluster, context: AdmissionContext) -> Cluster:
        """The cluster when its deletion is requested: DELETING at once, before it is reconciled."""
        return replace(
            doc,
            status=replace(
                doc.status, state=ClusterState.DELETING, state_transition_time=context.now
            ),
        )


def _keep_fixed_fields(old: ClusterSpec, new: ClusterSpec) -> ClusterSpec:
    """The new spec with fixed fields that the request left out taken from the old one."""
    return replace(
        new,
        template=new.template if new.template.id else old.template,
        template_parameters=new.template_parameters or old.template_parameters,
        secret_parameters=new.secret_parameters or old.secret_parameters,
        version=new.version if new.version.id else old.version,
        network=new.network if new.network is not None else old.network,
    )


def _fixed_violations(old: Cluster, spec: ClusterSpec) -> Iterator[Violation]:
    for name in ("template", "template_parameters", "secret_parameters", "catalog_item"):
        if getattr(spec, name) != getattr(old.spec, name):
            yield Violation(f"spec.{name}", "cannot change", "order a new cluster")
    if old.status.hub:
        for name in ("zone", "hub_labels"):
            if getattr(spec, name) != getattr(old.spec, name):
                yield Violation(
                    f"spec.{name}", "cannot change once a hub is chosen", "order a new cluster"
                )


def _template_violations(spec: ClusterSpec, template: ClusterTemplate) -> Iterator[Violation]:
    if template.withdrawn:
        yield Violation("spec.template", "is no longer offered", "choose another template")
    if spec.template_digest not in ("", template.digest):
        yield Violation(
            "spec.template_digest", "is not what is offered now", "look at the template again"
        )
    if spec.secret_parameters:
        yield Violation(
            "spec.secret_parameters",
            "is written by the service",
            "give them in spec.template_parameters, like the others",
        )


def _merge_hub_labels(
    labels: Mapping[str, str], template: ClusterTemplate, violations: list[Violation]
) -> Mapping[str, str]:
    """The hub labels of the tenant and of the template together; a contradiction is a violation."""
    for key, value in template.hub_labels.items():
        if labels.get(key, value) != value:
            violations.append(
                Violation(
                    f"spec.hub_labels.{key}", "the template asks for another one", "leave it out"
                )
            )
    return {**labels, **template.hub_labels}


def _make_node_sets(
    node_sets: Mapping[str, ClusterNodeSet], template: ClusterTemplate, violations: list[Violation]
) -> Mapping[str, ClusterNodeSet]:
    """The template's node sets, with the requested sizes and host types."""
    sets = {
        name: ClusterNodeSet(host_type=template_set.host_type, size=template_set.size)
        for name, template_set in template.node_sets.items()
    }
    for name, node_set in node_sets.items():
        violations += _set_violations(name, node_set, template)
        if node_set.size < 1:
            violations.append(
                Violation(f"spec.node_sets.{name}.size", f"is {node_set.size}", "give 1 or more")
            )
        if name in sets and not node_set.host_type.id:
            node_set = replace(node_set, host_type=sets[name].host_type)
        if name in sets:
            sets[name] = node_set
    if not sets and not violations:
        violations.append(
            Violation("spec.template", "offers no node sets", "choose another template")
        )
    return sets


def _update_set_violations(
    old: Mapping[str, ClusterNodeSet],
    new: Mapping[str, ClusterNodeSet],
    template: ClusterTemplate | None,
) -> Iterator[Violation]:
    if not new:
        yield Violation("spec.node_sets", "one must be left", "delete the cluster instead")
    for name, node_set in new.items():
        path = f"spec.node_sets.{name}"
        if node_set.size < 0:
            yield Violation(f"{path}.size", f"{node_set.size} is negative", "give 0 or more")
        old_set = old.get(name)
        if old_set is None:
            yield from _set_violations(name, node_set, template)
        elif node_set.host_type.id not in ("", old_set.host_type.id):
            yield Violation(f"{path}.host_type", "cannot change", "add another node set instead")


def _set_violations(
    name: str, node_set: ClusterNodeSet, template: ClusterTemplate | None
) -> Iterator[Violation]:
    path = f"spec.node_sets.{name}"
    template_sets = template.node_sets if template is not None else {}
    if name not in template_sets:
        names = ", ".join(sorted(template_sets)) or "none"
        yield Violation(path, "the template has no such node set", f"it has: {names}")
    elif template is not None and node_set.host_type.id not in (
        "",
        template_sets[name].host_type.id,
        *template.allowed_host_types,
    ):
        others = ", ".join(template.allowed_host_types)
        yield Violation(
            f"{path}.host_type",
            f"the template uses {quote_text(template_sets[name].host_type.name)} here",
            f"leave it out, or name one of {others}" if others else "leave it out",
        )


def _fill_host_types(spec: ClusterSpec, template: ClusterTemplate | None) -> ClusterSpec:
    """The spec with the template's host type in each node set that names none."""
    template_sets = template.node_sets if template is not None else {}
    return replace(
        spec,
        node_sets={
            name: replace(node_set, host_type=template_sets[name].host_type)
            if not node_set.host_type.id and name in template_sets
            else node_set
            for name, node_set in spec.node_sets.items()
        },
    )


def _choose_version(
    reference: ClusterVersionReference,
    template: ClusterTemplate,
    context: AdmissionContext,
    violations: list[Violation],
) -> ClusterVersionReference:
    chosen = reference if reference.id else template.spec_defaults.version
    if chosen.id:
        version = context.get(ClusterVersion, chosen.id)
        _check_version(version, violations)
        violations += _range_violations(version, template)
        return chosen
    fitting = [
        candidate
        for candidate in context.get_all(ClusterVersion)
        if versions.is_in_range(candidate.spec.version, template)
    ]
    default = _find_default_version(fitting) or _find_newest_version(fitting, template)
    if default is None:
        if context.get_all(ClusterVersion) and not fitting:
            violations.append(_make_range_violation("", template))
        return chosen
    return ClusterVersionReference(id=default.id, name=default.metadata.name)


def _find_newest_version(
    fitting: Sequence[ClusterVersion], template: ClusterTemplate
) -> ClusterVersion | None:
    """The newest usable version, for a template whose bounds exclude the default; else None."""
    if not template.version_from and not template.version_below:
        return None
    return max(
        (version for version in fitting if is_usable(version)),
        key=lambda version: versions.parse_leading_number(version.spec.version) or (),
        default=None,
    )


def _range_violations(
    version: ClusterVersion | None, template: ClusterTemplate
) -> Iterator[Violation]:
    if version is not None and not versions.is_in_range(version.spec.version, template):
        yield _make_range_violation(version.spec.version, template)


def _make_range_violation(version: str, template: ClusterTemplate) -> Violation:
    words = f"{version} is none that the template takes" if version else "none fits the template"
    return Violation("spec.version", words, f"choose one: {versions.format_range(template)}")


def _find_default_version(candidates: Sequence[ClusterVersion]) -> ClusterVersion | None:
    """The default version: the tenant's own before the shared one. There is at most one of each."""
    defaults = [version for version in candidates if version.spec.is_default and is_usable(version)]
    return min(defaults, key=lambda version: version.metadata.tenant == SHARED, default=None)


def _check_version(version: ClusterVersion | None, violations: list[Violation]) -> None:
    if version is None:
        violations.append(Violation("spec.version", "does not exist", "choose another version"))
    elif not is_usable(version):
        violations.append(
            Violation(
                "spec.version",
                f"{version.metadata.name} is disabled or obsolete",
                "choose another version",
            )
        )


def _complete_network(
    network: ClusterNetwork | None, default: ClusterNetwork | None, violations: list[Violation]
) -> ClusterNetwork | None:
    if network is not None and default is not None:
        network = replace(
            network,
            pod_cidr=network.pod_cidr or default.pod_cidr,
            service_cidr=network.service_cidr or default.service_cidr,
        )
    return cidrs.canonicalize_network(
        network if network is not None else default, "spec.network", violations
    )


def _size_violations(spec: ClusterSpec) -> Iterator[Violation]:
    for name, node_set in spec.node_sets.items():
        if node_set.size > LARGEST_NODE_SET:
            yield Violation(
                f"spec.node_sets.{name}.size", f"is {node_set.size}", f"at most {LARGEST_NODE_SET}"
            )
    if len(spec.pull_secret or "") > LONGEST_PULL_SECRET:
        yield Violation("spec.pull_secret", "is too long", f"at most {LONGEST_PULL_SECRET}")
    if len(spec.ssh_public_key or "") > LONGEST_SSH_KEY:
        yield Violation("spec.ssh_public_key", "is too long", f"at most {LONGEST_SSH_KEY}")
    if len(spec.hub_labels) > MOST_HUB_LABELS:
        yield Violation("spec.hub_labels", f"at most {MOST_HUB_LABELS} can be asked for")


def _unsupported_field_violations(spec: ClusterSpec) -> Iterator[Violation]:
    """Refuses fields of the API that this server does not implement, instead of ignoring them."""
    if spec.auto_external_ip_attachment:
        yield Violation(
            "spec.auto_external_ip_attachment", "external addresses are not offered", "leave it out"
        )


def _condition_violations(cluster: Cluster) -> Iterator[Violation]:
    types = [condition.type for condition in cluster.status.conditions]
    for index, type in enumerate(types):
        if type in types[:index]:
            yield Violation(f"status.conditions[{index}].type", f"{type.name} is there twice")

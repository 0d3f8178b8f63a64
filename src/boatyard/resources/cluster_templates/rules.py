"""Admission rules of cluster templates. Called by the API before a template is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.osac import ClusterTemplate
from boatyard.resources import cidrs
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.cluster_templates.parameters import definition_violations
from boatyard.resources.cluster_templates.versions import is_version_number
from boatyard.resources.kind_rules import KindRules
from boatyard.resources.metadata import is_label, quote_text

LONGEST_TITLE = 256
LONGEST_DESCRIPTION = 16 * 1024
MOST_PARAMETERS = 200
MOST_NODE_SETS = 50
MOST_ENTRIES = 64
LONGEST_KEY = 256
LONGEST_VALUE = 4096


_SERVICE_WRITTEN_FIELDS = (
    "digest",
    "form",
    "phases",
)  # written by publishing a role, and by nothing else


class ClusterTemplateRules(KindRules[ClusterTemplate]):
    public_filters = (("withdrawn", "this.withdrawn == false"),)

    def admit_create(self, new: ClusterTemplate, context: AdmissionContext) -> ClusterTemplate:
        violations = [
            Violation(name, "is written by the service", "publish a role instead")
            for name in _SERVICE_WRITTEN_FIELDS
            if getattr(new, name)
        ]
        return admit(new, violations)

    def admit_update(
        self, old: ClusterTemplate, new: ClusterTemplate, context: AdmissionContext
    ) -> ClusterTemplate:
        violations = []
        if old.form and new.parameters != old.parameters:
            violations.append(
                Violation("parameters", "are the form of the template's role", "change the role")
            )
        return admit(new, violations)


def admit(template: ClusterTemplate, violations: list[Violation]) -> ClusterTemplate:
    """Returns the template as it is stored, or raises Refused. Also called for templates made from roles."""
    violations += _violations(template)
    network = cidrs.canonicalize_network(
        template.spec_defaults.network, "spec_defaults.network", violations
    )
    if violations:
        raise Refused("", *violations)
    if network == template.spec_defaults.network:
        return template
    return replace(template, spec_defaults=replace(template.spec_defaults, network=network))


def _violations(template: ClusterTemplate) -> Iterator[Violation]:
    if len(template.title) > LONGEST_TITLE:
        yield Violation(
            "title", f"has {len(template.title)} characters", f"at most {LONGEST_TITLE}"
        )
    if len(template.description) > LONGEST_DESCRIPTION:
        yield Violation("description", "is too long", f"at most {LONGEST_DESCRIPTION} characters")
    if len(template.parameters) > MOST_PARAMETERS:
        yield Violation("parameters", f"at most {MOST_PARAMETERS} are kept")
    else:
        yield from definition_violations(template.parameters)
    yield from _map_violations("hub_labels", template.hub_labels)
    yield from _map_violations("platform_settings", template.platform_settings)
    for path in ("version_from", "version_below"):
        bound = getattr(template, path)
        if bound and not is_version_number(bound):
            yield Violation(path, f"{quote_text(bound)} is not a version", "such as 4.17")
    if len(template.allowed_host_types) > MOST_ENTRIES:
        yield Violation("allowed_host_types", f"at most {MOST_ENTRIES} are kept")
    if len(template.node_sets) > MOST_NODE_SETS:
        yield Violation("node_sets", f"at most {MOST_NODE_SETS} are kept")
        return
    for name, node_set in template.node_sets.items():
        path = f"node_sets.{name}"
        if not is_label(name):
            yield Violation("node_sets", f"{quote_text(name)} is not a valid name")
            continue
        if not node_set.host_type.id:
            yield Violation(f"{path}.host_type", "is required", "name a host type")
        if node_set.size < 1:
            yield Violation(f"{path}.size", f"is {node_set.size}", "give 1 or more")


def _map_violations(path: str, entries: Mapping[str, str]) -> Iterator[Violation]:
    if len(entries) > MOST_ENTRIES:
        yield Violation(path, f"has {len(entries)} entries", f"{MOST_ENTRIES} at most")
        return
    for key, value in entries.items():
        if not key or len(key) > LONGEST_KEY:
            yield Violation(
                path, f"{quote_text(key)} is not a key", f"give 1 to {LONGEST_KEY} letters"
            )
        elif len(value) > LONGEST_VALUE:
            yield Violation(f"{path}.{key}", "is too long", f"at most {LONGEST_VALUE} letters")

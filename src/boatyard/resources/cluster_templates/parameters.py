"""The form in front of a template: which parameters it takes, and of what type. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from boatyard.model.errors import Violation
from boatyard.model.generated.osac import ClusterTemplate, ClusterTemplateParameterDefinition
from boatyard.resources.metadata import shown
from boatyard.roles.check import check
from boatyard.roles.form import Form, from_text
from boatyard.roles.values import plain_values, typed

PATH = "spec.template_parameters"
PREFIX = "type.googleapis.com/"
TYPES = frozenset(
    f"google.protobuf.{name}"
    for name in (
        "StringValue",
        "BoolValue",
        "Int32Value",
        "Int64Value",
        "UInt32Value",
        "UInt64Value",
        "FloatValue",
        "DoubleValue",
        "BytesValue",
        "Timestamp",
        "Duration",
        "Struct",
        "ListValue",
        "Value",
    )
)

Values = Mapping[str, Mapping[str, Any]]


def definition_violations(
    definitions: Sequence[ClusterTemplateParameterDefinition],
) -> Iterator[Violation]:
    """What is wrong with the form itself."""
    seen: set[str] = set()
    for index, definition in enumerate(definitions):
        path = f"parameters[{index}]"
        if not definition.name:
            yield Violation(f"{path}.name", "is required")
        elif definition.name in seen:
            yield Violation(f"{path}.name", f"{shown(definition.name)} is there twice")
        seen.add(definition.name)
        if bare(definition.type) not in TYPES:
            yield Violation(
                f"{path}.type",
                f"{shown(definition.type)} is not a type of parameter",
                f"such as {PREFIX}google.protobuf.StringValue",
            )
        elif definition.default is not None and type_of(definition.default) != bare(
            definition.type
        ):
            yield Violation(
                f"{path}.default",
                f"is a {type_of(definition.default)}",
                f"give a {bare(definition.type)}",
            )


def fill(
    given: Values, template: ClusterTemplate, violations: list[Violation]
) -> tuple[Values, Values]:
    """What was given, completed by defaults, and apart from it what is secret; `violations` gets what does not fit."""
    if template.form:
        filled = _by_form(given, from_text(template.form), violations)
    else:
        filled = _by_definitions(given, template.parameters, violations)
    hidden = {definition.name for definition in template.parameters if definition.no_log}
    shown = {name: value for name, value in filled.items() if name not in hidden}
    return shown, {name: value for name, value in filled.items() if name in hidden}


def _by_form(given: Values, form: Form, violations: list[Violation]) -> Values:
    plain = plain_values(given)
    found = check(form, plain, violations, at=PATH)
    if violations:
        return given
    return {name: typed(form.options[name], value) for name, value in found.items()}


def _by_definitions(
    given: Values,
    definitions: Sequence[ClusterTemplateParameterDefinition],
    violations: list[Violation],
) -> Values:
    """For a template without a role: by name and type alone."""
    known = {definition.name: definition for definition in definitions}
    for name, value in given.items():
        path = f"{PATH}.{name}"
        definition = known.get(name)
        if definition is None:
            offered = ", ".join(sorted(known)) or "none"
            violations.append(
                Violation(path, "the template has no such parameter", f"it has: {offered}")
            )
        elif type_of(value) != bare(definition.type):
            violations.append(
                Violation(path, f"is a {type_of(value)}", f"give a {bare(definition.type)}")
            )
    filled = dict(given)
    for name, definition in known.items():
        if name in given:
            continue
        if definition.default is not None:
            filled[name] = definition.default
        elif definition.required:
            violations.append(
                Violation(
                    f"{PATH}.{name}",
                    "is required by the template",
                    f"give a {bare(definition.type)}",
                )
            )
    return filled


def bare(type_url: str) -> str:
    return type_url.rpartition("/")[2]


def type_of(value: Mapping[str, Any]) -> str:
    return bare(str(value.get("@type", "")))

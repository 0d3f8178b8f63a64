"""The parameters of a template: their definitions, and the values of an order. Pure."""

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
    """What is wrong with the definitions themselves."""
    names: set[str] = set()
    for index, definition in enumerate(definitions):
        path = f"parameters[{index}]"
        if not definition.name:
            yield Violation(f"{path}.name", "is required")
        elif definition.name in names:
            yield Violation(f"{path}.name", f"{shown(definition.name)} is there twice")
        names.add(definition.name)
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
    values: Values, template: ClusterTemplate, violations: list[Violation]
) -> tuple[Values, Values]:
    """Returns the values completed by defaults, split into visible and secret ones; appends to `violations`."""
    if template.form:
        all_values = _by_form(values, from_text(template.form), violations)
    else:
        all_values = _by_definitions(values, template.parameters, violations)
    secret_names = {definition.name for definition in template.parameters if definition.no_log}
    visible_values = {name: value for name, value in all_values.items() if name not in secret_names}
    return visible_values, {
        name: value for name, value in all_values.items() if name in secret_names
    }


def _by_form(values: Values, form: Form, violations: list[Violation]) -> Values:
    plain = plain_values(values)
    checked_values = check(form, plain, violations, at=PATH)
    if violations:
        return values
    return {name: typed(form.options[name], value) for name, value in checked_values.items()}


def _by_definitions(
    values: Values,
    definitions: Sequence[ClusterTemplateParameterDefinition],
    violations: list[Violation],
) -> Values:
    """Checks the values of a template without a role, by name and type alone."""
    definitions_by_name = {definition.name: definition for definition in definitions}
    for name, value in values.items():
        path = f"{PATH}.{name}"
        definition = definitions_by_name.get(name)
        if definition is None:
            names = ", ".join(sorted(definitions_by_name)) or "none"
            violations.append(
                Violation(path, "the template has no such parameter", f"it has: {names}")
            )
        elif type_of(value) != bare(definition.type):
            violations.append(
                Violation(path, f"is a {type_of(value)}", f"give a {bare(definition.type)}")
            )
    all_values = dict(values)
    for name, definition in definitions_by_name.items():
        if name in values:
            continue
        if definition.default is not None:
            all_values[name] = definition.default
        elif definition.required:
            violations.append(
                Violation(
                    f"{PATH}.{name}",
                    "is required by the template",
                    f"give a {bare(definition.type)}",
                )
            )
    return all_values


def bare(type_url: str) -> str:
    return type_url.rpartition("/")[2]


def type_of(value: Mapping[str, Any]) -> str:
    return bare(str(value.get("@type", "")))

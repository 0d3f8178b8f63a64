"""The parameters of a template: their definitions, and the values of an order. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from boatyard.model.errors import Violation
from boatyard.model.generated.osac import ClusterTemplate, ClusterTemplateParameterDefinition
from boatyard.resources.metadata import quote_text
from boatyard.roles.form import Form, form_from_json
from boatyard.roles.form_check import check_values
from boatyard.roles.parameter_values import plain_values, to_typed_value

PARAMETERS_PATH = "spec.template_parameters"
TYPE_URL_PREFIX = "type.googleapis.com/"
PARAMETER_TYPES = frozenset(
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
            yield Violation(f"{path}.name", f"{quote_text(definition.name)} is there twice")
        names.add(definition.name)
        if strip_type_prefix(definition.type) not in PARAMETER_TYPES:
            yield Violation(
                f"{path}.type",
                f"{quote_text(definition.type)} is not a type of parameter",
                f"such as {TYPE_URL_PREFIX}google.protobuf.StringValue",
            )
        elif definition.default is not None and get_type_name(
            definition.default
        ) != strip_type_prefix(definition.type):
            yield Violation(
                f"{path}.default",
                f"is a {get_type_name(definition.default)}",
                f"give a {strip_type_prefix(definition.type)}",
            )


def complete_values(
    values: Values, template: ClusterTemplate, violations: list[Violation]
) -> tuple[Values, Values]:
    """Returns the values completed by defaults, split into visible and secret ones; appends to `violations`."""
    if template.form:
        all_values = _complete_by_form(values, form_from_json(template.form), violations)
    else:
        all_values = _complete_by_definitions(values, template.parameters, violations)
    secret_names = {definition.name for definition in template.parameters if definition.no_log}
    visible_values = {name: value for name, value in all_values.items() if name not in secret_names}
    return visible_values, {
        name: value for name, value in all_values.items() if name in secret_names
    }


def _complete_by_form(values: Values, form: Form, violations: list[Violation]) -> Values:
    plain = plain_values(values)
    checked_values = check_values(form, plain, violations, at=PARAMETERS_PATH)
    if violations:
        return values
    return {
        name: to_typed_value(form.options[name], value) for name, value in checked_values.items()
    }


def _complete_by_definitions(
    values: Values,
    definitions: Sequence[ClusterTemplateParameterDefinition],
    violations: list[Violation],
) -> Values:
    """Checks the values of a template without a role, by name and type alone."""
    definitions_by_name = {definition.name: definition for definition in definitions}
    for name, value in values.items():
        path = f"{PARAMETERS_PATH}.{name}"
        definition = definitions_by_name.get(name)
        if definition is None:
            names = ", ".join(sorted(definitions_by_name)) or "none"
            violations.append(
                Violation(path, "the template has no such parameter", f"it has: {names}")
            )
        elif get_type_name(value) != strip_type_prefix(definition.type):
            violations.append(
                Violation(
                    path,
                    f"is a {get_type_name(value)}",
                    f"give a {strip_type_prefix(definition.type)}",
                )
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
                    f"{PARAMETERS_PATH}.{name}",
                    "is required by the template",
                    f"give a {strip_type_prefix(definition.type)}",
                )
            )
    return all_values


def strip_type_prefix(type_url: str) -> str:
    return type_url.rpartition("/")[2]


def get_type_name(value: Mapping[str, Any]) -> str:
    return strip_type_prefix(str(value.get("@type", "")))

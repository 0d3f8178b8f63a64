"""Converts parameters between the wire and plain values. Pure; used at admission and where roles are run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from boatyard.model.generated.osac import ClusterTemplateParameterDefinition
from boatyard.roles.form import Form, Option

PREFIX = "type.googleapis.com/google.protobuf."

Typed = Mapping[str, Any]  # {"@type": …, "value": …}

_TYPES = {
    "str": "StringValue",
    "path": "StringValue",
    "bytes": "StringValue",
    "bits": "StringValue",
    "int": "Int64Value",
    "float": "DoubleValue",
    "bool": "BoolValue",
}
_WIDE = (f"{PREFIX}Int64Value", f"{PREFIX}UInt64Value")  # strings in JSON
_REAL = (f"{PREFIX}DoubleValue", f"{PREFIX}FloatValue")


def definitions(form: Form) -> tuple[ClusterTemplateParameterDefinition, ...]:
    """The form as the catalogue shows it. A nested option is one value there; the schema shows what is inside."""
    return tuple(
        ClusterTemplateParameterDefinition(
            name=name,
            title=option.title or name,
            description=option.description,
            required=option.must_be_given,
            type=type_url(option),
            default=typed(option, option.default)
            if option.has_default and not option.secret
            else None,
            no_log=option.secret,
        )
        for name, option in form.options.items()
    )


def type_url(option: Option) -> str:
    return PREFIX + _TYPES.get(option.type, "Value")


def typed(option: Option, value: Any) -> dict[str, Any]:
    """The value with its type, as the wire's JSON has it."""
    match option.type:
        case "int":
            return {"@type": type_url(option), "value": str(value)}
        case "float":
            return {"@type": type_url(option), "value": float(value)}
    return {"@type": type_url(option), "value": value}


def plain(value: Typed) -> Any:
    """The value without its type. Values of other than the simple types stay as in the JSON."""
    kind, inner = value.get("@type"), value.get("value")
    if kind in _WIDE and isinstance(inner, str):
        return int(inner)
    if kind in _REAL and isinstance(inner, str):
        return float(inner)  # NaN and the infinities
    if value.keys() - {"@type", "value"}:
        return {key: entry for key, entry in value.items() if key != "@type"}
    return inner


def plain_values(parameters: Mapping[str, Typed]) -> dict[str, Any]:
    """Every parameter by name, as a role reads it."""
    return {name: plain(value) for name, value in parameters.items()}


def seal_text(secret: Mapping[str, Typed]) -> str:
    """Secret parameters as one text to be sealed; empty when there are none."""
    return msgspec.json.encode(dict(sorted(secret.items()))).decode() if secret else ""


def unsealed(text: str) -> dict[str, dict[str, Any]]:
    """Secret parameters with their types, from the text of `seal_text`."""
    return msgspec.json.decode(text, type=dict[str, dict[str, Any]]) if text else {}

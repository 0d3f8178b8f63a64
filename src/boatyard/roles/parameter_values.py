"""Converts parameters between the wire and plain values. Pure; used at admission and where roles are run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from boatyard.model.generated.osac import ClusterTemplateParameterDefinition
from boatyard.roles.form import Form, Option

TYPE_URL_PREFIX = "type.googleapis.com/google.protobuf."

TypedValue = Mapping[str, Any]  # {"@type": …, "value": …}

_TYPES = {
    "str": "StringValue",
    "path": "StringValue",
    "bytes": "StringValue",
    "bits": "StringValue",
    "int": "Int64Value",
    "float": "DoubleValue",
    "bool": "BoolValue",
}
_INTEGER_TYPES = (
    f"{TYPE_URL_PREFIX}Int64Value",
    f"{TYPE_URL_PREFIX}UInt64Value",
)  # strings in JSON
_FLOAT_TYPES = (f"{TYPE_URL_PREFIX}DoubleValue", f"{TYPE_URL_PREFIX}FloatValue")


def definitions(form: Form) -> tuple[ClusterTemplateParameterDefinition, ...]:
    """The form as the catalogue shows it. A nested option is one value there; the schema shows what is inside."""
    return tuple(
        ClusterTemplateParameterDefinition(
            name=name,
            title=option.title or name,
            description=option.description,
            required=option.must_be_given,
            type=type_url(option),
            default=to_typed_value(option, option.default)
            if option.has_default and not option.secret
            else None,
            no_log=option.secret,
        )
        for name, option in form.options.items()
    )


def type_url(option: Option) -> str:
    return TYPE_URL_PREFIX + _TYPES.get(option.type, "Value")


def to_typed_value(option: Option, value: Any) -> dict[str, Any]:
    """The value with its type, as the wire's JSON has it."""
    match option.type:
        case "int":
            return {"@type": type_url(option), "value": str(value)}
        case "float":
            return {"@type": type_url(option), "value": float(value)}
    return {"@type": type_url(option), "value": value}


def to_plain_value(value: TypedValue) -> Any:
    """The value without its type. Values of other than the simple types stay as in the JSON."""
    kind, inner = value.get("@type"), value.get("value")
    if kind in _INTEGER_TYPES and isinstance(inner, str):
        return int(inner)
    if kind in _FLOAT_TYPES and isinstance(inner, str):
        return float(inner)  # NaN and the infinities
    if value.keys() - {"@type", "value"}:
        return {key: entry for key, entry in value.items() if key != "@type"}
    return inner


def plain_values(parameters: Mapping[str, TypedValue]) -> dict[str, Any]:
    """Every parameter by name, as a role reads it."""
    return {name: to_plain_value(value) for name, value in parameters.items()}


def encode_secrets(secret: Mapping[str, TypedValue]) -> str:
    """Secret parameters as one text to be sealed; empty when there are none."""
    return msgspec.json.encode(dict(sorted(secret.items()))).decode() if secret else ""


def decode_secrets(text: str) -> dict[str, dict[str, Any]]:
    """Secret parameters with their types, from the text of `encode_secrets`."""
    return msgspec.json.decode(text, type=dict[str, dict[str, Any]]) if text else {}

"""Converts template parameters to the JSON text that a ClusterOrder carries, and back. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from boatyard.model.errors import Refused

Parameters = Mapping[str, Mapping[str, Any]]  # by name: {"@type": …, "value": …}

_PREFIX = "type.googleapis.com/google.protobuf."
_WIDE_INTEGER_TYPES = (f"{_PREFIX}Int64Value", f"{_PREFIX}UInt64Value")
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,19}")
_WHOLE_PARAMETER = ""  # in place of a type: the value is the whole parameter, its type included


def to_text(parameters: Parameters) -> str:
    """A JSON map of name to plain value, as playbooks read it; empty without parameters."""
    if not parameters:
        return ""
    return msgspec.json.encode(
        {name: _to_plain_value(parameter) for name, parameter in parameters.items()}
    ).decode()


def list_unguessable_types(parameters: Parameters) -> dict[str, str]:
    """The types that cannot be told from the plain values."""
    types = {name: _type(parameter) for name, parameter in parameters.items()}
    return {
        name: kind
        for name, kind in types.items()
        if kind == _WHOLE_PARAMETER or kind != _guess_type(_to_plain_value(parameters[name]))
    }


def from_text(text: str, types: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The parameters in a JSON text. Refused when it is no JSON map: others may write it."""
    if not text:
        return {}
    try:
        values = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(
            "spec.templateParameters is no JSON map encoded as a string;"
            """ write it like '{"name": "value"}', or leave it out""",
            reason="BadParameters",
        ) from error
    return {name: _to_parameter(value, types.get(name)) for name, value in values.items()}


def _to_plain_value(parameter: Mapping[str, Any]) -> Any:
    if parameter.keys() != {"@type", "value"}:
        return dict(parameter)
    value = parameter["value"]
    # The wire's JSON has wide integers as texts; playbooks read numbers.
    wide = (
        parameter["@type"] in _WIDE_INTEGER_TYPES
        and isinstance(value, str)
        and _WHOLE_NUMBER.fullmatch(value)
    )
    return int(value) if wide else value


def _type(parameter: Mapping[str, Any]) -> str:
    return str(parameter["@type"]) if parameter.keys() == {"@type", "value"} else _WHOLE_PARAMETER


def _to_parameter(value: Any, kind: str | None) -> dict[str, Any]:
    if kind == _WHOLE_PARAMETER:
        if not isinstance(value, dict):
            raise Refused(
                "spec.templateParameters: one of them lost its type, which spec.boatyard.parameterTypes"
                " leaves to its value; write both as they were",
                reason="BadParameters",
            )
        return value
    type_name = _guess_type(value) if kind is None else kind
    if type_name in _WIDE_INTEGER_TYPES and isinstance(value, int):
        value = str(value)
    return {"@type": type_name, "value": value}


def _guess_type(value: Any) -> str:
    match value:
        case bool():
            return f"{_PREFIX}BoolValue"
        case str():
            return f"{_PREFIX}StringValue"
        case int():
            return f"{_PREFIX}Int32Value" if abs(value) < 2**31 else f"{_PREFIX}Int64Value"
        case float():
            return f"{_PREFIX}DoubleValue"
    return f"{_PREFIX}Value"

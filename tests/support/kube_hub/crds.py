"""The CRDs of a hub as they are shipped, and whether a value fits a schema. For tests without an API server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[3] / "deploy" / "crds"
_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def crds() -> list[dict[str, Any]]:
    """All of them, as one would apply them."""
    return [yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))]


@cache
def schema_of(plural: str) -> dict[str, Any]:
    crd = next(one for one in crds() if one["spec"]["names"]["plural"] == plural)
    found: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def misfits(schema: Mapping[str, Any], value: Any, path: str = "") -> list[str]:
    """Where the value is not as the schema says; a field that the schema does not know is one too."""
    return list(_misfits(schema, value, path))


def _misfits(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, _TYPES[schema["type"]]):
        yield f"{path} is no {schema['type']}"
        return
    if isinstance(value, str):
        yield from _text_misfits(schema, value, path)
    elif isinstance(value, dict):
        yield from _object_misfits(schema, value, path)
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from _misfits(schema["items"], one, f"{path}[{place}]")


def _text_misfits(schema: Mapping[str, Any], value: str, path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path} is none of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path} does not match {schema['pattern']}"
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{path} is too long"


def _object_misfits(
    schema: Mapping[str, Any], value: Mapping[str, Any], path: str
) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name} is missing"
    known = schema.get("properties", {})
    for name, one in value.items():
        inner = known.get(name) or schema.get("additionalProperties")
        if inner is not None:
            yield from _misfits(inner, one, f"{path}.{name}")
        elif known or not path.endswith("metadata"):
            yield f"{path}.{name} is not known"

"""JSON schema of a message, in the words of OpenAPI or of a CRD. Used by openapi.py and crds.py."""

from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from generator import source as src
from generator.source import Source

Schema = dict[str, Any]

ANY_SCHEMA: Schema = {
    "type": "object",
    "properties": {"@type": {"type": "string"}},
    "required": ["@type"],
    "additionalProperties": True,
}
WELL_KNOWN: dict[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.FieldMask": {"type": "string"},
    "google.protobuf.Any": ANY_SCHEMA,
    "google.protobuf.Struct": {"type": "object", "additionalProperties": True},
    "google.protobuf.Value": {},
    "google.api.HttpBody": {"type": "string"},
}
SCALARS: dict[int, Schema] = {
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "format": "byte"},
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number", "format": "double"},
    FieldDescriptor.TYPE_FLOAT: {"type": "number", "format": "float"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_INT64: {"type": "integer", "format": "int64"},
}
# What protovalidate calls it, and what JSON schema does.
BOUNDS = {
    "min_len": "minLength",
    "max_len": "maxLength",
    "pattern": "pattern",
    "gte": "minimum",
    "lte": "maximum",
    "gt": "exclusiveMinimum",
    "lt": "exclusiveMaximum",
    "min_items": "minItems",
    "max_items": "maxItems",
}


@dataclass(frozen=True)
class Writer:
    """For a CRD everything is inline, with JSON names; for OpenAPI messages refer to each other."""

    source: Source
    for_crd: bool = False

    def message(self, message: Descriptor) -> Schema:
        made: Schema = {"type": "object"}
        if comment := self.source.comments.get(message.full_name):
            made["description"] = comment
        properties = {self.name(f): self.field(f) for f in message.fields}
        if properties:
            made["properties"] = properties
        # In OpenAPI one schema serves Create and Update, and an Update gives what it likes.
        required = [self.name(f) for f in message.fields if src.has_behavior(f, "REQUIRED")]
        if required and self.for_crd:
            made["required"] = required
        return made

    def name(self, f: FieldDescriptor) -> str:
        return str(f.json_name if self.for_crd else f.name)

    def field(self, f: FieldDescriptor) -> Schema:
        made = self._shape(f)
        if comment := self.source.comments.get(f"{f.containing_type.full_name}.{f.name}"):
            made["description"] = comment
        if rule := self.source.rules.get(f"{f.containing_type.full_name}.{f.name}"):
            made |= _bounds(src.parse_rule(rule))
        if self.for_crd:
            return made | self._kubernetes(f)
        if src.has_behavior(f, "OUTPUT_ONLY"):
            made["readOnly"] = True
        return made

    def _shape(self, f: FieldDescriptor) -> Schema:
        if src.is_map(f):
            return {"type": "object", "additionalProperties": self._element(src.map_value(f))}
        if src.is_repeated(f):
            return {"type": "array", "items": self._element(f)}
        return self._element(f)

    def _element(self, f: FieldDescriptor) -> Schema:
        if f.enum_type is not None:
            return self.enum(f.enum_type) if self.for_crd else self.refer(f.enum_type)
        if f.message_type is not None:
            known = WELL_KNOWN.get(f.message_type.full_name)
            if known is not None:
                return dict(known)
            return self.message(f.message_type) if self.for_crd else self.refer(f.message_type)
        made = dict(SCALARS[f.type])
        if made.get("format") == "int64" and not self.for_crd:
            made["type"] = "string"
        if src.is_sensitive(f) and made == {"type": "string"}:
            made["format"] = "password"
        return made

    def enum(self, enum: EnumDescriptor) -> Schema:
        return {"type": "string", "enum": [v.name for v in enum.values]}

    def refer(self, described: Descriptor | EnumDescriptor) -> Schema:
        return {"$ref": f"#/components/schemas/{described.full_name}"}

    def _kubernetes(self, f: FieldDescriptor) -> Schema:
        more: Schema = {}
        if src.has_behavior(f, "IMMUTABLE"):
            more["x-kubernetes-validations"] = [
                {"rule": "self == oldSelf", "message": f"{self.name(f)} is immutable"}
            ]
        key = self._list_key(f)
        if key:
            more["x-kubernetes-list-type"] = "map"
            more["x-kubernetes-list-map-keys"] = [key]
        return more

    def _list_key(self, f: FieldDescriptor) -> str | None:
        """What elements of a list are told apart by: their first required string."""
        if not src.is_repeated(f) or f.message_type is None:
            return None
        for inner in f.message_type.fields:
            if src.has_behavior(inner, "REQUIRED"):
                return self.name(inner) if inner.type == FieldDescriptor.TYPE_STRING else None
        return None


def _bounds(rule: dict[str, Any]) -> Schema:
    made: Schema = {}
    for block in rule.values():
        if isinstance(block, dict):
            made |= {BOUNDS[word]: value for word, value in block.items() if word in BOUNDS}
    return made

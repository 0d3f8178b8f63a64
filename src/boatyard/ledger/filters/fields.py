"""Paths in a message, checked against its descriptor; each can be read in SQL and in a struct."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from boatyard.ledger.filters.conditions import Parameters

Getter = Callable[[Any], Any]


class ValueKind(Enum):
    BOOL = "bool"
    INT = "int"
    ENUM = "enum"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"
    TIMESTAMP = "timestamp"
    MESSAGE = "message"
    MAP = "map"
    LIST = "list"
    NULL = "null"


class Absent:
    """The value of a path that does not exist: nothing is equal to it, not even itself."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()

# How a value of a kind is read from JSON text, bound as a parameter, and what it is when nothing is stored.
SQL_TYPES: Mapping[ValueKind, str] = {
    ValueKind.BOOL: "boolean",
    ValueKind.INT: "bigint",
    ValueKind.ENUM: "bigint",
    ValueKind.DOUBLE: "double precision",
    ValueKind.STRING: "text",
    ValueKind.TIMESTAMP: "timestamptz",
}
_DEFAULT_SQL: Mapping[ValueKind, str] = {
    ValueKind.BOOL: "false",
    ValueKind.INT: "0",
    ValueKind.ENUM: "0",
    ValueKind.DOUBLE: "0",
    ValueKind.STRING: "''",
}
DEFAULTS: Mapping[ValueKind, Any] = {
    ValueKind.BOOL: False,
    ValueKind.INT: 0,
    ValueKind.ENUM: 0,
    ValueKind.DOUBLE: 0.0,
    ValueKind.STRING: "",
}

# Paths with a column of their own, all kinds alike.
_COLUMNS: Mapping[tuple[str, ...], str] = {
    ("id",): "id",
    ("metadata", "tenant"): "tenant",
    ("metadata", "project"): "project",
    ("metadata", "name"): "name",
    ("metadata", "version"): "version",
    ("metadata", "creation_timestamp"): "created",
    ("metadata", "deletion_timestamp"): "deleted",
    ("status", "state"): "state",
    ("spec", "template", "id"): "template",
    ("spec", "version", "id"): "cluster_version",
}
# JSON paths of references that have a column of their own: a search for referrers uses its index.
REFERENCE_COLUMNS: Mapping[str, str] = {
    f"$.{'.'.join(path)}": column
    for path, column in _COLUMNS.items()
    if len(path) > 1 and path[-1] == "id"
}
# Columns that may also hold something else, or leave something out: their index narrows a search, the JSON decides.
_HINT_COLUMNS: Mapping[tuple[str, ...], str] = {("status", "hub"): "hub", ("spec", "hub"): "hub"}

_KINDS_BY_CPP_TYPE = {
    FieldDescriptor.CPPTYPE_BOOL: ValueKind.BOOL,
    FieldDescriptor.CPPTYPE_INT32: ValueKind.INT,
    FieldDescriptor.CPPTYPE_INT64: ValueKind.INT,
    FieldDescriptor.CPPTYPE_UINT32: ValueKind.INT,
    FieldDescriptor.CPPTYPE_UINT64: ValueKind.INT,
    FieldDescriptor.CPPTYPE_FLOAT: ValueKind.DOUBLE,
    FieldDescriptor.CPPTYPE_DOUBLE: ValueKind.DOUBLE,
    FieldDescriptor.CPPTYPE_ENUM: ValueKind.ENUM,
    FieldDescriptor.CPPTYPE_STRING: ValueKind.STRING,
}
_TIMESTAMP = "google.protobuf.Timestamp"


@dataclass(frozen=True)
class FieldPath:
    """A path in a message: names of fields and keys of maps. The empty path is the message itself."""

    kind: ValueKind
    steps: tuple[str, ...] = ()
    keyed: tuple[bool, ...] = ()  # which of the steps are keys of a map
    message: Descriptor | None = None  # of a MESSAGE, and of the items of a LIST or MAP of messages
    enum: EnumDescriptor | None = None
    item: ValueKind | None = None  # of a LIST, and of the values of a MAP
    presence: bool = False  # whether unset and default differ

    @property
    def dotted(self) -> str:
        return ".".join(self.steps)

    def field(self, field: FieldDescriptor) -> FieldPath:
        steps, keyed = (*self.steps, field.name), (*self.keyed, False)
        message, enum = field.message_type, field.enum_type
        if message is not None and message.GetOptions().map_entry:
            value = message.fields_by_name["value"]
            return FieldPath(
                ValueKind.MAP,
                steps,
                keyed,
                value.message_type,
                value.enum_type,
                item=find_value_kind(value),
            )
        if field.is_repeated:
            return FieldPath(
                ValueKind.LIST, steps, keyed, message, enum, item=find_value_kind(field)
            )
        return FieldPath(
            find_value_kind(field), steps, keyed, message, enum, presence=field.has_presence
        )

    def entry(self, key: str) -> FieldPath:
        """The value of a map at a key."""
        assert self.item is not None
        steps, keyed = (*self.steps, key), (*self.keyed, True)
        return FieldPath(self.item, steps, keyed, self.message, self.enum, presence=True)

    # --- in SQL ----------------------------------------------------------------------------------

    @property
    def column(self) -> str | None:
        return None if any(self.keyed) else _COLUMNS.get(self.steps)

    @property
    def hint(self) -> str | None:
        return None if any(self.keyed) else _HINT_COLUMNS.get(self.steps)

    def json(self, parameters: Parameters) -> str:
        return f"data #> {parameters.add(list(self.steps), 'text[]')}"

    def stored(self, parameters: Parameters) -> str:
        """SQL for the stored value; null when none is stored."""
        if self.column is not None:
            return self.column
        text = f"data #>> {parameters.add(list(self.steps), 'text[]')}"
        sql_type = SQL_TYPES[self.kind]
        return f"({text})" if sql_type == "text" else f"({text})::{sql_type}"

    def value(self, parameters: Parameters) -> str:
        """SQL for the value or its default; null only when there is nothing to compare."""
        stored = self.stored(parameters)
        if self.kind not in DEFAULTS or (self.keyed and self.keyed[-1]):
            return stored
        default = f"coalesce({stored}, {_DEFAULT_SQL[self.kind]})"
        if True not in self.keyed:
            return default
        entry = list(self.steps[: _last_key(self.keyed) + 1])
        there = f"data #> {parameters.add(entry, 'text[]')}"
        return f"case when {there} is not null then {default} end"

    # --- in a struct -----------------------------------------------------------------------------

    def getter(self) -> Getter:
        """Reads the value from a struct: its default when unset, ABSENT when there is nothing to compare."""
        steps = tuple(zip(self.steps, self.keyed, strict=True))
        unset = DEFAULTS.get(self.kind, ABSENT)

        def get(value: Any) -> Any:
            for step, is_key in steps:
                if is_key:
                    value = value.get(step, ABSENT) if isinstance(value, Mapping) else ABSENT
                    if value is ABSENT:
                        return ABSENT
                elif value is not None:
                    value = getattr(value, step, None)  # kinds that are not served have no field
            return unset if value is None else value

        return get


def find_value_kind(field: FieldDescriptor) -> ValueKind:
    if field.message_type is not None:
        return (
            ValueKind.TIMESTAMP if field.message_type.full_name == _TIMESTAMP else ValueKind.MESSAGE
        )
    if field.type == FieldDescriptor.TYPE_BYTES:
        return ValueKind.BYTES
    return _KINDS_BY_CPP_TYPE[field.cpp_type]


def _last_key(keyed: tuple[bool, ...]) -> int:
    return max(index for index, is_key in enumerate(keyed) if is_key)

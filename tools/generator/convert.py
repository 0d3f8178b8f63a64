"""Writes convert.py: straight-line functions between structs and messages, one pair per message."""

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from generator import shapes as sh
from generator import source as src
from generator.shapes import Shapes
from generator.source import OURS, PRIVATE, PUBLIC

HEAD = '''"""Structs to messages and back. Made by tools/generate.py from proto/; not edited.

A message is built from nested dicts: protobuf fills those in place, while it copies messages.
The public functions take and give the same structs as the private ones; what only the private
package has is left out on the way to a message and stays at its default on the way back.
"""

# A function is as long as its message has fields, a line of the tables as long as its names.
# ruff: noqa: C901

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, TypeVar

from google.protobuf.message import Message

from boatyard.model.generated import boatyard, osac
from boatyard.model.wire import (
    any_fields,
    any_value,
    free_value,
    message,
    moment,
    parse_free,
    timestamp_fields,
)

_E = TypeVar("_E", bound=IntEnum)


class _Members(dict[int, _E]):
    """Enum members by number; a number without a member is the sender's mistake."""

    def __init__(self, enum: type[_E]) -> None:
        super().__init__({member.value: member for member in enum})
        self._name = enum.__name__

    def __missing__(self, number: int) -> _E:
        raise ValueError(f"{number} is not a value of {self._name}")


'''

PREFIXES = {PRIVATE: "private", PUBLIC: "public", OURS: "boatyard"}


class DifferentTypes(Exception):
    """A field has one type in the public package and another in the private one."""


def write(shapes: Shapes) -> str:
    pairs = [(m, m) for m in shapes.messages]
    for m in shapes.messages:
        twin = shapes.source.messages.get(f"{PUBLIC}.{m.name}")
        if m.file.package == PRIVATE and twin is not None:
            pairs.append((m, twin))
    parts = [HEAD]
    for enum in shapes.enums:
        parts.append(f"{_members(enum)} = _Members({sh.class_name(enum, '')})")
    free = {
        f"_{f.message_type.name.upper()} = {f.message_type.full_name!r}"
        for m in shapes.messages
        for f in shapes.fields(m)
        if f.message_type is not None and f.message_type.full_name in sh.FREE
    }
    parts += sorted(free)
    for struct, wire in pairs:
        parts.append(_fields_function(shapes, struct, wire))
        parts.append(_to_message(struct, wire))
        parts.append(_from_message(shapes, struct, wire))
    fields, to_message = "Callable[[Any], dict[str, Any]]", "Callable[[Any], Message]"
    parts.append(_table(f"TO_FIELDS: Mapping[str, {fields}]", "_{}", pairs))
    parts.append(_table(f"TO_MESSAGE: Mapping[str, {to_message}]", "{}_to_message", pairs))
    parts.append(
        _table("FROM_MESSAGE: Mapping[str, Callable[[Any], Any]]", "{}_from_message", pairs)
    )
    return "\n\n".join(parts)


def _table(declared: str, function: str, pairs: list[tuple[Descriptor, Descriptor]]) -> str:
    rows = "".join(f"    {w.full_name!r}: {function.format(_name(w))},\n" for _, w in pairs)
    return f"{declared} = {{\n{rows}}}"


def _name(wire: Descriptor) -> str:
    return f"{PREFIXES[wire.file.package]}_{sh.snake(wire.name)}"


def _members(enum: EnumDescriptor) -> str:
    return f"_{sh.snake(enum.name).upper()}"


def shared_fields(
    shapes: Shapes, struct: Descriptor, wire: Descriptor
) -> list[tuple[FieldDescriptor, FieldDescriptor]]:
    """Fields that both have, by name."""
    pairs = []
    for f in shapes.fields(struct):
        twin = wire.fields_by_name.get(f.name)
        if twin is None:
            continue
        if _kind(f) != _kind(twin):
            raise DifferentTypes(f"{struct.full_name}.{f.name} differs from {wire.full_name}")
        pairs.append((f, twin))
    return pairs


def _kind(f: FieldDescriptor) -> tuple[object, ...]:
    if src.is_map(f):
        return ("map", _kind(src.map_key(f)), _kind(src.map_value(f)))
    described = f.message_type or f.enum_type
    presence = src.is_optional(f), src.in_oneof(f)
    return (f.type, f.is_repeated, described.name if described else None, *presence)


# --- struct to message ------------------------------------------------------------------------


def _fields_function(shapes: Shapes, struct: Descriptor, wire: Descriptor) -> str:
    puts = [
        line
        for f, twin in shared_fields(shapes, struct, wire)
        for line in _put(shapes, struct, f, twin)
    ]
    lines = [f"def _{_name(wire)}(x: {sh.class_name(struct, '')}) -> dict[str, Any]:"]
    lines += ["    v: Any"] if any("(v := " in line for line in puts) else []
    lines += ["    d: dict[str, Any] = {}", *puts, "    return d"]
    return "\n".join(lines)


def _to_message(struct: Descriptor, wire: Descriptor) -> str:
    return (
        f"def {_name(wire)}_to_message(x: {sh.class_name(struct, '')}) -> Message:\n"
        f"    return message({wire.full_name!r})(**_{_name(wire)}(x))"
    )


def _put(
    shapes: Shapes, struct: Descriptor, f: FieldDescriptor, twin: FieldDescriptor
) -> list[str]:
    value = f"x.{sh.attribute(f)}"
    if src.is_map(f):
        inner = _wire_value(src.map_value(twin), "v")
        given = value if inner == "v" else f"{{k: {inner} for k, v in {value}.items()}}"
        return [f"    if {value}:", f"        d[{f.name!r}] = {given}"]
    inner = _wire_value(twin, "v")
    if src.is_repeated(f):
        given = value if inner == "v" else f"[{inner} for v in {value}]"
        return [f"    if {value}:", f"        d[{f.name!r}] = {given}"]
    return [f"    if {_present(shapes, struct, f, value)}:", f"        d[{f.name!r}] = {inner}"]


def _present(shapes: Shapes, struct: Descriptor, f: FieldDescriptor, value: str) -> str:
    bound = f"(v := {value})"
    if sh.may_be_none(shapes, struct, f):
        return f"{bound} is not None"
    if f.message_type is None or f.message_type.full_name == sh.FIELD_MASK:
        return bound
    return f"{bound} is not {sh.empty(f.message_type, '')}"


def _wire_value(f: FieldDescriptor, value: str) -> str:
    if f.enum_type is not None:
        return f"int({value})"  # protobuf takes a plain int twice as fast as a member
    if f.message_type is None:
        return value
    match f.message_type.full_name:
        case "google.protobuf.Timestamp":
            return f"timestamp_fields({value})"
        case "google.protobuf.Any":
            return f"any_fields({value})"
        case "google.protobuf.FieldMask":
            return f'{{"paths": {value}}}'
        case name if name in sh.FREE:
            return f"parse_free({value}, _{f.message_type.name.upper()})"
    return f"_{_name(f.message_type)}({value})"


# --- message to struct ------------------------------------------------------------------------


def _from_message(shapes: Shapes, struct: Descriptor, wire: Descriptor) -> str:
    made = sh.class_name(struct, "")
    lines = [f"def {_name(wire)}_from_message(m: Any) -> {made}:", f"    return {made}("]
    for f, twin in shared_fields(shapes, struct, wire):
        lines.append(f"        {sh.attribute(f)}={_take(shapes, struct, f, twin)},")
    lines.append("    )")
    return "\n".join(lines)


def _take(shapes: Shapes, struct: Descriptor, f: FieldDescriptor, twin: FieldDescriptor) -> str:
    value = f"m.{f.name}"
    if src.is_map(f):
        # Protobuf's maps iterate fast over keys only; items() is written in Python.
        inner = _python_value(src.map_value(twin), "c[k]")
        return f"{{k: {inner} for k in c}} if (c := {value}) else {{}}"
    if src.is_repeated(f):
        inner = _python_value(twin, "v")
        made = "tuple(c)" if inner == "v" else f"tuple([{inner} for v in c])"
        return f"{made} if (c := {value}) else ()"
    inner = _python_value(twin, value)
    if sh.may_be_none(shapes, struct, f):
        return f"{inner} if m.HasField({f.name!r}) else None"
    if f.message_type is None or f.message_type.full_name == sh.FIELD_MASK:
        return inner
    return f"{inner} if m.HasField({f.name!r}) else {sh.empty(f.message_type, '')}"


def _python_value(f: FieldDescriptor, value: str) -> str:
    if f.enum_type is not None:
        return f"{_members(f.enum_type)}[{value}]"
    if f.message_type is None:
        return value
    match f.message_type.full_name:
        case "google.protobuf.Timestamp":
            return f"moment({value})"
        case "google.protobuf.Any":
            return f"any_value({value})"
        case "google.protobuf.FieldMask":
            return f"tuple({value}.paths)"
        case name if name in sh.FREE:
            return f"free_value({value})"
    return f"{_name(f.message_type)}_from_message({value})"

"""How a message of the wire looks in Python. Used by every generator that writes code."""

import keyword
import re
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from generator import source as src
from generator.source import OURS, PRIVATE, Source

TIMESTAMP = "google.protobuf.Timestamp"
ANY = "google.protobuf.Any"
FIELD_MASK = "google.protobuf.FieldMask"
METADATA = f"{PRIVATE}.Metadata"
FREE = ("google.protobuf.Value", "google.protobuf.Struct", "google.protobuf.ListValue")

SCALARS = {
    FieldDescriptor.TYPE_STRING: "str",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_DOUBLE: "float",
    FieldDescriptor.TYPE_FLOAT: "float",
}
ZEROES = {"str": '""', "bytes": 'b""', "bool": "False", "float": "0.0", "int": "0"}

MODULES = {PRIVATE: "osac", OURS: "boatyard"}


@dataclass(frozen=True)
class Shapes:
    """The messages that get a struct, dependencies first, and the kinds they were reached from."""

    source: Source
    kinds: tuple[str, ...]
    messages: tuple[Descriptor, ...]
    enums: tuple[EnumDescriptor, ...]

    def fields(self, message: Descriptor) -> list[FieldDescriptor]:
        """Without those members of a oneof whose kind is not switched on."""
        return [f for f in message.fields if self._is_on(message, f)]

    def _is_on(self, message: Descriptor, f: FieldDescriptor) -> bool:
        if message.name != "Event" or not src.in_oneof(f):
            return True
        return f.message_type.name in self.kinds

    def is_recursive(self, message: Descriptor, f: FieldDescriptor) -> bool:
        return src.is_message(f) and message in _reach(self, f.message_type, set())


def choose(source: Source, kinds: tuple[str, ...], extra: tuple[str, ...]) -> Shapes:
    """Everything reachable from `kinds` and `extra` in the private package, and all of ours."""
    roots = [source.messages[f"{PRIVATE}.{name}"] for name in (*extra, *kinds)]
    roots += source.of_package(OURS)
    trial = Shapes(source=source, kinds=kinds, messages=(), enums=())
    ordered: dict[str, Descriptor] = {}
    enums: dict[str, EnumDescriptor] = {}

    def visit(message: Descriptor, above: tuple[str, ...]) -> None:
        if message.full_name in ordered or message.full_name in above:
            return
        if message.full_name.startswith("google."):
            return
        for f in trial.fields(message):
            element = src.map_value(f) if src.is_map(f) else f
            if element.message_type is not None:
                visit(element.message_type, (*above, message.full_name))
            if element.enum_type is not None:
                enums[element.enum_type.full_name] = element.enum_type
        ordered[message.full_name] = message

    for root in roots:
        visit(root, ())
    return Shapes(
        source=source,
        kinds=kinds,
        messages=tuple(ordered.values()),
        enums=tuple(enums[name] for name in sorted(enums)),
    )


def _reach(shapes: Shapes, message: Descriptor, seen: set[str]) -> set[Descriptor]:
    if message.full_name in seen or message.full_name.startswith("google."):
        return set()
    seen.add(message.full_name)
    found = {message}
    for f in shapes.fields(message):
        element = src.map_value(f) if src.is_map(f) else f
        if element.message_type is not None:
            found |= _reach(shapes, element.message_type, seen)
    return found


def snake(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def attribute(f: FieldDescriptor) -> str:
    return f"{f.name}_" if keyword.iskeyword(f.name) else f.name


def enum_words(enum: EnumDescriptor) -> dict[str, int]:
    """Value names without the prefix of the type."""
    first = str(enum.values[0].name)
    prefix = first.removesuffix("UNSPECIFIED")
    if prefix == first:  # the zero has a meaning of its own
        prefix = f"{snake(enum.name).upper()}_"
    return {str(v.name).removeprefix(prefix): v.number for v in enum.values}


def empty(message: Descriptor, inside: str) -> str:
    """The name of the one empty instance, as seen from the module `inside`."""
    return _seen_from(message, f"NO_{snake(message.name).upper()}", inside)


def class_name(described: Descriptor | EnumDescriptor, inside: str) -> str:
    return _seen_from(described, str(described.name), inside)


def _seen_from(described: Descriptor | EnumDescriptor, name: str, inside: str) -> str:
    module = MODULES[described.file.package]
    return name if module == inside else f"{module}.{name}"


def shared_base(message: Descriptor) -> str | None:
    """The class with the first two fields of the message, when it is a kind or a reference; else None."""
    match [f.name for f in message.fields[:2]]:
        case ["id", "metadata"] if message.fields[1].message_type.full_name == METADATA:
            return "Resource"
        case ["id", "name"] if message.name.endswith("Reference"):
            return "Reference"
    return None


def base_name(base: str, inside: str) -> str:
    return base if inside == MODULES[PRIVATE] else f"{MODULES[PRIVATE]}.{base}"


def element_type(f: FieldDescriptor, inside: str) -> str:
    """The Python type of one value of `f`, list and presence left aside."""
    if f.enum_type is not None:
        return class_name(f.enum_type, inside)
    if f.message_type is None:
        return SCALARS.get(f.type, "int")
    match f.message_type.full_name:
        case "google.protobuf.Timestamp":
            return "datetime"
        case "google.protobuf.Any":
            return "Mapping[str, Any]"
        case "google.protobuf.FieldMask":
            return "tuple[str, ...]"
        case name if name in FREE:
            return "Any"
    return class_name(f.message_type, inside)


def may_be_none(shapes: Shapes, message: Descriptor, f: FieldDescriptor) -> bool:
    """Whether absence is None; otherwise it is a zero, or the empty instance of the type."""
    if src.is_map(f) or src.is_repeated(f):
        return False
    if src.is_optional(f) or src.in_oneof(f):
        return True
    if f.message_type is None:
        return False
    if f.message_type.full_name == FIELD_MASK:
        return False
    return f.message_type.full_name.startswith("google.") or shapes.is_recursive(message, f)

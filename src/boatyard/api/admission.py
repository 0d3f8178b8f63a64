"""Checks of documents of every kind, made before the rules of their kind. Called by the generic create and update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from boatyard.api import fields
from boatyard.api.kinds import Kind, View
from boatyard.model import wire
from boatyard.model.errors import Refused, Violation
from boatyard.resources import metadata as metadata_rules
from boatyard.resources.metadata import shown

LONGEST_DOCUMENT = 1024 * 1024  # bytes of JSON
MOST_FINALIZERS = 32


def read(view: View, message: Any) -> Any:
    """Converts the message to a document. Refused, with the path of each field that cannot be converted."""
    try:
        return view.from_message(message)
    except (ValueError, DecodeError) as error:
        violations = list(_unreadable(message, view.descriptor, ""))
        raise Refused(
            "" if violations else f"the object cannot be read: {error}", *violations
        ) from error


def metadata_violations(kind: Kind, doc: Any, *, new: bool) -> Iterator[Violation]:
    metadata = doc.metadata
    if new:
        check = getattr(kind.rules, "name_violations", metadata_rules.name_violations)
        yield from check(metadata.name)
    yield from metadata_rules.tag_violations(metadata.labels, metadata.annotations)
    yield from metadata_rules.words_violations(metadata.display_name, metadata.description)
    if len(metadata.finalizers) > MOST_FINALIZERS:
        yield Violation("metadata.finalizers", f"at most {MOST_FINALIZERS} are kept")


def text_violations(doc: Any) -> Iterator[Violation]:
    """Violations for text that PostgreSQL cannot store, and for documents that are too long."""
    try:
        encoded = msgspec.json.encode(doc)
    except UnicodeEncodeError:
        encoded = b"\\u0000"
    if b"\\u0000" in encoded:
        yield from _nul_violations(doc, "")
    if len(encoded) > LONGEST_DOCUMENT:
        yield Violation(
            "", f"the object has {len(encoded)} bytes", f"at most {LONGEST_DOCUMENT} are kept"
        )


def hidden_violations(kind: Kind, doc: Any) -> Iterator[Violation]:
    """Violations for secrets given as `***`, which only stands for a hidden value."""
    for path in kind.sensitive:
        for at, value in fields.walk(doc, fields.split(path)):
            if fields.is_hidden(value):
                yield Violation(
                    at, "*** stands for a hidden value", "give the value, or leave it out"
                )


def _nul_violations(value: Any, at: str) -> Iterator[Violation]:
    match value:
        case str():
            if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
                yield Violation(at, f"{shown(value)} has a character that cannot be kept")
        case msgspec.Struct():
            for name in value.__struct_fields__:
                yield from _nul_violations(getattr(value, name), f"{at}.{name}" if at else name)
        case Mapping():
            for key, entry in value.items():
                yield from _nul_violations(key, at)
                yield from _nul_violations(entry, f"{at}.{key}")
        case tuple() | list():
            for index, entry in enumerate(value):
                yield from _nul_violations(entry, f"{at}[{index}]")


def _unreadable(message: Any, descriptor: Descriptor, at: str) -> Iterator[Violation]:
    """Violations for values that no document can hold: unknown enum numbers, times out of range, unknown Any types."""
    if descriptor.full_name == "google.protobuf.Any":
        yield from _try(wire.any_value, message, at)
        return
    if descriptor.full_name == "google.protobuf.Timestamp":
        yield from _try(wire.moment, message, at)
        return
    for field, value in message.ListFields():
        path = f"{at}.{field.name}" if at else field.name
        inside = field.message_type
        if field.type == FieldDescriptor.TYPE_ENUM:
            numbers = value if field.is_repeated else [value]
            for number in numbers:
                if number not in field.enum_type.values_by_number:
                    yield Violation(path, f"{number} is not a value of {field.enum_type.name}")
        elif inside is None:
            continue
        elif inside.GetOptions().map_entry:
            below = inside.fields_by_name["value"].message_type
            for key in value if below is not None else ():
                yield from _unreadable(value[key], below, f"{path}.{key}")
        elif field.is_repeated:
            for index, entry in enumerate(value):
                yield from _unreadable(entry, inside, f"{path}[{index}]")
        else:
            yield from _unreadable(value, inside, path)


def _try(read: Any, message: Message, at: str) -> Iterator[Violation]:
    try:
        read(message)
    except (ValueError, DecodeError) as error:
        yield Violation(at, str(error))

"""Checks of documents of every kind, made before the rules of their kind. Called by the generic create and update."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.message import DecodeError, Message

from boatyard.api import fields
from boatyard.api.kinds import KindView, ResourceKind
from boatyard.model import wire
from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.osac import Resource
from boatyard.resources import metadata as metadata_rules
from boatyard.resources.metadata import quote_text

LONGEST_DOCUMENT = 1024 * 1024  # bytes of JSON
MOST_FINALIZERS = 32


def read_document(view: KindView, message: Message) -> Resource:
    """Converts the message to a document. Refused, with the path of each field that cannot be converted."""
    try:
        return view.from_message(message)
    except (ValueError, DecodeError) as error:
        violations = list(_find_unreadable_values(message, view.descriptor, ""))
        raise Refused(
            "" if violations else f"the object cannot be read: {error}", *violations
        ) from error


def metadata_violations(kind: ResourceKind, doc: Resource, *, new: bool) -> Iterator[Violation]:
    metadata = doc.metadata
    if new:
        yield from kind.rules.name_violations(metadata.name)
    yield from metadata_rules.tag_violations(metadata.labels, metadata.annotations)
    yield from metadata_rules.text_violations(metadata.display_name, metadata.description)
    if len(metadata.finalizers) > MOST_FINALIZERS:
        yield Violation("metadata.finalizers", f"at most {MOST_FINALIZERS} are kept")


def text_violations(doc: Resource) -> Iterator[Violation]:
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


def hidden_violations(kind: ResourceKind, doc: Resource) -> Iterator[Violation]:
    """Violations for secrets given as `***`, which only stands for a hidden value."""
    for path in kind.sensitive:
        for at, value in fields.list_values(doc, fields.split_path(path)):
            if fields.is_hidden(value):
                yield Violation(
                    at, "*** stands for a hidden value", "give the value, or leave it out"
                )


def _nul_violations(value: object, at: str) -> Iterator[Violation]:
    match value:
        case str():
            if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
                yield Violation(at, f"{quote_text(value)} has a character that cannot be kept")
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


def _find_unreadable_values(
    message: Message, descriptor: Descriptor, at: str
) -> Iterator[Violation]:
    """Violations for values that no document can hold: unknown enum numbers, times out of range, unknown Any types."""
    if descriptor.full_name == "google.protobuf.Any":
        yield from _try_conversion(wire.any_value, message, at)
        return
    if descriptor.full_name == "google.protobuf.Timestamp":
        yield from _try_conversion(wire.moment, message, at)
        return
    for field, value in message.ListFields():
        path = f"{at}.{field.name}" if at else field.name
        inside = field.message_type
        if field.enum_type is not None:
            numbers = value if field.is_repeated else [value]
            yield from _enum_violations(numbers, field.enum_type, path)
        elif inside is None:
            continue
        elif inside.GetOptions().map_entry:
            below = inside.fields_by_name["value"].message_type
            if below is not None:
                for key in value:
                    yield from _find_unreadable_values(value[key], below, f"{path}.{key}")
        elif field.is_repeated:
            for index, entry in enumerate(value):
                yield from _find_unreadable_values(entry, inside, f"{path}[{index}]")
        else:
            yield from _find_unreadable_values(value, inside, path)


def _enum_violations(
    numbers: Iterable[int], enum: EnumDescriptor, path: str
) -> Iterator[Violation]:
    for number in numbers:
        if number not in enum.values_by_number:
            yield Violation(path, f"{number} is not a value of {enum.name}")


def _try_conversion(
    read: Callable[[Message], object], message: Message, at: str
) -> Iterator[Violation]:
    try:
        read(message)
    except (ValueError, DecodeError) as error:
        yield Violation(at, str(error))

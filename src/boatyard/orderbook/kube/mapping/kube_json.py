"""Converts structs to the JSON of Kubernetes objects and back: camelCase, enums by name, no empty fields. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar

import msgspec

from boatyard.model.errors import Refused

S = TypeVar("S", bound=msgspec.Struct)
Converter = Callable[[Any], Any]
_CAPITALS = {"id": "ID", "cidr": "CIDR"}  # as osac.openshift.io/v1alpha1 spells them


def dump(value: msgspec.Struct) -> dict[str, Any]:
    """The struct's fields that are not empty; times in RFC 3339."""
    fields: dict[str, Any] = _make_struct_dumper(type(value))(value)
    return fields


def load(cls: type[S], fields: Mapping[str, Any]) -> S:
    """The struct that was dumped. Fields that this version does not know are left out.

    Refused, with the name of the field, when a value is not of its type: others may write these objects.
    """
    try:
        return msgspec.convert(_make_struct_loader(cls)(fields), cls)
    except (msgspec.ValidationError, AttributeError, TypeError) as error:
        raise Refused(f"{cls.__name__} cannot be read: {error}", reason="Unreadable") from error


def load_readable(cls: type[S], fields: Mapping[str, Any]) -> S:
    """The struct without those of its fields that `load` would refuse."""
    return load(
        cls, {name: value for name, value in fields.items() if _can_load(cls, {name: value})}
    )


def _can_load(cls: type[msgspec.Struct], fields: Mapping[str, Any]) -> bool:
    try:
        load(cls, fields)
    except Refused:
        return False
    return True


def to_camel_case(name: str) -> str:
    first_word, *other_words = name.split("_")
    return first_word + "".join(_CAPITALS.get(word, word.capitalize()) for word in other_words)


@cache
def make_enum_prefix(enum: type[IntEnum]) -> str:
    """What the wire puts before a value's name: ORDER_PHASE_READY."""
    letters = [f"_{letter}" if letter.isupper() else letter for letter in enum.__name__]
    return "".join(letters).lstrip("_").upper() + "_"


def format_time(moment: datetime) -> str:
    text: str = msgspec.to_builtins(moment)
    return text


# --- values to JSON ----------------------------------------------------------------------------


@cache
def _make_struct_dumper(cls: type[msgspec.Struct]) -> Converter:
    fields = [
        (
            field.name,
            to_camel_case(field.encode_name),
            field.default,
            _make_field_dumper(field.type),
        )
        for field in msgspec.structs.fields(cls)
    ]

    def dump_struct(value: Any) -> dict[str, Any]:
        json_object = {}
        for attribute, name, default, shape in fields:
            content = getattr(value, attribute)
            # Maps have a factory for a default: an empty one is left out by its length.
            if content is default or content is None or content == default or content == {}:
                continue
            json_object[name] = content if shape is None else shape(content)
        return json_object

    return dump_struct


def _make_field_dumper(kind: Any) -> Converter | None:
    """The function that dumps values of an annotated type; None when they stay as they are."""
    return _make_dump_converter(msgspec.inspect.type_info(kind))


def _make_dump_converter(kind: msgspec.inspect.Type) -> Converter | None:
    match kind:
        case msgspec.inspect.StructType(cls=cls):
            return lambda value: _make_struct_dumper(cls)(value)  # built when first needed
        case msgspec.inspect.EnumType(cls=cls):
            prefix = make_enum_prefix(cls)
            return lambda value: prefix + value.name
        case msgspec.inspect.DateTimeType():
            return format_time
        case msgspec.inspect.VarTupleType(item_type=item):
            inner = _make_dump_converter(item)
            return list if inner is None else _convert_each(inner)
        case msgspec.inspect.DictType(value_type=item):
            inner = _make_dump_converter(item)
            return dict if inner is None else _convert_each_value(inner)
        case msgspec.inspect.UnionType(types=types):
            members = [
                member for member in types if not isinstance(member, msgspec.inspect.NoneType)
            ]
            return _make_dump_converter(members[0])
    return None


# --- JSON to values ----------------------------------------------------------------------------


@cache
def _make_struct_loader(cls: type[Any]) -> Converter:
    fields = {
        to_camel_case(field.encode_name): (
            field.encode_name,
            _make_load_converter(_get_type_info(field.type)),
        )
        for field in msgspec.structs.fields(cls)
    }

    def load_struct(json_object: Mapping[str, Any]) -> dict[str, Any]:
        values = {}
        for name, content in json_object.items():
            field = fields.get(name)
            if field is not None and content is not None:
                encoded, shape = field
                values[encoded] = content if shape is None else shape(content)
        return values

    return load_struct


def _get_type_info(kind: Any) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(kind)


def _make_load_converter(kind: msgspec.inspect.Type) -> Converter | None:
    match kind:
        case msgspec.inspect.StructType(cls=cls):
            return lambda value: _make_struct_loader(cls)(value)
        case msgspec.inspect.EnumType(cls=cls):
            prefix = make_enum_prefix(cls)
            numbers = {prefix + member.name: member.value for member in cls}
            return lambda value: numbers.get(value, value)
        case msgspec.inspect.VarTupleType(item_type=item):
            inner = _make_load_converter(item)
            return None if inner is None else _convert_each(inner)
        case msgspec.inspect.DictType(value_type=item):
            inner = _make_load_converter(item)
            return None if inner is None else _convert_each_value(inner)
        case msgspec.inspect.UnionType(types=types):
            members = [
                member for member in types if not isinstance(member, msgspec.inspect.NoneType)
            ]
            return _make_load_converter(members[0])
    return None


def _convert_each(inner: Converter) -> Converter:
    return lambda values: [inner(value) for value in values]


def _convert_each_value(inner: Converter) -> Converter:
    return lambda values: {key: inner(value) for key, value in values.items()}

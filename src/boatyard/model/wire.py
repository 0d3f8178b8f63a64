"""The protobuf messages at run time: one descriptor pool with Google's files and ours, and message classes by name.

The pool is protobuf's default one, so that gRPC reflection finds everything in it.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from google.api import annotations_pb2, field_behavior_pb2, httpbody_pb2
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message

# What our files import, and what tenants may put into an Any.
_GOOGLE_MODULES = (
    annotations_pb2,
    field_behavior_pb2,
    httpbody_pb2,
    any_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)


def _load_files() -> tuple[str, ...]:
    stored = Path(__file__).with_name("generated") / "wire.binpb"
    files = descriptor_pb2.FileDescriptorSet.FromString(stored.read_bytes())
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return tuple(file.name for file in files.file)


pool = descriptor_pool.Default()
_FILES = _load_files()


def files() -> tuple[FileDescriptor, ...]:
    """Our files, dependencies first."""
    return tuple(pool.FindFileByName(name) for name in _FILES)


@cache
def message(full_name: str) -> type[Message]:
    """The class of a message, such as `osac.public.v1.Cluster`; KeyError when there is none."""
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(full_name))


@cache
def services() -> Mapping[str, ServiceDescriptor]:
    """Every service of ours by full name."""
    return {
        service.full_name: service for file in files() for service in file.services_by_name.values()
    }


# --- values that have a shape of their own in Python ------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPE_URL_PREFIX = "type.googleapis.com/"
# Wrappers whose JSON is their plain value. 64-bit integers are strings in JSON and go through json_format.
_PLAIN_WRAPPERS: Mapping[str, Callable[..., Message]] = {
    f"{_TYPE_URL_PREFIX}{cls.DESCRIPTOR.full_name}": cls
    for cls in (
        wrappers_pb2.StringValue,
        wrappers_pb2.BoolValue,
        wrappers_pb2.Int32Value,
        wrappers_pb2.UInt32Value,
    )
}


def timestamp_fields(moment: datetime) -> dict[str, int]:
    """A moment as the fields of a Timestamp, exact to the microsecond."""
    since = moment - _EPOCH
    return {
        "seconds": since.days * 86400 + since.seconds,
        "nanos": since.microseconds * 1000,
    }


def moment(stamp: Any) -> datetime:
    """A Timestamp as a moment; what is finer than a microsecond is cut off."""
    try:
        return _EPOCH + timedelta(0, stamp.seconds, stamp.nanos // 1000)
    except OverflowError as error:
        raise ValueError(f"{stamp.seconds} seconds is outside the years 1 to 9999") from error


def any_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON form of an Any ({"@type": …, "value": …}) as the fields of the message."""
    type_url = value.get("@type")
    if not isinstance(type_url, str):
        raise ValueError(
            f'an Any needs "@type", such as {_TYPE_URL_PREFIX}google.protobuf.StringValue'
        )
    _refuse_nesting(type_url)
    inner = value.get("value")
    short = _PLAIN_WRAPPERS.get(type_url)
    try:
        if short is not None and len(value) == 2:
            return {"type_url": type_url, "value": short(value=inner).SerializeToString()}
        parsed = json_format.ParseDict(dict(value), any_pb2.Any(), descriptor_pool=pool)
    except (json_format.Error, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot read a value of type {type_url}: {error}") from error
    return {"type_url": parsed.type_url, "value": parsed.value}


def any_value(packed: Any) -> dict[str, Any]:
    """An Any as its JSON form. Raises ValueError, which names the type, when the type is unknown."""
    if not packed.type_url:
        raise ValueError("an Any without a type cannot be read")
    _refuse_nesting(packed.type_url)
    short = _PLAIN_WRAPPERS.get(packed.type_url)
    try:
        if short is not None:
            inner: Any = short()
            inner.ParseFromString(packed.value)
            return {"@type": packed.type_url, "value": inner.value}
        json_value: dict[str, Any] = json_format.MessageToDict(
            packed, preserving_proto_field_name=True, descriptor_pool=pool
        )
    except (json_format.Error, TypeError, DecodeError, RecursionError) as error:
        raise ValueError(f"cannot read a value of type {packed.type_url}") from error
    return json_value


def _refuse_nesting(type_url: str) -> None:
    # Nobody needs it, and a long chain of them would exhaust the stack of whoever reads it.
    if type_url.endswith("/google.protobuf.Any"):
        raise ValueError("an Any inside an Any is not accepted")


def free_value(value: Any) -> Any:
    """A Value, Struct or ListValue as plain JSON data."""
    return json_format.MessageToDict(value)


def parse_free(value: Any, full_name: str) -> Message:
    """Plain JSON data as a Value, Struct or ListValue."""
    return json_format.ParseDict(value, message(full_name)())

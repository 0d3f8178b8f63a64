"""Structs survive the way to a message and back, and the public way loses only what is private."""

import types
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from google.protobuf import any_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from boatyard.model import wire
from boatyard.model.generated import boatyard, convert, osac, projection

MODULES = {"osac.private.v1": osac, "osac.public.v1": osac, "boatyard.v1": boatyard}
PREFIX = "type.googleapis.com/google.protobuf."
KINDS = sorted(projection.SENSITIVE)

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
whole = st.integers(-(2**31), 2**31 - 1)
packed = st.one_of(
    text.map(lambda v: {"@type": f"{PREFIX}StringValue", "value": v}),
    st.booleans().map(lambda v: {"@type": f"{PREFIX}BoolValue", "value": v}),
    whole.map(lambda v: {"@type": f"{PREFIX}Int32Value", "value": v}),
    whole.map(lambda v: {"@type": f"{PREFIX}Int64Value", "value": str(v)}),
    st.just({"@type": f"{PREFIX}Struct", "value": {"a": ["b", True, None]}}),
)
SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {
    str: text,
    int: whole,
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bytes: st.binary(max_size=8),
    datetime: st.datetimes(timezones=st.just(UTC)),
}


def struct_of(name: str) -> type[msgspec.Struct]:
    package, _, short = name.rpartition(".")
    found: type[msgspec.Struct] = getattr(MODULES[package], short)
    return found


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation as the generator writes them."""
    if kind in SCALARS:
        return SCALARS[kind]
    if kind == Mapping[str, Any]:
        return packed
    if get_origin(kind) in (Union, types.UnionType):
        return st.one_of(st.none(), values_of(get_args(kind)[0]))
    if get_origin(kind) is tuple:
        return st.lists(values_of(get_args(kind)[0]), max_size=2).map(tuple)
    if get_origin(kind) is not None:
        key, value = get_args(kind)
        return st.dictionaries(values_of(key), values_of(value), max_size=2)
    if issubclass(kind, IntEnum):
        return st.sampled_from(list(kind))
    return structs(kind)


@cache
def structs(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    payload = [name for name in hints if kind is osac.Event and _is_payload(name)]
    plain = {name: values_of(hint) for name, hint in hints.items() if name not in payload}
    made = st.fixed_dictionaries({}, optional=plain)
    if not payload:
        return made.map(lambda given: kind(**given))
    # Of a oneof there is one at most.
    chosen = st.sampled_from(payload).flatmap(
        lambda name: st.tuples(st.just(name), values_of(get_args(hints[name])[0]))
    )
    return st.tuples(made, chosen).map(lambda both: kind(**both[0], **dict([both[1]])))


def _is_payload(name: str) -> bool:
    field = wire.message("osac.private.v1.Event").DESCRIPTOR.fields_by_name[name]
    return field.containing_oneof is not None


def tops(*packages: str) -> list[str]:
    """Kinds, and messages of ours that are part of no other: they reach all the rest."""
    names = [n for n in convert.TO_MESSAGE if n.rpartition(".")[0] in packages]
    hints = {n: str(get_type_hints(struct_of(n))) for n in names}

    def is_part(name: str) -> bool:
        kind = struct_of(name)
        return any(f"{kind.__module__}.{kind.__qualname__}" in hint for hint in hints.values())

    return [n for n in names if n.rpartition(".")[2] in KINDS or not is_part(n)]


@pytest.mark.parametrize("name", tops("osac.private.v1", "boatyard.v1"))
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_struct_survives_the_wire(name: str, data: st.DataObject) -> None:
    given_struct = data.draw(structs(struct_of(name)))
    message = wire.message(name)()
    message.ParseFromString(convert.TO_MESSAGE[name](given_struct).SerializeToString())
    assert convert.FROM_MESSAGE[name](message) == given_struct


@pytest.mark.parametrize("name", tops("osac.public.v1"))
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_the_public_way_loses_only_what_is_private(name: str, data: st.DataObject) -> None:
    given_struct = data.draw(structs(struct_of(name)))
    message = wire.message(name)()
    message.ParseFromString(convert.TO_MESSAGE[name](given_struct).SerializeToString())
    assert convert.FROM_MESSAGE[name](message) == _seen_by_tenants(given_struct)


def _seen_by_tenants(value: Any) -> Any:
    """An independent projection: by the descriptors of the public package."""
    if isinstance(value, tuple):
        return tuple(_seen_by_tenants(v) for v in value)
    if isinstance(value, Mapping):
        return {k: _seen_by_tenants(v) for k, v in value.items()}
    if not isinstance(value, msgspec.Struct):
        return value
    shown = wire.message(f"osac.public.v1.{type(value).__name__}").DESCRIPTOR.fields_by_name
    kept = {n: getattr(value, n) for n in value.__struct_fields__ if n in shown}
    return type(value)(**{n: _seen_by_tenants(v) for n, v in kept.items()})


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_struct_survives_the_ledgers_json(kind: str, data: st.DataObject) -> None:
    struct = getattr(osac, kind, None) or getattr(boatyard, kind)
    given_struct = data.draw(structs(struct))
    assert msgspec.json.decode(msgspec.json.encode(given_struct), type=struct) == given_struct


def test_presence_of_an_empty_message_is_kept() -> None:
    absent = convert.private_cluster_to_message(osac.Cluster())
    present = convert.private_cluster_to_message(osac.Cluster(spec=osac.ClusterSpec()))
    assert not absent.HasField("spec")
    assert present.HasField("spec")
    again = convert.private_cluster_from_message(present)
    assert again.spec is not osac.NO_CLUSTER_SPEC
    assert convert.private_cluster_from_message(absent).spec is osac.NO_CLUSTER_SPEC
    stored = msgspec.json.encode(osac.Cluster(spec=osac.ClusterSpec()))
    assert stored == b'{"spec":{}}'


def test_an_explicit_zero_is_kept_where_the_wire_keeps_it() -> None:
    given_struct = osac.ClusterVersionSpec(enabled=False)
    message = convert.private_cluster_version_spec_to_message(given_struct)
    assert message.HasField("enabled")
    assert convert.private_cluster_version_spec_from_message(message).enabled is False


def test_an_any_of_an_unknown_type_is_named() -> None:
    unknown = {"@type": "type.googleapis.com/acme.v1.Rocket", "value": 1}
    given_struct = osac.ClusterSpec(template_parameters={"p": unknown})
    with pytest.raises(ValueError, match=r"acme\.v1\.Rocket"):
        convert.private_cluster_spec_to_message(given_struct)
    stranger = any_pb2.Any(type_url="type.googleapis.com/acme.v1.Rocket", value=b"\x08\x01")
    message: Any = wire.message("osac.private.v1.ClusterSpec")()
    message.template_parameters["p"].CopyFrom(stranger)
    with pytest.raises(ValueError, match=r"acme\.v1\.Rocket"):
        convert.private_cluster_spec_from_message(message)


@pytest.mark.parametrize(
    "packed_badly",
    [
        pytest.param({}, id="no type"),
        pytest.param({"@type": f"{PREFIX}StringValue", "value": 7}, id="another type inside"),
        pytest.param({"@type": f"{PREFIX}Int32Value", "value": 2**40}, id="too large"),
        pytest.param({"@type": 7, "value": 2}, id="a type that is no text"),
    ],
)
def test_an_any_that_cannot_be_read_is_a_value_error(packed_badly: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        wire.any_fields(packed_badly)


def test_an_any_without_a_type_is_a_value_error() -> None:
    with pytest.raises(ValueError):
        wire.any_value(any_pb2.Any())


def test_an_any_inside_an_any_is_a_value_error() -> None:
    outer = any_pb2.Any()
    outer.Pack(any_pb2.Any(type_url=f"{PREFIX}Empty"))
    with pytest.raises(ValueError):
        wire.any_value(outer)
    with pytest.raises(ValueError):
        wire.any_fields({"@type": f"{PREFIX}Any", "value": {"@type": f"{PREFIX}Empty"}})


def test_an_enum_number_without_a_member_is_a_value_error() -> None:
    message = wire.message("osac.public.v1.ClusterStatus")(state=57)
    with pytest.raises(ValueError, match="57 is not a value of ClusterState"):
        convert.public_cluster_status_from_message(message)


def test_a_moment_outside_pythons_calendar_is_a_value_error() -> None:
    message = wire.message("osac.private.v1.Metadata")(creation_timestamp={"seconds": 2**60})
    with pytest.raises(ValueError):
        convert.private_metadata_from_message(message)

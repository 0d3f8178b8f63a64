"""Structs survive the way to a message and back, and the public way loses only what is private."""

from collections.abc import Mapping
from typing import Any, get_type_hints

import msgspec
import pytest
from google.protobuf import any_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from boatyard.model import wire
from boatyard.model.generated import boatyard, convert, osac, projection
from tests.support.structs import PREFIX, structs

MODULES = {"osac.private.v1": osac, "osac.public.v1": osac, "boatyard.v1": boatyard}
KINDS = sorted(projection.SENSITIVE)


def struct_of(name: str) -> type[msgspec.Struct]:
    package, _, short = name.rpartition(".")
    found: type[msgspec.Struct] = getattr(MODULES[package], short)
    return found


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

"""The pinned contract is served whole, and what is ours beside it starts at 1000."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.api import annotations_pb2, field_behavior_pb2
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import (
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    FileDescriptor,
    MethodDescriptor,
)

from boatyard.model import wire

CONTRACT = Path(__file__).parents[2] / "proto" / "osac" / "contract.txt"
PACKAGES = ("osac.public.v1", "osac.private.v1")


def contract() -> set[str]:
    lines = CONTRACT.read_text().splitlines()
    return {line for line in lines if not line.startswith("#")}


def test_every_line_of_the_pinned_contract_is_on_the_wire() -> None:
    assert len(contract()) > 3900
    assert missing(contract()) == []


def test_additions_to_pinned_messages_and_enums_are_numbered_from_1000() -> None:
    assert numbered_too_low(served()) == []


def test_calls_are_not_added_to_pinned_services() -> None:
    pinned = contract()
    assert [line for line in served() if "/" in line.split()[0] and line not in pinned] == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("osac.public.v1.Cluster.flavour 5 string", id="a field that is not there"),
        pytest.param("osac.public.v1.Cluster.spec 4 ClusterSpec", id="another number"),
        pytest.param("osac.public.v1.Cluster.spec 3 string", id="another type"),
        pytest.param("osac.public.v1.ClusterState.CLUSTER_STATE_READY 9", id="another value"),
    ],
)
def test_what_the_wire_does_not_have_is_noticed(line: str) -> None:
    assert missing({line}) == [line]


def test_an_addition_below_1000_is_noticed() -> None:
    planted = "osac.public.v1.Cluster.flavour 5 string"
    ours = "osac.public.v1.Cluster.flavour 1004 string"
    assert numbered_too_low([planted, ours]) == [planted]


def missing(pinned: set[str]) -> list[str]:
    return sorted(pinned - set(served()))


def numbered_too_low(lines: list[str]) -> list[str]:
    pinned = contract()
    names = {line.split()[0] for line in pinned}
    ours = [line for line in lines if line not in pinned and _belongs_to(line, names)]
    return [line for line in ours if int(line.split()[1]) < 1000]


def _belongs_to(line: str, names: set[str]) -> bool:
    """Whether the line is a field or value of something that the contract has."""
    word = line.split()[0]
    return " " in line and "/" not in word and word.rpartition(".")[0] in names


# --- the descriptors in the contract's words --------------------------------------------------


def served() -> list[str]:
    files = [file for file in wire.files() if file.package in PACKAGES]
    return [line for file in files for line in _of_file(file)]


def _of_file(file: FileDescriptor) -> Iterator[str]:
    for message in file.message_types_by_name.values():
        yield from _of_message(message)
    for enum in file.enum_types_by_name.values():
        yield from _of_enum(enum)
    for service in file.services_by_name.values():
        for method in service.methods:
            yield _of_method(method)


def _of_message(message: Descriptor) -> Iterator[str]:
    yield message.full_name
    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    reserved = [str(n) for r in proto.reserved_range for n in range(r.start, r.end)]
    reserved += [f'"{name}"' for name in proto.reserved_name]
    if reserved:
        yield f"{message.full_name} reserved {', '.join(reserved)}"
    for field in message.fields:
        yield _of_field(field)


def _of_field(field: FieldDescriptor) -> str:
    words = [f"{field.full_name} {field.number}"]
    entry = field.message_type if field.is_repeated else None
    if entry is not None and entry.GetOptions().map_entry:
        key, value = (_kind(entry.fields_by_name[name]) for name in ("key", "value"))
        words.append(f"map<{key}, {value}>")
    else:
        words += ["repeated"] if field.is_repeated else []
        oneof = field.containing_oneof
        synthetic = oneof is not None and oneof.name == f"_{field.name}"
        words += ["optional"] if synthetic else []
        words.append(_kind(field))
        words += [f"oneof={oneof.name}"] if oneof is not None and not synthetic else []
    behaviors = field.GetOptions().Extensions[field_behavior_pb2.field_behavior]
    if behaviors:
        names = [field_behavior_pb2.FieldBehavior.Name(b) for b in behaviors]
        words.append(",".join(sorted(names)))
    return " ".join(words)


def _kind(field: FieldDescriptor) -> str:
    described = field.message_type or field.enum_type
    if described is not None:
        return str(described.name)
    name = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)
    return name.removeprefix("TYPE_").lower()


def _of_enum(enum: EnumDescriptor) -> Iterator[str]:
    yield enum.full_name
    for value in enum.values:
        yield f"{enum.full_name}.{value.name} {value.number}"


def _of_method(method: MethodDescriptor) -> str:
    def side(message: Descriptor, streaming: bool) -> str:
        own = message.file.package == method.containing_service.file.package
        return ("stream " if streaming else "") + (message.name if own else message.full_name)

    asked = side(method.input_type, method.client_streaming)
    answered = side(method.output_type, method.server_streaming)
    line = f"{method.containing_service.full_name}/{method.name} {asked} -> {answered}"
    http = method.GetOptions().Extensions[annotations_pb2.http]
    verb = http.WhichOneof("pattern")
    if verb is None:
        return line
    bound = f"{verb.upper()} {getattr(http, verb)}"
    return f"{line} | {bound} body={http.body or '-'} response_body={http.response_body or '-'}"

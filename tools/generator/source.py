"""The wire as the generators see it: descriptors, with comments and validation rules by name."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from google.api import annotations_pb2, field_behavior_pb2, httpbody_pb2
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
)
from google.protobuf.descriptor import (
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    ServiceDescriptor,
)
from grpc_tools import protoc

PRIVATE = "osac.private.v1"
PUBLIC = "osac.public.v1"
OURS = "boatyard.v1"

# Named so that the pool holds them before the files that import them.
GOOGLE = (
    annotations_pb2,
    field_behavior_pb2,
    httpbody_pb2,
    any_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
)

BEHAVIORS = {"REQUIRED": 2, "OUTPUT_ONLY": 3, "IMMUTABLE": 5}


@dataclass
class Source:
    """Every file of ours, dependencies first."""

    files: list[descriptor_pb2.FileDescriptorProto]
    messages: dict[str, Descriptor] = field(default_factory=dict)
    enums: dict[str, EnumDescriptor] = field(default_factory=dict)
    services: dict[str, ServiceDescriptor] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)

    def of_package(self, package: str) -> list[Descriptor]:
        return [m for m in self.messages.values() if m.file.package == package]


class BadProto(Exception):
    """protoc refused the files; it has said why."""


def read(folder: Path) -> Source:
    """Compiles every .proto file in `folder` and reads comments along."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "all.binpb"
        includes = [folder, resources.files("grpc_tools") / "_proto", _googleapis()]
        arguments = ["protoc", *(f"-I{path}" for path in includes)]
        arguments += [f"--descriptor_set_out={out}", "--include_source_info", *names]
        if protoc.main(arguments) != 0:
            raise BadProto(f"protoc does not accept the files in {folder.name}/")
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    source = Source(files=_dependencies_first(list(files.file)))
    pool = descriptor_pool.Default()
    for file in source.files:
        _note_comments(file, source)
        file.ClearField("source_code_info")
        pool.AddSerializedFile(file.SerializeToString(deterministic=True))
    for file in source.files:
        described = pool.FindFileByName(file.name)
        source.messages.update({m.full_name: m for m in described.message_types_by_name.values()})
        source.enums.update({e.full_name: e for e in described.enum_types_by_name.values()})
        source.services.update({s.full_name: s for s in described.services_by_name.values()})
    return source


def _googleapis() -> Path:
    return Path(annotations_pb2.__file__).parents[2]


def _dependencies_first(
    files: list[descriptor_pb2.FileDescriptorProto],
) -> list[descriptor_pb2.FileDescriptorProto]:
    by_name = {file.name: file for file in files}
    ordered: dict[str, descriptor_pb2.FileDescriptorProto] = {}

    def visit(name: str) -> None:
        if name in ordered or name not in by_name:
            return
        for dependency in sorted(by_name[name].dependency):
            visit(dependency)
        ordered[name] = by_name[name]

    for name in sorted(by_name):
        visit(name)
    return list(ordered.values())


def _note_comments(file: descriptor_pb2.FileDescriptorProto, source: Source) -> None:
    for location in file.source_code_info.location:
        text = (location.leading_comments or location.trailing_comments).strip()
        name = _name_at(file, list(location.path))
        if not text or name is None:
            continue
        lines = [line.strip() for line in text.splitlines()]
        rules = [line for line in lines if line.startswith("validate: ")]
        words = [line for line in lines if not line.startswith("validate: ")]
        if rules:
            source.rules[name] = rules[0].removeprefix("validate: ")
        if words:
            source.comments[name] = " ".join(words)


def _name_at(file: descriptor_pb2.FileDescriptorProto, path: list[int]) -> str | None:
    match path:
        case [4, message]:
            return f"{file.package}.{file.message_type[message].name}"
        case [4, message, 2, number]:
            declared = file.message_type[message]
            return f"{file.package}.{declared.name}.{declared.field[number].name}"
        case [5, enum, 2, number]:
            listed = file.enum_type[enum]
            return f"{file.package}.{listed.name}.{listed.value[number].name}"
        case [6, service, 2, method]:
            offered = file.service[service]
            return f"{file.package}.{offered.name}.{offered.method[method].name}"
    return None


# --- questions about one field ----------------------------------------------------------------


def is_map(f: FieldDescriptor) -> bool:
    return bool(f.message_type and f.message_type.GetOptions().map_entry)


def map_value(f: FieldDescriptor) -> FieldDescriptor:
    return f.message_type.fields_by_name["value"]


def map_key(f: FieldDescriptor) -> FieldDescriptor:
    return f.message_type.fields_by_name["key"]


def is_message(f: FieldDescriptor) -> bool:
    return f.message_type is not None and not is_map(f)


def is_repeated(f: FieldDescriptor) -> bool:
    return bool(f.is_repeated) and not is_map(f)


def in_oneof(f: FieldDescriptor) -> bool:
    return f.containing_oneof is not None and f.containing_oneof.name != f"_{f.name}"


def is_optional(f: FieldDescriptor) -> bool:
    """Whether the file says `optional`."""
    return f.containing_oneof is not None and f.containing_oneof.name == f"_{f.name}"


def is_sensitive(f: FieldDescriptor) -> bool:
    return bool(f.GetOptions().debug_redact)


def has_behavior(f: FieldDescriptor, word: str) -> bool:
    return BEHAVIORS[word] in f.GetOptions().Extensions[field_behavior_pb2.field_behavior]


# --- validation rules -------------------------------------------------------------------------


def parse_rule(text: str) -> dict[str, object]:
    """`string { min_len: 1 }` as {"string": {"min_len": 1}}; a repeated word becomes a list."""
    tokens = iter(re.findall(r'"(?:[^"\\]|\\.)*"|[{}:]|[^\s{}:"]+', text))
    return _parse_block(tokens)


def _parse_block(tokens: Iterator[str]) -> dict[str, object]:
    block: dict[str, object] = {}
    for word in tokens:
        if word == "}":
            break
        after = next(tokens)
        value = _parse_block(tokens) if after == "{" else _parse_scalar(next(tokens))
        if word in block:
            before = block[word]
            block[word] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            block[word] = value
    return block


def _parse_scalar(token: str) -> object:
    if token.startswith('"'):
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    if token in ("true", "false"):
        return token == "true"
    return int(token) if re.fullmatch(r"-?\d+", token) else token

"""gRPC server reflection, v1 and v1alpha. Called by the gRPC server; grpcurl and the console's bridge ask it.

The library ships v1alpha only; v1 has the same messages under another name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cache
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message
from grpc_reflection.v1alpha import reflection_pb2

from boatyard.model import wire

V1 = "grpc.reflection.v1"
V1ALPHA = "grpc.reflection.v1alpha"
SERVICE = "ServerReflection"


def make_handlers(services: Sequence[str]) -> list[grpc.GenericRpcHandler]:
    """Returns a handler for each version, which describes these services and the types they use."""
    _define_v1()
    names = sorted({*services, f"{V1}.{SERVICE}", f"{V1ALPHA}.{SERVICE}"})
    return [_make_handler(version, names) for version in (V1, V1ALPHA)]


def _make_handler(version: str, services: Sequence[str]) -> grpc.GenericRpcHandler:
    request_type = _message_class(f"{version}.ServerReflectionRequest")
    response_type = _message_class(f"{version}.ServerReflectionResponse")

    async def info(requests: AsyncIterator[Any], _context: Any) -> AsyncIterator[Message]:
        async for request in requests:
            yield response_type(
                valid_host=request.host,
                original_request=request,
                **_make_response(request, services),
            )

    method = grpc.stream_stream_rpc_method_handler(
        info,
        request_deserializer=request_type.FromString,
        response_serializer=response_type.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(
        f"{version}.{SERVICE}", {"ServerReflectionInfo": method}
    )


def _make_response(request: Any, services: Sequence[str]) -> dict[str, Any]:
    try:
        match request.WhichOneof("message_request"):
            case "list_services":
                return {
                    "list_services_response": {"service": [{"name": name} for name in services]}
                }
            case "file_by_filename":
                file = wire.pool.FindFileByName(request.file_by_filename)
            case "file_containing_symbol":
                file = wire.pool.FindFileContainingSymbol(request.file_containing_symbol)
            case "file_containing_extension":
                extension_request = request.file_containing_extension
                extended = wire.pool.FindMessageTypeByName(extension_request.containing_type)
                number = extension_request.extension_number
                extension: Any = wire.pool.FindExtensionByNumber(extended, number)
                file = extension.file
            case "all_extension_numbers_of_type":
                return _list_extensions(request.all_extension_numbers_of_type)
            case _:
                return _make_error(grpc.StatusCode.INVALID_ARGUMENT, "nothing is asked for")
    except KeyError:
        return _make_error(grpc.StatusCode.NOT_FOUND, "there is no such name")
    files = [_serialize_file(descriptor) for descriptor in _with_dependencies(file, set())]
    return {"file_descriptor_response": {"file_descriptor_proto": files}}


def _list_extensions(name: str) -> dict[str, Any]:
    extended = wire.pool.FindMessageTypeByName(name)
    numbers = sorted(extension.number for extension in wire.pool.FindAllExtensions(extended))
    answer = {"base_type_name": name, "extension_number": numbers}
    return {"all_extension_numbers_response": answer}


def _make_error(code: grpc.StatusCode, message: str) -> dict[str, Any]:
    return {"error_response": {"error_code": code.value[0], "error_message": message}}


def _with_dependencies(file: FileDescriptor, visited: set[str]) -> Iterator[FileDescriptor]:
    if file.name in visited:
        return
    visited.add(file.name)
    yield file
    for dependency in file.dependencies:
        yield from _with_dependencies(dependency, visited)


@cache
def _serialize_file(file: FileDescriptor) -> bytes:
    serialized: bytes = file.serialized_pb
    return serialized


@cache
def _define_v1() -> None:
    """Adds the v1 file to the descriptor pool: the v1alpha file with its package renamed."""
    file = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(file)
    file.name = "grpc/reflection/v1/reflection.proto"
    file.package = V1
    old, new = f".{V1ALPHA}.", f".{V1}."
    for message in file.message_type:
        for field in filter(lambda field: field.type_name, message.field):
            field.type_name = field.type_name.replace(old, new)
    for service in file.service:
        for method in service.method:
            method.input_type = method.input_type.replace(old, new)
            method.output_type = method.output_type.replace(old, new)
    wire.pool.AddSerializedFile(file.SerializeToString())


def _message_class(name: str) -> type[Message]:
    return message_factory.GetMessageClass(wire.pool.FindMessageTypeByName(name))

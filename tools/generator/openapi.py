"""Writes the OpenAPI document of every REST binding."""

import json
import re
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

from generator import source as src
from generator.schemas import WELL_KNOWN, Schema, Writer
from generator.source import Source
from generator.tables import bindings

HTTP_BODY = "google.api.HttpBody"
ERRORS = {
    "400": "The request is wrong; the details name every field.",
    "401": "Nobody is known by this token.",
    "403": "The caller may not do this.",
    "404": "There is no such object, or not for this caller.",
    "409": "It exists already, or has changed since it was read.",
    "default": "Any other failure; 429, 500, 501, 503 and 504 as in gRPC's mapping.",
}
STATUS: Schema = {
    "type": "object",
    "description": "The gRPC status of a failed call.",
    "properties": {
        "code": {"type": "integer", "format": "int32"},
        "message": {"type": "string"},
        "details": {"type": "array", "items": WELL_KNOWN["google.protobuf.Any"]},
    },
}


def write(source: Source) -> str:
    writer = Writer(source)
    paths: dict[str, dict[str, Any]] = {}
    used: dict[str, Descriptor] = {}
    for verb, path, service, call, body, answer, streaming in bindings(source):
        method = source.services[service].methods_by_name[call]
        operation = _operation(writer, method, path, body, answer, streaming)
        paths.setdefault(_plain(path), {})[verb.lower()] = operation
        for message in (method.input_type, method.output_type):
            _collect(message, used)
    schemas = {m.full_name: writer.message(m) for m in used.values()}
    for message in used.values():
        for f in message.fields:
            enum = (src.map_value(f) if src.is_map(f) else f).enum_type
            if enum is not None:
                schemas[enum.full_name] = writer.enum(enum)
    schemas["google.rpc.Status"] = STATUS
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Boatyard",
            "version": "v1",
            "description": "JSON names are snake_case, enums are names, 64-bit integers are "
            "strings, zero values are left out.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}],
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": {_response_name(code): _failure(text) for code, text in ERRORS.items()},
            "schemas": _referred_to(paths, schemas),
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _plain(path: str) -> str:
    """`{object.id}` and `{id}` are the same place."""
    return path.replace("{object.", "{")


def _operation(
    writer: Writer, method: MethodDescriptor, path: str, body: str, answer: str, streaming: bool
) -> dict[str, Any]:
    service = method.containing_service
    in_path = re.findall(r"\{([\w.]+)\}", path)
    operation: dict[str, Any] = {
        "operationId": f"{service.full_name}.{method.name}",
        "tags": [service.full_name],
    }
    if comment := writer.source.comments.get(method.full_name):
        operation["description"] = comment
    parameters = [
        {
            "name": name.removeprefix("object."),
            "in": "path",
            "required": True,
            "schema": {"type": "string"},
        }
        for name in in_path
    ]
    if body != "*":
        parameters += [
            _query(writer, f)
            for f in method.input_type.fields
            if f.name != body and f.name not in in_path
        ]
    if parameters:
        operation["parameters"] = parameters
    if body:
        given = _part(writer, method.input_type, "" if body == "*" else body)
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": given}},
        }
    operation["responses"] = _responses(writer, method, answer, streaming, bool(in_path))
    return operation


def _query(writer: Writer, f: FieldDescriptor) -> dict[str, Any]:
    made = {"name": f.name, "in": "query", "schema": writer.field(f)}
    if comment := made["schema"].pop("description", None):
        made["description"] = comment
    return made


def _part(writer: Writer, message: Descriptor, name: str) -> Schema:
    return writer.field(message.fields_by_name[name]) if name else writer.refer(message)


def _responses(
    writer: Writer, method: MethodDescriptor, answer: str, streaming: bool, one: bool
) -> dict[str, Any]:
    if method.output_type.full_name == HTTP_BODY:
        content = {"*/*": {"schema": {"type": "string"}}}
    else:
        shown = _part(writer, method.output_type, answer)
        if streaming:
            lines = {"type": "object", "properties": {"result": shown}}
            content = {"application/x-ndjson": {"schema": lines}}
        else:
            content = {"application/json": {"schema": shown}}
    responses: dict[str, Any] = {"200": {"description": "Done.", "content": content}}
    changes = method.name not in ("List", "Get")
    for code in ERRORS:
        if (code == "404" and not one) or (code == "409" and not changes):
            continue
        responses[code] = {"$ref": f"#/components/responses/{_response_name(code)}"}
    return responses


def _response_name(code: str) -> str:
    return f"Error{code.capitalize()}"


def _failure(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/google.rpc.Status"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _collect(message: Descriptor, used: dict[str, Descriptor]) -> None:
    if message.full_name in used or message.full_name.startswith("google."):
        return
    used[message.full_name] = message
    for f in message.fields:
        element = src.map_value(f) if src.is_map(f) else f
        if element.message_type is not None:
            _collect(element.message_type, used)


def _referred_to(paths: dict[str, Any], schemas: dict[str, Schema]) -> dict[str, Schema]:
    """The schemas that the paths need; a request spread over path and query needs none."""
    kept = {"google.rpc.Status"}
    waiting = [paths]
    while waiting:
        for name in re.findall(r'"#/components/schemas/([\w.]+)"', json.dumps(waiting.pop())):
            if name not in kept:
                kept.add(name)
                waiting.append(schemas[name])
    return {name: schemas[name] for name in sorted(kept)}

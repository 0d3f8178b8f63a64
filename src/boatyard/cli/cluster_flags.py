"""Makes the cluster to order from the flags: parses sizes, parameters and files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.osac import (
    NO_CLUSTER_RESTORE,
    Cluster,
    ClusterNetwork,
    ClusterNodeSet,
    ClusterRestore,
    ClusterSpec,
    ClusterTemplate,
    ClusterTemplateParameterDefinition,
    ClusterTemplateReference,
    ClusterVersionReference,
    Metadata,
)
from boatyard.model.yaml_text import NotYaml, load_yaml

_TYPE_PREFIX = "type.googleapis.com/google.protobuf."
_INTEGER_TYPES = ("Int32Value", "UInt32Value")
_LONG_TYPES = ("Int64Value", "UInt64Value")  # strings in JSON
_FLOAT_TYPES = ("DoubleValue", "FloatValue")
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


def make_cluster(
    args: argparse.Namespace,
    *,
    template: ClusterTemplate,
    by_id: bool,
    version: str,
    backup: str = "",
) -> Cluster:
    """The cluster that the flags describe; `version` and `backup` are ids. Refused names all that is wrong."""
    network = None
    if args.pod_cidr or args.service_cidr:
        network = ClusterNetwork(
            pod_cidr=args.pod_cidr or None, service_cidr=args.service_cidr or None
        )
    reference = (
        ClusterTemplateReference(id=template.id)
        if by_id
        else ClusterTemplateReference(name=args.template)
    )
    return Cluster(
        metadata=Metadata(
            name=args.name,
            tenant=args.tenant,
            project=args.project,
            labels=parse_pairs(args.label, flag="--label"),
        ),
        spec=ClusterSpec(
            template=reference,
            template_parameters=parse_parameters(args.parameter, template, args.parameters),
            node_sets={
                name: ClusterNodeSet(size=size)
                for name, size in parse_sizes(args.node_set, flag="--node-set").items()
            },
            version=ClusterVersionReference(id=version),
            network=network,
            zone=args.zone,
            restore=ClusterRestore(backup=backup) if backup else NO_CLUSTER_RESTORE,
            pull_secret=_read_file(args.pull_secret_file) or None,
            ssh_public_key=_read_file(args.ssh_public_key_file).strip() or None,
        ),
    )


def parse_pairs(texts: Sequence[str], *, flag: str) -> dict[str, str]:
    """key=value texts; the same key twice is refused."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise Refused(f"{flag} {text!r}: write KEY=VALUE")
        if key in pairs:
            raise Refused(f"{flag} {key!r} is given twice")
        pairs[key] = value
    return pairs


def parse_sizes(texts: Sequence[str], *, flag: str) -> dict[str, int]:
    """set=size texts."""
    sizes = {}
    for name, text in parse_pairs(texts, flag=flag).items():
        if not text.isascii() or not text.isdigit():
            raise Refused(f"{flag} {name}={text}: the size must be a whole number, 0 or more")
        sizes[name] = int(text)
    return sizes


def parse_parameters(
    texts: Sequence[str], template: ClusterTemplate, file: str = ""
) -> Mapping[str, Mapping[str, Any]]:
    """-p key=value texts, and the values of a file, as values of the types that the template declares."""
    definitions = {definition.name: definition for definition in template.parameters}
    values = _read_parameters_file(file, definitions) if file else {}
    violations = []
    for key, text in parse_pairs(texts, flag="-p").items():
        definition = definitions.get(key)
        if definition is None:
            parameter_names = ", ".join(definitions) or "none"
            violations.append(
                Violation(f"-p {key}", "no such parameter", f"the template has: {parameter_names}")
            )
            continue
        try:
            values[key] = {
                "@type": definition.type,
                "value": parse_typed_value(definition.type, text),
            }
        except ValueError as error:
            violations.append(Violation(f"-p {key}", str(error)))
    violations += [
        Violation(
            f"-p {definition.name}", "is required", definition.description or definition.title
        )
        for definition in definitions.values()
        if definition.required and definition.default is None and definition.name not in values
    ]
    if violations:
        raise Refused("", *violations)
    return values


def _read_parameters_file(
    name: str, definitions: Mapping[str, ClusterTemplateParameterDefinition]
) -> dict[str, Mapping[str, Any]]:
    """The parameters in a YAML or JSON file. A value of the wrong type is sent as it is: the server reports it."""
    try:
        content = load_yaml(_read_file(name))
    except NotYaml as error:
        raise Refused(f"{name}: {error}") from error
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise Refused(f"{name}: write one parameter per line, such as `replicas: 2`")
    return {key: _convert_file_value(value, definitions.get(key)) for key, value in content.items()}


def _convert_file_value(
    value: Any, definition: ClusterTemplateParameterDefinition | None
) -> Mapping[str, Any]:
    kind = definition.type.removeprefix(_TYPE_PREFIX) if definition is not None else ""
    match value:
        case bool():
            fits = kind == "BoolValue"
        case int():
            fits = kind in (*_INTEGER_TYPES, *_LONG_TYPES, *_FLOAT_TYPES)
        case float():
            fits = kind in _FLOAT_TYPES
        case str():
            fits = kind in ("StringValue", "BytesValue", "Timestamp", "Duration")
        case _:
            fits = False
    if not fits:
        return {
            "@type": f"{_TYPE_PREFIX}Value",
            "value": json.loads(json.dumps(value, default=str)),
        }
    return {"@type": f"{_TYPE_PREFIX}{kind}", "value": str(value) if kind in _LONG_TYPES else value}


def parse_typed_value(type_url: str, text: str) -> Any:
    """A text as JSON of a declared type; ValueError says what was expected."""
    name = type_url.removeprefix(_TYPE_PREFIX)
    if name == "StringValue":
        return text
    if name == "BoolValue":
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{text!r} is not true or false")
        return _BOOLEANS[text.lower()]
    if name in _INTEGER_TYPES or name in _LONG_TYPES:
        try:
            number = int(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a whole number") from error
        return str(number) if name in _LONG_TYPES else number
    if name in _FLOAT_TYPES:
        try:
            return float(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a number") from error
    try:
        return json.loads(text)
    except ValueError as error:
        if name in ("BytesValue", "Timestamp", "Duration"):
            return text  # their JSON is a string: base64, RFC 3339, "3.5s"
        raise ValueError(f"{text!r} is not JSON of type {type_url or '(none)'}") from error


def _read_file(name: str) -> str:
    if not name:
        return ""
    return sys.stdin.read() if name == "-" else Path(name).read_text()

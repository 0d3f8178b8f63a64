"""The verb `template`: list, show, lint, publish."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from boatyard.cli.exit_codes import DONE, FAILED, report_error
from boatyard.cli.output import format_columns, format_data, to_dict
from boatyard.cli.server_call import call_server
from boatyard.cli.text_format import clean, format_count
from boatyard.client.client import Client
from boatyard.client.kinds import SOURCE, TEMPLATE
from boatyard.client.local_roles import LocalRole, read_roles
from boatyard.model.errors import BoatyardError, Denied, Refused
from boatyard.model.generated.boatyard import (
    TemplateMistake,
    TemplateSource,
    TemplateSourceState,
)
from boatyard.model.generated.osac import ClusterTemplate, ClusterTemplateParameterDefinition

_SHORT_DIGEST_LENGTH = 12  # characters of a digest that people compare
_TYPE_NAMES = {
    "StringValue": "text",
    "Int64Value": "whole number",
    "Int32Value": "whole number",
    "DoubleValue": "number",
    "BoolValue": "true or false",
    "Value": "JSON",
}


def list_templates(args: argparse.Namespace) -> int:
    return call_server(args, _list)


async def _list(client: Client, args: argparse.Namespace) -> None:
    listing = await client.list(TEMPLATE)
    sources = await _list_sources(client)
    if args.output:
        data = {
            "templates": [to_dict(row.message) for row in listing.rows],
            "sources": [to_dict(message) for message, _ in sources],
        }
        print(format_data(data, args.output))
        return
    templates = [row.document for row in listing.rows]
    print("\n".join(format_template_list(templates, [source for _, source in sources])))


async def _list_sources(client: Client) -> list[tuple[Any, TemplateSource]]:
    """The published roles, with message and struct each; empty for everybody but operators."""
    try:
        return [(row.message, row.document) for row in (await client.list(SOURCE)).rows]
    except Denied:
        return []


def format_template_list(
    templates: Sequence[ClusterTemplate], sources: Sequence[TemplateSource]
) -> list[str]:
    roles = {source.status.template: source for source in sources if source.status.template}
    rows = [
        (
            template.id,
            template.title,
            _shorten_digest(template.digest),
            ",".join(template.phases),
            roles[template.id].id if template.id in roles else "",
        )
        for template in templates
    ]
    header = ("ID", "TITLE", "DIGEST", "RUNS", "ROLE")
    lines = format_columns(header, rows) if rows else ["No templates are offered."]
    faulty = [source for source in sources if source.status.state == TemplateSourceState.FAULTY]
    if faulty:
        lines += ["", "Not offered:"]
    for source in faulty:
        offer_note = (
            f", {_shorten_digest(source.status.digest)} stays on offer"
            if source.status.digest
            else ""
        )
        lines.append(clean(f"  {source.id} in {source.status.origin}{offer_note}"))
        lines += [f"    {mistake}" for mistake in _format_mistakes(source.status.mistakes)]
    return lines


def show(args: argparse.Namespace) -> int:
    return call_server(args, _show)


async def _show(client: Client, args: argparse.Namespace) -> None:
    if args.schema:
        schema = await client.get_template_schema(args.name)
        print(format_data(schema, args.output or "json"))
        return
    template_object = await client.find_one(TEMPLATE, args.name)
    if args.output:
        print(format_data(to_dict(template_object.message), args.output))
    else:
        print("\n".join(format_template(template_object.document)))


def format_template(template: ClusterTemplate) -> list[str]:
    node_sets = [
        f"{name}: {node_set.size} x {node_set.host_type.name or node_set.host_type.id}"
        for name, node_set in sorted(template.node_sets.items())
    ]
    bounds = (
        f"{template.version_from} or later" if template.version_from else "",
        f"below {template.version_below}" if template.version_below else "",
    )
    facts = [
        ("ID", template.id),
        ("Name", template.metadata.name),
        ("Title", template.title),
        ("Description", " ".join(template.description.split())),
        ("Node sets", ", ".join(node_sets)),
        ("Other hosts", ", ".join(template.allowed_host_types)),
        ("Version", template.spec_defaults.version.name),
        ("Versions", ", ".join(bound for bound in bounds if bound)),
        ("Runs", ", ".join(template.phases)),
        ("Digest", template.digest),
        ("Offered", "no longer" if template.withdrawn else ""),
    ]
    width = max(len(name) for name, _ in facts) + 1
    lines = [f"{name + ':':{width}} {clean(value)}" for name, value in facts if value]
    if not template.parameters:
        return [*lines, "", "It asks for nothing."]
    rows = [
        (
            parameter.name,
            _format_type(parameter),
            "required" if parameter.required else _format_default(parameter),
            " ".join(parameter.description.split()),
        )
        for parameter in template.parameters
    ]
    table = format_columns(("PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"), rows)
    return [*lines, "", *table]


def _format_type(parameter: ClusterTemplateParameterDefinition) -> str:
    name = parameter.type.rpartition(".")[2]
    return _TYPE_NAMES.get(name, name) + (", secret" if parameter.no_log else "")


def _format_default(parameter: ClusterTemplateParameterDefinition) -> str:
    if parameter.default is None:
        return ""
    value = parameter.default.get("value")
    return value if isinstance(value, str) else json.dumps(value)


# --- roles in a folder here --------------------------------------------------------------------


def lint(args: argparse.Namespace) -> int:
    try:
        roles = [role for path in args.paths for role in read_roles(Path(path))]
    except (BoatyardError, OSError) as error:
        return report_error(error)
    for role in roles:
        print("\n".join(format_lint_result(role)))
    return FAILED if any(role.mistakes for role in roles) else DONE


def format_lint_result(local_role: LocalRole) -> list[str]:
    if local_role.role is None:
        mistakes = [f"  {clean(mistake)}" for mistake in local_role.mistakes]
        return [f"{clean(local_role.name)}: {format_count(len(mistakes), 'mistake')}", *mistakes]
    role = local_role.role
    parameter_count = format_count(len(role.form.options), "parameter")
    runs = ", ".join(role.phases) or "nothing"
    return [
        clean(
            f"{local_role.name}: good, template {role.metadata.id}, {parameter_count}, runs {runs}"
        ),
        f"  {role.digest}",
    ]


def publish(args: argparse.Namespace) -> int:
    return call_server(args, _publish)


async def _publish(client: Client, args: argparse.Namespace) -> int:
    local_roles = read_roles(Path(args.path))
    if len(local_roles) > 1:
        raise Refused(f"{args.path} has {len(local_roles)} roles; publish them one by one")
    (local_role,) = local_roles
    if local_role.role is None:
        print("\n".join(format_lint_result(local_role)))
        return FAILED
    source = await client.publish_role(local_role.name, local_role.files)
    status = source.status
    if status.state != TemplateSourceState.OFFERED:
        mistakes = [f"  {mistake}" for mistake in _format_mistakes(status.mistakes)]
        print(
            "\n".join(
                [f"{clean(local_role.name)}: {format_count(len(mistakes), 'mistake')}", *mistakes]
            )
        )
        return FAILED
    print(clean(f"Template {status.template} is offered: {status.digest}"))
    return DONE


def _format_mistakes(mistakes: Iterable[TemplateMistake]) -> list[str]:
    lines = []
    for mistake in mistakes:
        place = f"{mistake.file}:{mistake.line}" if mistake.line else mistake.file
        text = ": ".join(part for part in (place, mistake.path, mistake.message) if part)
        lines.append(clean(f"{text}; {mistake.remedy}" if mistake.remedy else text))
    return lines


def _shorten_digest(digest: str) -> str:
    return digest.removeprefix("sha256:")[:_SHORT_DIGEST_LENGTH]

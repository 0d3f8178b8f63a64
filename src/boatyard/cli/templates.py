"""The verb `template`: list, show, lint, publish."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from boatyard.cli.calling import call
from boatyard.cli.exits import DONE, FAILED, report
from boatyard.cli.output import as_data, as_form, columns
from boatyard.cli.words import clean, count
from boatyard.client.client import Client
from boatyard.client.kinds import SOURCE, TEMPLATE
from boatyard.client.roles import Found, roles_at
from boatyard.model.errors import BoatyardError, Denied, Refused
from boatyard.model.generated.boatyard import (
    TemplateMistake,
    TemplateSource,
    TemplateSourceState,
)
from boatyard.model.generated.osac import ClusterTemplate, ClusterTemplateParameterDefinition

_SHORT = 12  # characters of a digest that people compare
_TYPES = {
    "StringValue": "text",
    "Int64Value": "whole number",
    "Int32Value": "whole number",
    "DoubleValue": "number",
    "BoolValue": "true or false",
    "Value": "JSON",
}


def list_templates(args: argparse.Namespace) -> int:
    return call(args, _list)


async def _list(client: Client, args: argparse.Namespace) -> None:
    found = await client.list(TEMPLATE)
    sources = await _sources(client)
    if args.output:
        data = {
            "templates": [as_data(row.message) for row in found.rows],
            "sources": [as_data(message) for message, _ in sources],
        }
        print(as_form(data, args.output))
        return
    templates = [row.document for row in found.rows]
    print("\n".join(list_lines(templates, [source for _, source in sources])))


async def _sources(client: Client) -> list[tuple[Any, TemplateSource]]:
    """Roles as operators see them; nobody else is told of them."""
    try:
        return [(row.message, row.document) for row in (await client.list(SOURCE)).rows]
    except Denied:
        return []


def list_lines(
    templates: Sequence[ClusterTemplate], sources: Sequence[TemplateSource]
) -> list[str]:
    roles = {one.status.template: one for one in sources if one.status.template}
    rows = [
        (
            one.id,
            one.title,
            _short(one.digest),
            ",".join(one.phases),
            roles[one.id].id if one.id in roles else "",
        )
        for one in templates
    ]
    header = ("ID", "TITLE", "DIGEST", "RUNS", "ROLE")
    lines = columns(header, rows) if rows else ["No templates are offered."]
    faulty = [one for one in sources if one.status.state == TemplateSourceState.FAULTY]
    if faulty:
        lines += ["", "Not offered:"]
    for one in faulty:
        kept = f", {_short(one.status.digest)} stays on offer" if one.status.digest else ""
        lines.append(clean(f"  {one.id} in {one.status.origin}{kept}"))
        lines += [f"    {mistake}" for mistake in _mistakes(one.status.mistakes)]
    return lines


def show(args: argparse.Namespace) -> int:
    return call(args, _show)


async def _show(client: Client, args: argparse.Namespace) -> None:
    if args.schema:
        schema = await client.template_schema(args.name)
        print(as_form(schema, args.output or "json"))
        return
    found = await client.find_one(TEMPLATE, args.name)
    if args.output:
        print(as_form(as_data(found.message), args.output))
    else:
        print("\n".join(template_lines(found.document)))


def template_lines(template: ClusterTemplate) -> list[str]:
    sets = [
        f"{name}: {one.size} x {one.host_type.name or one.host_type.id}"
        for name, one in sorted(template.node_sets.items())
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
        ("Node sets", ", ".join(sets)),
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
            one.name,
            _type_words(one),
            "required" if one.required else _default(one),
            " ".join(one.description.split()),
        )
        for one in template.parameters
    ]
    table = columns(("PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"), rows)
    return [*lines, "", *table]


def _type_words(one: ClusterTemplateParameterDefinition) -> str:
    name = one.type.rpartition(".")[2]
    return _TYPES.get(name, name) + (", secret" if one.no_log else "")


def _default(one: ClusterTemplateParameterDefinition) -> str:
    if one.default is None:
        return ""
    value = one.default.get("value")
    return value if isinstance(value, str) else json.dumps(value)


# --- roles in a folder here --------------------------------------------------------------------


def lint(args: argparse.Namespace) -> int:
    try:
        found = [one for path in args.paths for one in roles_at(Path(path))]
    except (BoatyardError, OSError) as error:
        return report(error)
    for one in found:
        print("\n".join(lint_lines(one)))
    return FAILED if any(one.mistakes for one in found) else DONE


def lint_lines(found: Found) -> list[str]:
    if found.role is None:
        told = [f"  {clean(mistake)}" for mistake in found.mistakes]
        return [f"{clean(found.name)}: {count(len(told), 'mistake')}", *told]
    role = found.role
    asked = count(len(role.form.options), "parameter")
    runs = ", ".join(role.phases) or "nothing"
    return [
        clean(f"{found.name}: good, template {role.about.id}, {asked}, runs {runs}"),
        f"  {role.digest}",
    ]


def publish(args: argparse.Namespace) -> int:
    return call(args, _publish)


async def _publish(client: Client, args: argparse.Namespace) -> int:
    found = roles_at(Path(args.path))
    if len(found) > 1:
        raise Refused(f"{args.path} has {len(found)} roles; publish them one by one")
    (one,) = found
    if one.role is None:
        print("\n".join(lint_lines(one)))
        return FAILED
    source = await client.publish_role(one.name, one.files)
    status = source.status
    if status.state != TemplateSourceState.OFFERED:
        told = [f"  {mistake}" for mistake in _mistakes(status.mistakes)]
        print("\n".join([f"{clean(one.name)}: {count(len(told), 'mistake')}", *told]))
        return FAILED
    print(clean(f"Template {status.template} is offered: {status.digest}"))
    return DONE


def _mistakes(mistakes: Iterable[TemplateMistake]) -> list[str]:
    lines = []
    for one in mistakes:
        place = f"{one.file}:{one.line}" if one.line else one.file
        text = ": ".join(part for part in (place, one.path, one.message) if part)
        lines.append(clean(f"{text}; {one.remedy}" if one.remedy else text))
    return lines


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:_SHORT]

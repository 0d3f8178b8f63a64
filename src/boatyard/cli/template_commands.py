"""The verb `template`: its acts, their flags, one example each. Imports argparse only, so that `--help` is quick."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from boatyard.cli.arguments import add_output

Flags = Callable[[argparse.ArgumentParser], None]


def _list(parser: argparse.ArgumentParser) -> None:
    add_output(parser, "json", "yaml")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name or id of the template")
    parser.add_argument(
        "--schema", action="store_true", help="print its form as JSON Schema 2020-12"
    )
    add_output(parser, "json", "yaml")


def _lint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="FOLDER", help="folder of a role, or of several"
    )


def _publish(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="FOLDER", help="folder of the role")


# Name, where it is carried out, what it does, an example, its flags, whether it talks to a server.
ACTS: tuple[tuple[str, str, str, str, Flags, bool], ...] = (
    (
        "list",
        "boatyard.cli.templates:list_templates",
        "list what can be ordered and, for operators, which roles are not offered and why",
        "boatyard template list",
        _list,
        True,
    ),
    (
        "show",
        "boatyard.cli.templates:show",
        "show one template with its form",
        "boatyard template show ocp_4_17_small --schema",
        _show,
        True,
    ),
    (
        "lint",
        "boatyard.cli.templates:lint",
        "say everything that is wrong with a role, without a server",
        "boatyard template lint templates/roles/web_small",
        _lint,
        False,
    ),
    (
        "publish",
        "boatyard.cli.templates:publish",
        "send a role to the server and offer it",
        "boatyard template publish templates/roles/web_small",
        _publish,
        True,
    ),
)

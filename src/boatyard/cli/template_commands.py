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


def _test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="FOLDER", help="folder of the role")
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME,NAME",
        help="only these questions and what they stand on, such as install,crash (default: all)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of the values that are made up"
    )
    parser.add_argument(
        "--values",
        default="",
        metavar="FILE",
        help="parameters that are not made up, as YAML or JSON: addresses, names of what must be there",
    )
    parser.add_argument(
        "--outside",
        default="",
        metavar="COMMAND",
        help="prints what the role has made elsewhere for the cluster named by BOATYARD_CLUSTER",
    )
    parser.add_argument(
        "--from",
        dest="older",
        default="",
        metavar="FOLDER|DIGEST",
        help="content that was published before: its clusters must live on beside the new",
    )
    parser.add_argument(
        "--part-seconds",
        type=float,
        default=120.0,
        metavar="N",
        help="a part that runs longer is ended and named (default: %(default)g)",
    )
    parser.add_argument("--json", default="", metavar="FILE", help="write the report there too")
    parser.add_argument("--keep", action="store_true", help="leave database, runs and log behind")


# Name, where it is carried out, what it does, an example, its flags, whether it talks to a server.
ACTIONS: tuple[tuple[str, str, str, str, Flags, bool], ...] = (
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
        "test",
        "boatyard.app.template_test:run",
        "try a role on a simulated data centre of its own: run twice, killed at every task, deleted",
        "boatyard template test templates/roles/web_small --only install,crash",
        _test,
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

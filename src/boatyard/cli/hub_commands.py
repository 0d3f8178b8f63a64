"""The verbs about hubs: their flags, one example each. Part of the table in commands.py; imports argparse only."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from boatyard.cli.arguments import add_output


def add_create_hub_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="its name: a-z, 0-9 and -, at most 63")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="of the cluster that is the hub; one context of it is sent, and never shown again; - for stdin",
    )
    how.add_argument(
        "--embedded",
        action="store_true",
        help="its orders are kept here; say --driver for each port",
    )
    parser.add_argument(
        "--context", default="", help="context of the kubeconfig (default: its current one)"
    )
    parser.add_argument("--zone", default="", help="where it is; clusters may ask for a zone")
    parser.add_argument(
        "--namespace",
        default="",
        help="where our own objects are on it (default: boatyard-system)",
    )
    _add_pairs_flag(parser, "--driver", "PORT=NAME", "driver of a port, such as platform=hosted")
    _add_pairs_flag(
        parser, "--setting", "KEY=VALUE", "setting of a driver, or of how it is reached"
    )
    _add_pairs_flag(
        parser, "--capacity", "TYPE=COUNT", "hosts of a type, or clusters=COUNT (default: found)"
    )
    _add_pairs_flag(parser, "-l", "KEY=VALUE", "label that templates may ask for", long="--label")
    parser.add_argument(
        "--template",
        action="append",
        default=[],
        metavar="ID",
        help="offer this template only; may be given again (default: all)",
    )
    parser.add_argument("--cordoned", action="store_true", help="take no orders yet")
    parser.add_argument(
        "--no-wait", action="store_true", help="do not wait for the first look at it"
    )
    add_output(parser, "json", "yaml", "name")


def _add_pairs_flag(
    parser: argparse.ArgumentParser, flag: str, form: str, words: str, long: str = ""
) -> None:
    parser.add_argument(
        *([flag, long] if long else [flag]),
        action="append",
        default=[],
        metavar=form,
        help=f"{words}; may be given again",
    )


def _hub(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "act",
        choices=("check", "prepare", "credentials"),
        metavar="ACT",
        help="check: say what it lacks; prepare: install what orders need; credentials: replace them",
    )
    parser.add_argument("name", metavar="NAME", help="name or id of the hub")
    parser.add_argument(
        "--install", action="store_true", help="with check: install what is missing, then check"
    )
    parser.add_argument(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="with credentials: the new ones; - for stdin",
    )
    parser.add_argument("--context", default="", help="with credentials: context of the kubeconfig")
    add_output(parser, "json", "yaml")


def _cordon(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=("hub",), metavar="hub", help="what it is about")
    parser.add_argument("name", metavar="NAME", help="name or id of the hub")


VERBS: tuple[tuple[str, str, str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
    (
        "hub",
        "boatyard.cli.hubs:hub",
        "look at a hub, make it ready, or replace its credentials",
        "boatyard hub check lyon-2",
        _hub,
    ),
    (
        "cordon",
        "boatyard.cli.hubs:cordon",
        "send no new orders to a hub; what it has stays",
        "boatyard cordon hub lyon-2",
        _cordon,
    ),
    (
        "uncordon",
        "boatyard.cli.hubs:uncordon",
        "send orders to a hub again",
        "boatyard uncordon hub lyon-2",
        _cordon,
    ),
)

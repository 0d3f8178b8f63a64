"""Flags that several verbs share. Only argparse is imported here, so that `--help` answers at once."""

from __future__ import annotations

import argparse


def add_cluster_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=("cluster",), metavar="cluster", help="what it is about")
    parser.add_argument("name", metavar="NAME", help="name or id of the cluster")


def add_object_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", choices=("cluster", "backup", "hub"), metavar="KIND", help="cluster, backup or hub"
    )
    parser.add_argument("name", metavar="NAME", help="its name or id")


def add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        default="1h",
        metavar="TIME",
        help="stop waiting after this long, exit 7; 0 for never (default: %(default)s)",
    )


def add_wait_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-wait", action="store_true", help="answer at once, do not follow")
    add_timeout(parser)


def add_output(parser: argparse.ArgumentParser, *choices: str) -> None:
    parser.add_argument(
        "-o", "--output", choices=choices, default="", help="print as " + ", ".join(choices)
    )

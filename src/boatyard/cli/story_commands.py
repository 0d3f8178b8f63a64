"""The verb `logs`: its flags and an example. Imports argparse only, so that `--help` is quick."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from boatyard.cli.arguments import name_cluster


def _logs(parser: argparse.ArgumentParser) -> None:
    name_cluster(parser)
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="then show more as it is told, until the cluster's work has ended",
    )
    parser.add_argument(
        "--run",
        dest="part",
        default="",
        metavar="PART",
        help="only this part of the role, such as post_install, or one run of it, such as scale/3",
    )


VERBS: tuple[tuple[str, str, str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
    (
        "logs",
        "boatyard.cli.story:logs",
        "tell what the role of a cluster's template does or has done, task by task",
        "boatyard logs cluster web-1 -f",
        _logs,
    ),
)

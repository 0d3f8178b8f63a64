"""The verbs of a finished cluster's life: rest, upgrade, backup, restore. Part of the table in commands.py."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from boatyard.cli.arguments import add_outcome, add_output, name_cluster


def _hibernate(parser: argparse.ArgumentParser) -> None:
    name_cluster(parser)
    parser.add_argument(
        "--deep",
        action="store_true",
        help="stop it; without this it stands still, and is stopped by itself after a while",
    )
    add_outcome(parser)


def _resume(parser: argparse.ArgumentParser) -> None:
    name_cluster(parser)
    add_outcome(parser)


def _upgrade(parser: argparse.ArgumentParser) -> None:
    name_cluster(parser)
    parser.add_argument(
        "--to", required=True, metavar="VERSION", help="version to move to (boatyard get versions)"
    )
    add_outcome(parser)


def _backup(parser: argparse.ArgumentParser) -> None:
    name_cluster(parser)
    parser.add_argument(
        "--name",
        dest="backup_name",
        default="",
        metavar="N",
        help="name of the backup (default: the cluster's and the time)",
    )
    parser.add_argument(
        "--folder", default="", metavar="DIR", help="folder on the hub's machine (operators only)"
    )
    add_outcome(parser)
    add_output(parser, "json", "yaml", "name")


def _restore(parser: argparse.ArgumentParser) -> None:
    name_cluster(parser)
    parser.add_argument("--backup", required=True, metavar="B", help="name or id of the backup")
    parser.add_argument("--yes", action="store_true", help="do not ask: what came since is lost")
    add_outcome(parser)


VERBS: tuple[tuple[str, str, str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
    (
        "hibernate",
        "boatyard.cli.lifecycle:hibernate",
        "put a cluster to rest; its state and address are kept",
        "boatyard hibernate cluster web-1 --deep",
        _hibernate,
    ),
    (
        "resume",
        "boatyard.cli.lifecycle:resume",
        "wake a cluster that rests",
        "boatyard resume cluster web-1",
        _resume,
    ),
    (
        "upgrade",
        "boatyard.cli.lifecycle:upgrade",
        "move a cluster to another version, one minor at a time",
        "boatyard upgrade cluster web-1 --to 1.36.3",
        _upgrade,
    ),
    (
        "backup",
        "boatyard.cli.backups:backup",
        "keep a copy of all objects of a cluster",
        "boatyard backup cluster web-1",
        _backup,
    ),
    (
        "restore",
        "boatyard.cli.lifecycle:restore",
        "make a cluster's objects those of a backup",
        "boatyard restore cluster web-1 --backup before-the-change",
        _restore,
    ),
)

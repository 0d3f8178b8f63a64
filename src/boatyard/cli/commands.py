"""The table of verbs: their flags, one example each, and where each is carried out.

Only argparse is imported here, so that `--help` answers at once; a verb's module when it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from boatyard.cli.arguments import (
    add_cluster_name,
    add_object_name,
    add_output,
    add_timeout,
    add_wait_flags,
)
from boatyard.cli.hub_commands import VERBS as HUB_VERBS
from boatyard.cli.hub_commands import add_create_hub_flags
from boatyard.cli.template_commands import ACTIONS as TEMPLATE_ACTS

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

Flags = Callable[[argparse.ArgumentParser], None]

KINDS_HELP = (
    "clusters, clustertemplates, clusterversions, hosttypes, "
    "tenants, projects, backups, hubs, orders, leftovers"
)


def add_verbs(subparsers: Subparsers) -> None:
    """Adds every verb that talks to a server."""
    for name, run, line, example, flags in (*_VERBS, *HUB_VERBS):
        add_verb(subparsers, name, run=run, line=line, example=example, flags=flags, remote=True)


def add_verb(
    subparsers: Subparsers,
    name: str,
    *,
    run: str,
    line: str,
    example: str,
    flags: Flags | None = None,
    remote: bool = False,
) -> None:
    """Adds one verb; `run` is "module:function" and is imported only when the verb is used."""
    parser = subparsers.add_parser(
        name,
        help=line,
        description=line[0].upper() + line[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if flags:
        flags(parser)
    if remote:
        add_connection(parser)
    parser.set_defaults(run=run, verb=name)


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Adds the flags for server and token, which may stand before or after the verb."""
    group = parser.add_argument_group("connection")
    absent: Any = argparse.SUPPRESS
    group.add_argument(
        "--address",
        default=absent,
        metavar="HOST:PORT",
        help="server to talk to (else BOATYARD_ADDRESS, login, or the local `boatyard up`)",
    )
    group.add_argument("--token", default=absent, help="token to show (else BOATYARD_TOKEN, …)")
    group.add_argument("--ca-file", default=absent, metavar="FILE", help="trust this certificate")
    group.add_argument(
        "--insecure", action="store_true", default=absent, help="TLS, but trust any certificate"
    )


# --- flags ------------------------------------------------------------------------------------


def _add_create_nouns(parser: argparse.ArgumentParser) -> None:
    """Adds a subcommand per noun, because their flags and their help differ."""
    nouns = parser.add_subparsers(title="what", metavar="KIND", dest="kind", required=True)
    for noun, run, line, example, flags in (
        (
            "cluster",
            "boatyard.cli.clusters:create",
            "order a cluster and watch it being built",
            "boatyard create cluster web-1 --template small --node-set compute=3",
            _add_create_cluster_flags,
        ),
        (
            "hub",
            "boatyard.cli.hubs:create",
            "register a hub and see whether it works",
            "boatyard create hub lyon-2 --kubeconfig hub.yaml --zone lyon"
            " --driver platform=hosted --setting hosted.platform=None",
            add_create_hub_flags,
        ),
    ):
        add_verb(nouns, noun, run=run, line=line, example=example, flags=flags, remote=True)
        nouns.choices[noun].set_defaults(verb="create")


def _add_template_actions(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(title="what", metavar="ACT", dest="act", required=True)
    for name, run, line, example, flags, remote in TEMPLATE_ACTS:
        add_verb(acts, name, run=run, line=line, example=example, flags=flags, remote=remote)
        acts.choices[name].set_defaults(verb="template")


def _add_create_cluster_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="its name: a-z, 0-9 and -, at most 63")
    parser.add_argument(
        "-t", "--template", required=True, help="template to order (boatyard get templates)"
    )
    parser.add_argument(
        "--node-set",
        action="append",
        default=[],
        metavar="SET=SIZE",
        help="size of a node set; may be given again for others (default: the template's)",
    )
    parser.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="parameter of the template; may be given again",
    )
    parser.add_argument(
        "--parameters",
        default="",
        metavar="FILE",
        help="parameters by name, as YAML or JSON; for secrets and long values; - for stdin",
    )
    parser.add_argument(
        "--version", default="", help="version to install (default: the template's)"
    )
    parser.add_argument(
        "--from-backup", default="", metavar="BACKUP", help="begin with the objects of this backup"
    )
    parser.add_argument("--pull-secret-file", default="", metavar="FILE", help="- for stdin")
    parser.add_argument("--ssh-public-key-file", default="", metavar="FILE")
    parser.add_argument("--zone", default="", help="zone it must be in (default: any)")
    parser.add_argument("--pod-cidr", default="", metavar="CIDR")
    parser.add_argument("--service-cidr", default="", metavar="CIDR")
    parser.add_argument("--project", default="", help="project to put it into")
    parser.add_argument("--tenant", default="", help="for whom it is (operators only)")
    parser.add_argument(
        "-l",
        "--label",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="label to put on it; may be given again",
    )
    add_wait_flags(parser)
    add_output(parser, "json", "yaml", "name")


def _get(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", help=f"one of {KINDS_HELP}")
    parser.add_argument("names", nargs="*", metavar="NAME", help="names or ids; none for all")
    parser.add_argument(
        "--filter", default="", metavar="EXPR", help="""such as 'this.status.state == 2'"""
    )
    parser.add_argument("--limit", type=int, default=None, metavar="N", help="at most N rows")
    parser.add_argument(
        "-w", "--watch", action="store_true", help="then show changes as they happen"
    )
    add_output(parser, "wide", "json", "yaml", "name")


def _scale(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
    parser.add_argument(
        "sizes", nargs="*", metavar="SET=SIZE", help="node sets and their new sizes"
    )
    parser.add_argument("--node-set", default="", metavar="SET", help="node set, with --size")
    parser.add_argument("--size", type=int, default=None, metavar="N", help="its new size")
    add_wait_flags(parser)


def _delete(parser: argparse.ArgumentParser) -> None:
    add_object_name(parser)
    add_wait_flags(parser)


def _explain(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
    add_output(parser, "json", "yaml")


def _events(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
    parser.add_argument(
        "--limit", type=int, default=None, metavar="N", help="at most N, the newest"
    )
    parser.add_argument("-w", "--watch", action="store_true", help="then show more as they happen")


def _add_secret_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name or id of the cluster")
    parser.add_argument(
        "-o", "--output", default="", metavar="FILE", help="write it there, mode 0600; - for stdout"
    )


def _kubeconfig(parser: argparse.ArgumentParser) -> None:
    _add_secret_flags(parser)
    parser.add_argument(
        "--for",
        dest="user",
        default="",
        metavar="USER",
        help="issue a certificate for this user that ends by itself, instead of the admin's",
    )
    parser.add_argument(
        "--ttl",
        default="",
        metavar="TIME",
        help="how long it is good, 10m to 24h (default: 1h); without --for it is yours",
    )
    parser.add_argument(
        "--context", default="", metavar="NAME", help="name it that way (default: boatyard-NAME)"
    )
    parser.add_argument("--switch", action="store_true", help="make it the current context")
    parser.add_argument(
        "--remove", action="store_true", help="take the cluster out of your kubeconfig again"
    )


def _wait(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
    parser.add_argument(
        "--for",
        dest="goal",
        choices=("ready", "hibernated", "deleted"),
        default="ready",
        help="(default: ready)",
    )
    add_timeout(parser)


def _retry(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
    add_wait_flags(parser)


def _login(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="ADDRESS", help="host:port; http:// for one without TLS")
    parser.add_argument(
        "--token-file", default="", metavar="FILE", help="read the token from there; - for stdin"
    )


def _logs(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
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


def _hibernate(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
    parser.add_argument(
        "--deep",
        action="store_true",
        help="stop it; without this it stands still, and is stopped by itself after a while",
    )
    add_wait_flags(parser)


def _resume(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
    add_wait_flags(parser)


def _upgrade(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
    parser.add_argument(
        "--to", required=True, metavar="VERSION", help="version to move to (boatyard get versions)"
    )
    add_wait_flags(parser)


def _backup(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
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
    add_wait_flags(parser)
    add_output(parser, "json", "yaml", "name")


def _restore(parser: argparse.ArgumentParser) -> None:
    add_cluster_name(parser)
    parser.add_argument("--backup", required=True, metavar="B", help="name or id of the backup")
    parser.add_argument("--yes", action="store_true", help="do not ask: what came since is lost")
    add_wait_flags(parser)


_VERBS: tuple[tuple[str, str, str, str, Flags | None], ...] = (
    (
        "login",
        "boatyard.cli.session:login",
        "remember a server and a token for the commands to come",
        "boatyard login boatyard.example.com:8000 --token-file token",
        _login,
    ),
    (
        "logout",
        "boatyard.cli.session:logout",
        "forget what login remembered",
        "boatyard logout",
        None,
    ),
    (
        "whoami",
        "boatyard.cli.session:whoami",
        "say which server is talked to, and as whom",
        "boatyard whoami",
        None,
    ),
    (
        "create",
        "boatyard.cli.clusters:create",
        "order a cluster and watch it being built, or register a hub",
        "boatyard create cluster web-1 --template small --node-set compute=3",
        _add_create_nouns,
    ),
    (
        "get",
        "boatyard.cli.lists:get",
        "list things, or some by name",
        "boatyard get clusters -o wide",
        _get,
    ),
    (
        "describe",
        "boatyard.cli.describe:describe",
        "show one cluster, backup or hub in full",
        "boatyard describe cluster web-1",
        add_object_name,
    ),
    (
        "scale",
        "boatyard.cli.clusters:scale",
        "make a node set of a cluster larger or smaller",
        "boatyard scale cluster web-1 compute=5",
        _scale,
    ),
    (
        "delete",
        "boatyard.cli.clusters:delete",
        "take a cluster back and print the receipt, or remove a backup or a hub",
        "boatyard delete cluster web-1",
        _delete,
    ),
    (
        "explain",
        "boatyard.cli.explain:explain",
        "say where a cluster's order is, what blocks it and why it is on this hub",
        "boatyard explain cluster web-1",
        _explain,
    ),
    (
        "events",
        "boatyard.cli.explain:events",
        "tell what has happened to a cluster, oldest first",
        "boatyard events cluster web-1",
        _events,
    ),
    (
        "wait",
        "boatyard.cli.clusters:wait",
        "watch a cluster until it is ready or gone",
        "boatyard wait cluster web-1 --for ready --timeout 10m",
        _wait,
    ),
    (
        "retry",
        "boatyard.cli.clusters:retry",
        "try a failed or quarantined step again, now",
        "boatyard retry cluster web-1",
        _retry,
    ),
    (
        "template",
        "boatyard.cli.templates:list_templates",
        "list templates, show one with its form, check a role, publish it",
        "boatyard template lint templates/roles/web_small",
        _add_template_actions,
    ),
    (
        "kubeconfig",
        "boatyard.cli.credentials:kubeconfig",
        "put a cluster into your kubeconfig, or its own into a file only you can read",
        "boatyard kubeconfig web-1 --for bob --ttl 1h -o bob.kubeconfig",
        _kubeconfig,
    ),
    (
        "password",
        "boatyard.cli.credentials:password",
        "fetch the password of a cluster's administrator",
        "boatyard password web-1 -o -",
        _add_secret_flags,
    ),
    (
        "logs",
        "boatyard.cli.logs:logs",
        "tell what the role of a cluster's template does or has done, task by task",
        "boatyard logs cluster web-1 -f",
        _logs,
    ),
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

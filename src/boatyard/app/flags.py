"""The flags of the commands that run Boatyard itself. A flag that is not given is None: the settings decide."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from boatyard.cli.commands import Flags, add_verb

if TYPE_CHECKING:
    from boatyard.cli.commands import Subparsers


def add_app_verbs(subparsers: Subparsers) -> None:
    """Adds the commands that run or maintain Boatyard's processes."""
    for name, line, example, flags in _VERBS:
        run = f"boatyard.app.{name}:run"
        add_verb(subparsers, name, run=run, line=line, example=example, flags=flags)


def _add_data_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="DIR", help="where keys and the embedded database are kept"
    )
    parser.add_argument("--database-url", metavar="URL", help="use this PostgreSQL, start none")


def _add_address_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grpc", metavar="HOST:PORT", help="(default: 127.0.0.1:8000; port 0: any)"
    )
    parser.add_argument(
        "--rest", metavar="HOST:PORT", help="(default: 127.0.0.1:8080; port 0: any)"
    )
    parser.add_argument("--tls", action="store_true", default=None, help="TLS, self-signed")
    parser.add_argument("--tls-cert", metavar="FILE", help="TLS with this certificate")
    parser.add_argument("--tls-key", metavar="FILE", help="and its key")
    parser.add_argument(
        "--anonymous",
        action="store_true",
        default=None,
        help="whoever comes without a token is an operator; loopback only",
    )


def _up(parser: argparse.ArgumentParser) -> None:
    _add_data_flags(parser)
    _add_address_flags(parser)
    parser.add_argument(
        "--bare",
        action="store_true",
        default=None,
        help="no catalogue, hubs or tenants to begin with",
    )
    _add_real_nodes_flag(parser)


def _serve(parser: argparse.ArgumentParser) -> None:
    _add_data_flags(parser)
    _add_address_flags(parser)


def _twin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", help="where its world is kept")
    parser.add_argument("--socket", metavar="FILE", help="unix socket to listen on")


def _keeper(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", help="where its clusters are kept")
    _add_real_nodes_flag(parser)


def _add_real_nodes_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--real-nodes",
        action="store_true",
        default=None,
        help="clusters may have nodes that run containers: their tenants can become root here",
    )


def _player(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("system", choices=("hypershift",), help="which system to play")
    parser.add_argument(
        "--kubeconfig", metavar="FILE", required=True, help="of the hub to play on, as its admin"
    )
    parser.add_argument(
        "--pace",
        metavar="PACE",
        default="realistic",
        help="instant, realistic, or a factor such as 0.01 (default: %(default)s)",
    )
    parser.add_argument("--faults", metavar="FILE", help="faults to plant, followed as it changes")
    parser.add_argument(
        "--answer",
        metavar="HOST:PORT",
        default="",
        help="answer there for the hosted API servers: health, version, nodes (default: nowhere)",
    )


def _operator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="the hub to work on (default: the one it runs in)"
    )
    parser.add_argument(
        "--context", dest="kube_context", metavar="NAME", help="other than the current one"
    )
    parser.add_argument(
        "--namespace",
        dest="system_namespace",
        metavar="NAME",
        help="where the hub's settings are (default: boatyard-system)",
    )
    parser.add_argument(
        "--probes", metavar="HOST:PORT", help="health and metrics (default: 127.0.0.1:8081)"
    )
    parser.add_argument(
        "--callbacks", metavar="HOST:PORT", help="hear results of automation (default: nowhere)"
    )
    parser.add_argument("--data", metavar="DIR", help="where simulated drivers look for the twin")


def _token(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("create",), metavar="create", help="what to do")
    parser.add_argument("--tenant", default="", help="whom the user belongs to; none for operators")
    parser.add_argument("--user", required=True, help="who will use it")
    parser.add_argument(
        "--role",
        choices=("operator", "admin", "member", "viewer"),
        default="member",
        help="(default: %(default)s)",
    )
    parser.add_argument("--ttl", default="30d", metavar="TIME", help="(default: %(default)s)")
    parser.add_argument("--data", metavar="DIR", help="data directory of the server that issues it")


def _assets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "install", "verify", "prune"), help="what to do")
    parser.add_argument(
        "--version",
        dest="versions",
        action="append",
        metavar="V",
        help="of this Kubernetes, such as 1.36; may be given again (default: install the newest, "
        "list and verify what is there)",
    )
    parser.add_argument("--all", action="store_true", help="of every Kubernetes known here")
    parser.add_argument(
        "--dir", dest="assets", metavar="DIR", help="where they are kept (default: in the cache)"
    )
    parser.add_argument(
        "--from", dest="assets_from", metavar="DIR", help="look here for programs, before PATH"
    )
    parser.add_argument(
        "--by",
        choices=("found", "download", "build"),
        help="only in this way (default: found, else downloaded, else built)",
    )
    parser.add_argument(
        "--kubernetes-mirror", metavar="URL", help="a copy of the Kubernetes releases"
    )
    parser.add_argument("--etcd-mirror", metavar="URL", help="a copy of the etcd releases")
    parser.add_argument(
        "--days",
        type=float,
        default=30.0,
        help="prune: remove builds of other recipes that nobody has installed for so long "
        "(default: %(default).0f)",
    )


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep", action="store_true", help="leave it running at the end, till Ctrl-C"
    )
    parser.add_argument(
        "--simulated",
        action="store_true",
        help="simulated clusters, also where real ones can be had",
    )


def _prove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--platform",
        choices=("sim", "local"),
        default="sim",
        help="simulated clusters, or real ones on this machine (default: %(default)s)",
    )
    parser.add_argument(
        "--hub",
        metavar="KUBECONFIG",
        help="keep orders on this Kubernetes, as somebody who may do anything there; nothing is left on it",
    )
    parser.add_argument(
        "--roles", action="store_true", help="order from a template with a role; its parts are run"
    )
    parser.add_argument(
        "--journeys", metavar="NAME,NAME", help="only these, such as create,delete (default: all)"
    )
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="kill at each Nth point (default: 1, all)"
    )
    parser.add_argument("--lanes", type=int, default=0, metavar="N", help="runs side by side")
    parser.add_argument("--json", metavar="FILE", help="write what was found there too")
    parser.add_argument("--keep", action="store_true", help="leave databases and logs behind")


_VERBS: tuple[tuple[str, str, str, Flags | None], ...] = (
    (
        "demo",
        "show one cluster from order to receipt in a simulated data centre",
        "boatyard demo",
        _demo,
    ),
    (
        "up",
        "run everything on this machine, with a simulated data centre",
        "boatyard up --data ./yard",
        _up,
    ),
    (
        "serve",
        "run the API alone, beside others on one database",
        "boatyard serve --database-url postgresql://yard@db/boatyard --grpc 0.0.0.0:8000",
        _serve,
    ),
    (
        "work",
        "run a worker alone, beside others on one database",
        "boatyard work --database-url postgresql://yard@db/boatyard",
        _add_data_flags,
    ),
    ("twin", "run the simulated data centre alone", "boatyard twin --data ./twin", _twin),
    (
        "keeper",
        "run the keeper of local clusters alone",
        "boatyard keeper --data ./yard",
        _keeper,
    ),
    (
        "player",
        "play a system that is not there on a Kubernetes hub, for tests and rehearsals",
        "boatyard player hypershift --kubeconfig hub.kubeconfig --pace 0.01",
        _player,
    ),
    (
        "operator",
        "carry out the orders of a Kubernetes hub, beside others or alone",
        "boatyard operator --kubeconfig hub.kubeconfig",
        _operator,
    ),
    (
        "migrate",
        "bring the database to this version",
        "boatyard migrate --database-url postgresql://yard@db/boatyard",
        _add_data_flags,
    ),
    (
        "assets",
        "have the programs that real clusters are made of: list, install, verify",
        "boatyard assets install --version 1.36",
        _assets,
    ),
    (
        "prove",
        "kill a worker at every write and every effect, and compare what is left",
        "boatyard prove",
        _prove,
    ),
    (
        "token",
        "make a token for somebody",
        "boatyard token create --tenant acme --user ann --role member",
        _token,
    ),
)

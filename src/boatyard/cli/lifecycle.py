"""The verbs hibernate, resume, upgrade and restore: one change, then the progress until it is done."""

from __future__ import annotations

import argparse
import sys

from boatyard.cli.cluster_progress import HIBERNATED, READY, follow_until
from boatyard.cli.clusters import find_version, print_next_command
from boatyard.cli.server_call import call_server
from boatyard.cli.text_format import clean, format_age, parse_duration, terminal_now
from boatyard.client.client import ApiObject, Client
from boatyard.client.kinds import BACKUP, CLUSTER
from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import Backup, Explanation
from boatyard.model.generated.osac import Cluster, ClusterRest


def hibernate(args: argparse.Namespace) -> int:
    return call_server(args, _hibernate)


async def _hibernate(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    cluster_object = await client.find_one(CLUSTER, args.name)
    rest = ClusterRest.STOPPED if args.deep else ClusterRest.FROZEN
    name = clean(args.name)
    needs_change = cluster_object.document.spec.rest < rest  # one that rests deeper stays as it is
    _, before = await client.explain(cluster_object.id)
    if needs_change:
        await client.set_cluster_rest(cluster_object.id, rest)
    print(
        f"Putting cluster {name} to rest."
        if needs_change
        else f"Cluster {name} was put to rest before."
    )
    if args.no_wait:
        print_next_command(f"boatyard wait cluster {name} --for hibernated")
        return
    await _follow_change(
        client,
        cluster_object,
        args,
        goal=HIBERNATED,
        doing="going to rest",
        timeout=timeout,
        before=before,
        moved=needs_change,
    )
    print_next_command(f"boatyard resume cluster {name}")


def resume(args: argparse.Namespace) -> int:
    return call_server(args, _resume)


async def _resume(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    cluster_object = await client.find_one(CLUSTER, args.name)
    name = clean(args.name)
    needs_change = cluster_object.document.spec.rest != ClusterRest.AWAKE
    _, before = await client.explain(cluster_object.id)
    if needs_change:
        await client.set_cluster_rest(cluster_object.id, ClusterRest.AWAKE)
    print(f"Waking cluster {name}." if needs_change else f"Cluster {name} does not rest.")
    if args.no_wait:
        print_next_command(f"boatyard wait cluster {name} --for ready")
        return
    await _follow_change(
        client,
        cluster_object,
        args,
        doing="waking up",
        timeout=timeout,
        before=before,
        moved=needs_change,
    )


def upgrade(args: argparse.Namespace) -> int:
    return call_server(args, _upgrade)


async def _upgrade(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    cluster_object = await client.find_one(CLUSTER, args.name)
    version = await find_version(client, args.to)
    _, before = await client.explain(cluster_object.id)
    changed_object = await client.upgrade_cluster(cluster_object.id, version)
    name = clean(args.name)
    print(
        f"Upgrading cluster {name}: {clean(_running_version(cluster_object.document))} → {clean(args.to)}"
    )
    if args.no_wait:
        print_next_command(f"boatyard wait cluster {name} --for ready")
        return
    moved = (
        changed_object.document.metadata.generation != cluster_object.document.metadata.generation
    )
    await _follow_change(
        client, cluster_object, args, doing="upgrading", timeout=timeout, before=before, moved=moved
    )


def _running_version(cluster: Cluster) -> str:
    return cluster.status.version or cluster.spec.version.name or cluster.spec.version.id


def restore(args: argparse.Namespace) -> int:
    return call_server(args, _restore)


async def _restore(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    cluster_object = await client.find_one(CLUSTER, args.name)
    backup_object = await client.find_one(BACKUP, args.backup)
    _confirm(cluster_object, backup_object.document, args)
    _, before = await client.explain(cluster_object.id)
    await client.restore_cluster(cluster_object.id, backup_object.id)
    name = clean(args.name)
    print(f"Restoring cluster {name} from backup {clean(args.backup)}.")
    if args.no_wait:
        print_next_command(f"boatyard wait cluster {name} --for ready")
        return
    await _follow_change(
        client, cluster_object, args, doing="restoring", timeout=timeout, before=before, moved=True
    )


def _confirm(cluster_object: ApiObject, backup: Backup, args: argparse.Namespace) -> None:
    """Asks the user to type the cluster's name, because everything newer than the backup is lost for good."""
    if args.yes:
        return
    name = clean(cluster_object.document.metadata.name or cluster_object.id)
    backup_age = format_age(backup.status.taken_at, terminal_now())
    warning = (
        f"everything in cluster {name} that is newer than the backup ({backup_age} old) is lost"
    )
    if not sys.stdin.isatty():
        raise Refused(f"{warning}; say that it is meant with --yes")
    print(f"{warning[0].upper()}{warning[1:]}.", file=sys.stderr)
    print("Type the cluster's name to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() not in (name, cluster_object.id):
        raise Refused("that is not its name; nothing was changed")


async def _follow_change(
    client: Client,
    cluster_object: ApiObject,
    args: argparse.Namespace,
    *,
    doing: str,
    timeout: float,
    before: Explanation,
    moved: bool,
    goal: str = READY,
) -> None:
    await follow_until(
        client,
        cluster_object.id,
        name=args.name,
        goal=goal,
        doing=doing,
        timeout=timeout,
        stream=sys.stdout,
        before=before,
        must_move=moved,
    )

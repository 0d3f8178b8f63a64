"""The verbs that change a cluster: create, scale, delete, retry; and wait."""

from __future__ import annotations

import argparse
import sys
from typing import TextIO

from boatyard.cli.cluster_flags import make_cluster, parse_sizes
from boatyard.cli.cluster_progress import DELETED, READY, follow_until
from boatyard.cli.output import print_object
from boatyard.cli.screen import print_lines
from boatyard.cli.server_call import call_server
from boatyard.cli.text_format import clean, parse_duration
from boatyard.cli.tree import format_receipt
from boatyard.client.client import ApiObject, Client, quote_text
from boatyard.client.kinds import BACKUP, CLUSTER, TEMPLATE, VERSION
from boatyard.client.kubeconfig_file import find_known_contexts
from boatyard.model.caller import SHARED
from boatyard.model.errors import NotFound, Refused
from boatyard.model.generated.boatyard import Explanation, Receipt
from boatyard.model.generated.osac import ClusterTemplate


def create(args: argparse.Namespace) -> int:
    return call_server(args, _create)


async def _create(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    template, by_id = await _find_template(client, args.template)
    version = await find_version(client, args.version) if args.version else ""
    backup = (await client.find_one(BACKUP, args.from_backup)).id if args.from_backup else ""
    cluster = make_cluster(args, template=template, by_id=by_id, version=version, backup=backup)
    cluster_object = await client.create_cluster(cluster)
    # With -o the answer belongs to stdout alone.
    stream = sys.stderr if args.output else sys.stdout
    print(f"Ordered cluster {clean(args.name)} ({cluster_object.id}).", file=stream)
    if args.no_wait:
        print_next_command(f"boatyard wait cluster {clean(args.name)} --for ready", stream)
    else:
        await follow_until(
            client,
            cluster_object.id,
            name=args.name,
            goal=READY,
            doing="creating",
            timeout=timeout,
            stream=stream,
        )
        print_next_command(f"boatyard kubeconfig {clean(args.name)}", stream)
        cluster_object = await client.get(CLUSTER, cluster_object.id)
    if args.output:
        print_object(cluster_object, CLUSTER, args.output)


def scale(args: argparse.Namespace) -> int:
    return call_server(args, _scale)


async def _scale(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    sizes = _parse_new_sizes(args)
    cluster_object = await client.find_one(CLUSTER, args.name)
    node_sets = cluster_object.document.spec.node_sets
    unknown = [name for name in sizes if name not in node_sets]
    if unknown:
        set_names = ", ".join(node_sets) or "none"
        raise NotFound(f"cluster {args.name!r} has no node set {unknown[0]!r}; it has: {set_names}")
    _, before = await client.explain(cluster_object.id)
    await client.scale_cluster(cluster_object.id, sizes)
    for name, size in sizes.items():
        print(f"Scaling cluster {clean(args.name)}: {clean(name)} {node_sets[name].size} → {size}")
    if args.no_wait:
        print_next_command(f"boatyard wait cluster {clean(args.name)} --for ready")
        return
    await follow_until(
        client,
        cluster_object.id,
        name=args.name,
        goal=READY,
        doing="scaling",
        timeout=timeout,
        stream=sys.stdout,
        before=before,
        must_move=any(node_sets[name].size != size for name, size in sizes.items()),
    )


def _parse_new_sizes(args: argparse.Namespace) -> dict[str, int]:
    texts = list(args.sizes)
    if args.node_set:
        if "=" in args.node_set and args.size is None:
            texts.append(args.node_set)
        elif args.size is None:
            raise Refused("--node-set needs --size N")
        else:
            texts.append(f"{args.node_set}={args.size}")
    elif args.size is not None:
        raise Refused("--size needs --node-set SET")
    if not texts:
        raise Refused("say which node set and how large, such as compute=5")
    return parse_sizes(texts, flag="size")


def delete(args: argparse.Namespace) -> int:
    if args.kind == "backup":
        from boatyard.cli.backups import delete_backup

        return call_server(args, delete_backup)
    if args.kind == "hub":
        from boatyard.cli.hubs import delete_hub

        return call_server(args, delete_hub)
    return call_server(args, _delete)


async def _delete(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    cluster_object = await client.find_one(CLUSTER, args.name)
    _, before = await client.explain(cluster_object.id)
    await client.delete_cluster(cluster_object.id)
    print(f"Deleting cluster {clean(args.name)} ({cluster_object.id}).")
    if args.no_wait:
        print_next_command(f"boatyard wait cluster {clean(args.name)} --for deleted")
        return
    await _wait_until_gone(
        client, cluster_object.id, name=args.name, timeout=timeout, before=before
    )


async def _wait_until_gone(
    client: Client, id: str, *, name: str, timeout: float, before: Explanation | None = None
) -> None:
    explanation = await follow_until(
        client,
        id,
        name=name,
        goal=DELETED,
        doing="deleting",
        timeout=timeout,
        stream=sys.stdout,
        before=before,
    )
    receipt = explanation.receipt
    if receipt == Receipt():
        receipt = await client.get_receipt(id)
    print_lines(format_receipt(explanation.name or name, receipt))
    if find_known_contexts(id):
        print_next_command(f"boatyard kubeconfig {clean(explanation.name or name)} --remove")


def wait(args: argparse.Namespace) -> int:
    return call_server(args, _wait)


async def _wait(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    try:
        cluster_object = await client.find_one(CLUSTER, args.name)
    except NotFound:
        if args.goal != DELETED:
            raise
        # Gone already: the receipt is the proof; without one there never was such a cluster.
        print_lines(format_receipt(args.name, await client.get_receipt(args.name)))
        return
    if args.goal == DELETED:
        await _wait_until_gone(client, cluster_object.id, name=args.name, timeout=timeout)
        return
    await follow_until(
        client,
        cluster_object.id,
        name=args.name,
        goal=args.goal,
        doing=_progress_word(cluster_object),
        timeout=timeout,
        stream=sys.stdout,
    )


def retry(args: argparse.Namespace) -> int:
    return call_server(args, _retry)


async def _retry(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    cluster_object = await client.find_one(CLUSTER, args.name)
    _, before = await client.explain(cluster_object.id)
    await client.retry(cluster_object.id)
    print(f"Trying again: cluster {clean(args.name)} ({cluster_object.id}).")
    deleting = cluster_object.document.metadata.deletion_timestamp is not None
    goal = DELETED if deleting else READY
    if args.no_wait:
        print_next_command(f"boatyard wait cluster {clean(args.name)} --for {goal}")
        return
    if deleting:
        await _wait_until_gone(client, cluster_object.id, name=args.name, timeout=timeout)
        return
    await follow_until(
        client,
        cluster_object.id,
        name=args.name,
        goal=READY,
        doing=_progress_word(cluster_object),
        timeout=timeout,
        stream=sys.stdout,
        before=before,
        must_move=before.state != "READY",  # a ready cluster may stay as it is
    )


def _progress_word(cluster_object: ApiObject) -> str:
    return "creating" if cluster_object.document.metadata.generation <= 1 else "progressing"


def print_next_command(command: str, stream: TextIO | None = None) -> None:
    print(f"Next: {command}", file=stream or sys.stdout)


async def _find_template(client: Client, key: str) -> tuple[ClusterTemplate, bool]:
    """The template with that id or name, and whether the id matched; own before shared."""
    where = f"this.id == {quote_text(key)} || this.metadata.name == {quote_text(key)}"
    rows = (await client.list(TEMPLATE, where=where)).rows
    templates: list[ClusterTemplate] = [row.document for row in rows]
    templates.sort(key=lambda template: (template.id != key, template.metadata.tenant == SHARED))
    if templates:
        return templates[0], templates[0].id == key
    template_names = [
        row.document.metadata.name or row.id for row in (await client.list(TEMPLATE)).rows
    ]
    raise NotFound(
        f"there is no template {key!r}; there are: {', '.join(template_names[:20]) or 'none yet'}"
    )


async def find_version(client: Client, key: str) -> str:
    """The id of the version with that id, name or number."""
    text = quote_text(key)
    where = f"this.id == {text} || this.metadata.name == {text} || this.spec.version == {text}"
    rows = (await client.list(VERSION, where=where)).rows
    if rows:
        return rows[0].id
    version_numbers = [row.document.spec.version for row in (await client.list(VERSION)).rows]
    raise NotFound(
        f"there is no version {key!r}; there are: {', '.join(version_numbers[:20]) or 'none yet'}"
    )

"""The verbs `kubeconfig` and `password`: write to your kubeconfig, to a file of mode 0600, or to stdout."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from boatyard.cli.exit_codes import DONE, report_error
from boatyard.cli.server_call import call_server
from boatyard.cli.text_format import clean, parse_duration
from boatyard.client import kubeconfig as merging
from boatyard.client.client import ApiObject, Client, IssuedAccess
from boatyard.client.config import write_private_file
from boatyard.client.kinds import CLUSTER
from boatyard.client.kubeconfig import EntryOwner, RemovalResult
from boatyard.client.kubeconfig_file import EditResult, edit_kubeconfig, find_kubeconfig
from boatyard.model.errors import BoatyardError, Refused

_LONGEST_TTL_SECONDS = 2**31 - 1  # the field's maximum; the server checks the real bound
_USER_PREFIX = "boatyard:"  # the prefix of users in issued certificates


def kubeconfig(args: argparse.Namespace) -> int:
    try:
        _check_flags(args)
        if args.remove:
            return _remove_from_kubeconfig(args)
    except (BoatyardError, OSError) as error:
        return report_error(error)
    return call_server(args, _kubeconfig)


def _check_flags(args: argparse.Namespace) -> None:
    if args.output and (args.context or args.switch):
        raise Refused("--context and --switch are about your kubeconfig; leave -o out")
    if args.remove and (args.output or args.switch or args.ttl):
        raise Refused("--remove goes with --context and --for only")


async def _kubeconfig(client: Client, args: argparse.Namespace) -> None:
    cluster_object = await client.find_one(CLUSTER, args.name)
    issued = await _issue(client, cluster_object, args) if args.user or args.ttl else None
    secret = issued.kubeconfig if issued else await client.get_kubeconfig(cluster_object.id)
    if args.output == "-":
        _write_secret(secret, "-")
        return
    if issued:
        expiry = f"{issued.expires_at:%Y-%m-%d %H:%M:%S} UTC"
        print(f"Issued to {clean(issued.user)}, valid until {expiry}.")
    if args.output:
        _write_secret(secret, args.output)
        print(f"Wrote {clean(args.output)}, readable by you only.")
        _print_next_command("--kubeconfig", args.output)
        return
    user = issued.user.removeprefix(_USER_PREFIX) if issued else ""
    _merge_kubeconfig(secret, _make_owner(client, cluster_object, user), args)


async def _issue(
    client: Client, cluster_object: ApiObject, args: argparse.Namespace
) -> IssuedAccess:
    seconds = min(int(parse_duration(args.ttl)), _LONGEST_TTL_SECONDS) if args.ttl else None
    return await client.issue_kubeconfig(cluster_object.id, user=args.user, seconds=seconds)


def _make_owner(client: Client, cluster_object: ApiObject, user: str) -> EntryOwner:
    metadata = cluster_object.document.metadata
    return EntryOwner(
        cluster=cluster_object.id,
        name=metadata.name or cluster_object.id,
        server=client.target.address,
        tenant=metadata.tenant,
        project=metadata.project,
        user=user,
    )


def _merge_kubeconfig(secret: str, owner: EntryOwner, args: argparse.Namespace) -> None:
    context = args.context or "-".join(filter(None, ("boatyard", owner.name, owner.user)))
    path = find_kubeconfig()

    def change(text: str) -> str:
        return merging.merge_cluster(text, secret, context=context, owner=owner, switch=args.switch)

    edited = edit_kubeconfig(path, change)
    print(f"Merged into {clean(str(path))} as context {clean(context)}, readable by you only.")
    _print_backup_note(edited)
    if args.switch:
        print("Next: kubectl get nodes")
    else:
        _print_next_command("--context", context)


def _remove_from_kubeconfig(args: argparse.Namespace) -> int:
    """Removes a cluster from your kubeconfig. Needs no server: the cluster may be gone."""
    path = find_kubeconfig()
    if not path.exists():
        print(f"There is no {clean(str(path))}; nothing to remove.")
        return DONE
    removed = RemovalResult("")

    def change(text: str) -> str:
        nonlocal removed
        removed = merging.remove_cluster(text, args.name, context=args.context, user=args.user)
        return removed.text

    edited = edit_kubeconfig(path, change)
    if not removed.contexts:
        print(f"{clean(str(path))} has nothing of cluster {clean(args.name)}.")
        return DONE
    names = ", ".join(map(clean, removed.contexts))
    print(f"Removed from {clean(str(path))}: {names}, with its user and cluster.")
    if removed.broken:
        print(f"These used them and lead nowhere now: {', '.join(map(clean, removed.broken))}.")
    _print_backup_note(edited)
    return DONE


def _print_backup_note(edited: EditResult) -> None:
    if edited.backup is not None:
        print(f"Its comments are lost; as it was: {clean(str(edited.backup))}")


def _print_next_command(flag: str, value: str) -> None:
    print(f"Next: kubectl {flag} {shlex.quote(clean(value))} get nodes")


def password(args: argparse.Namespace) -> int:
    return call_server(args, _password)


async def _password(client: Client, args: argparse.Namespace) -> None:
    if not args.output:
        raise Refused("say where the password goes: -o FILE, or -o - to print it")
    cluster_object = await client.find_one(CLUSTER, args.name)
    _write_secret(await client.get_password(cluster_object.id), args.output)


def _write_secret(secret: str, path: str) -> None:
    text = secret if secret.endswith("\n") else secret + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    write_private_file(Path(path), text.encode())

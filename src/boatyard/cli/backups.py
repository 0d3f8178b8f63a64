"""The verb `backup`, and deletion of a backup: one call, then polling until it is done."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from datetime import datetime
from typing import TextIO

from boatyard.cli.clusters import print_next_command
from boatyard.cli.exit_codes import StillRunning, Unsuccessful
from boatyard.cli.output import print_object
from boatyard.cli.server_call import call_server
from boatyard.cli.text_format import (
    clean,
    format_duration,
    format_size,
    parse_duration,
    terminal_now,
)
from boatyard.client.client import ApiObject, Client, ReconnectBackoff
from boatyard.client.kinds import BACKUP, CLUSTER
from boatyard.model.caller import SHARED
from boatyard.model.errors import NotFound
from boatyard.model.generated.boatyard import Backup, BackupSpec, BackupState
from boatyard.model.generated.osac import Metadata

_LONGEST_NAME = 63


def backup(args: argparse.Namespace) -> int:
    return call_server(args, _backup)


async def _backup(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    cluster = await client.find_one(CLUSTER, args.name)
    metadata = cluster.document.metadata
    name = args.backup_name or default_backup_name(metadata.name or cluster.id, terminal_now())
    backup_object = await client.create_backup(
        Backup(
            metadata=Metadata(
                name=name,
                project=metadata.project,
                tenant=metadata.tenant if metadata.tenant != SHARED else "",
            ),
            spec=BackupSpec(cluster=cluster.id, folder=args.folder),
        )
    )
    # With -o the answer belongs to stdout alone.
    stream = sys.stderr if args.output else sys.stdout
    print(f"Taking backup {clean(name)} of cluster {clean(args.name)}.", file=stream)
    if args.no_wait:
        print_next_command(f"boatyard get backups {clean(name)}", stream)
    else:
        backup_object = await _wait_until_taken(
            client, backup_object, timeout=timeout, stream=stream
        )
        status = backup_object.document.status
        facts = f"{format_size(status.bytes)}, version {clean(status.version)}"
        print(f"Backup {clean(name)} is ready: {facts}.", file=stream)
        print_next_command(
            f"boatyard restore cluster {clean(args.name)} --backup {clean(name)}", stream
        )
    if args.output:
        print_object(backup_object, BACKUP, args.output)


def default_backup_name(cluster: str, now: datetime) -> str:
    """A name for a backup: the cluster's name and the time, cut to the longest valid name."""
    moment = now.strftime("%Y%m%d-%H%M%S")
    start = re.sub("[^a-z0-9-]", "-", cluster.lower())[: _LONGEST_NAME - len(moment) - 1]
    return f"{start.strip('-')}-{moment}"


async def _wait_until_taken(
    client: Client, backup_object: ApiObject, *, timeout: float, stream: TextIO
) -> ApiObject:
    """Polls until the backup is ready; prints its message whenever that changes."""
    name = clean(backup_object.document.metadata.name)
    last_message, backoff = backup_object.document.status.message, ReconnectBackoff()
    try:
        async with asyncio.timeout(timeout or None):
            while backup_object.document.status.state == BackupState.PENDING:
                await backoff.sleep()
                backup_object = await client.get(BACKUP, backup_object.id)
                message = backup_object.document.status.message
                if message and message != last_message:
                    print(f"{name}: {clean(message)}", file=stream, flush=True)
                last_message = message
    except TimeoutError as error:
        raise StillRunning(
            f"backup {name} is not ready after {format_duration(timeout)}; it goes on."
            f" Look again: boatyard get backups {name}"
        ) from error
    if backup_object.document.status.state != BackupState.READY:
        raise Unsuccessful(f"backup {name} failed: {clean(backup_object.document.status.message)}")
    return backup_object


async def delete_backup(client: Client, args: argparse.Namespace) -> None:
    timeout = parse_duration(args.timeout)
    backup_object = await client.find_one(BACKUP, args.name)
    await client.delete_backup(backup_object.id)
    name = clean(args.name)
    print(f"Deleting backup {name}.")
    if args.no_wait:
        return
    backoff = ReconnectBackoff()
    try:
        async with asyncio.timeout(timeout or None):
            while await _exists(client, backup_object.id):
                await backoff.sleep()
    except TimeoutError as error:
        raise StillRunning(
            f"backup {name} is still there after {format_duration(timeout)}; it goes away by itself"
        ) from error
    print(f"Backup {name} is gone.")


async def _exists(client: Client, id: str) -> bool:
    try:
        await client.get(BACKUP, id)
    except NotFound:
        return False
    return True

"""The verbs `explain` and `events`: the state of a cluster's order and the reason for it, and its history."""

from __future__ import annotations

import argparse
import sys
from contextlib import aclosing
from datetime import datetime

from boatyard.cli.output import format_data, to_dict
from boatyard.cli.screen import print_lines
from boatyard.cli.server_call import call_server
from boatyard.cli.text_format import clean, terminal_now
from boatyard.cli.tree import format_explanation
from boatyard.client.client import Client, quote_text
from boatyard.client.connection import to_struct
from boatyard.client.kinds import CLUSTER
from boatyard.model.errors import BoatyardError, NotFound, Refused
from boatyard.model.generated.boatyard import HistoryEntry


def explain(args: argparse.Namespace) -> int:
    return call_server(args, _explain)


async def _explain(client: Client, args: argparse.Namespace) -> None:
    cluster_object = await client.find_one(CLUSTER, args.name)
    message, explanation = await client.explain(cluster_object.id)
    if args.output:
        print(format_data(to_dict(message), args.output))
        return
    print_lines(format_explanation(explanation, now=terminal_now()))


def events(args: argparse.Namespace) -> int:
    return call_server(args, _events)


async def _events(client: Client, args: argparse.Namespace) -> None:
    if args.limit is not None and args.limit < 1:
        raise Refused("--limit must be 1 or more")
    try:
        id = (await client.find_one(CLUSTER, args.name)).id
    except NotFound:
        id = args.name  # a deleted cluster has a history too
    if not args.watch:
        _print_history(await client.get_history(id, args.limit))
        return
    where = f"event.cluster.id == {quote_text(id)}"
    async with aclosing(
        client.watch(CLUSTER, where=where, on_cut=_print_lost_connection)
    ) as stream:
        async for event in stream:
            if event is None:
                _print_history(await client.get_history(id, args.limit))
                continue
            event_struct = to_struct(event)
            if event_struct.message:
                _print_history(
                    (
                        HistoryEntry(
                            at=event_struct.at,
                            reason=event_struct.reason,
                            message=event_struct.message,
                        ),
                    )
                )


def _print_history(happenings: tuple[HistoryEntry, ...]) -> None:
    for happening in happenings:
        print(format_history_entry(happening), flush=True)


def format_history_entry(happening: HistoryEntry) -> str:
    return f"{_format_time(happening.at)}  {clean(happening.reason):<18}  {clean(happening.message)}".rstrip()


def _format_time(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else "-" * 19


def _print_lost_connection(error: BoatyardError) -> None:
    print(f"connection lost, trying again: {clean(str(error))}", file=sys.stderr)

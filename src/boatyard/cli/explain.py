"""The verbs `explain` and `events`: the state of a cluster's order and the reason for it, and its history."""

from __future__ import annotations

import argparse
import sys
from contextlib import aclosing
from datetime import datetime

from boatyard.cli.calling import call
from boatyard.cli.output import as_data, as_form
from boatyard.cli.screen import print_lines
from boatyard.cli.tree import explanation_lines
from boatyard.cli.words import clean, terminal_now
from boatyard.client.client import Client, quoted
from boatyard.client.connection import as_struct
from boatyard.client.kinds import CLUSTER
from boatyard.model.errors import BoatyardError, NotFound, Refused
from boatyard.model.generated.boatyard import Happening


def explain(args: argparse.Namespace) -> int:
    return call(args, _explain)


async def _explain(client: Client, args: argparse.Namespace) -> None:
    cluster_object = await client.find_one(CLUSTER, args.name)
    message, explanation = await client.explain(cluster_object.id)
    if args.output:
        print(as_form(as_data(message), args.output))
        return
    print_lines(explanation_lines(explanation, now=terminal_now()))


def events(args: argparse.Namespace) -> int:
    return call(args, _events)


async def _events(client: Client, args: argparse.Namespace) -> None:
    if args.limit is not None and args.limit < 1:
        raise Refused("--limit must be 1 or more")
    try:
        id = (await client.find_one(CLUSTER, args.name)).id
    except NotFound:
        id = args.name  # a deleted cluster has a history too
    if not args.watch:
        _print(await client.history(id, args.limit))
        return
    where = f"event.cluster.id == {quoted(id)}"
    async with aclosing(client.watch(CLUSTER, where=where, on_cut=_say_cut)) as stream:
        async for event in stream:
            if event is None:
                _print(await client.history(id, args.limit))
                continue
            event_struct = as_struct(event)
            if event_struct.message:
                _print(
                    (
                        Happening(
                            at=event_struct.at,
                            reason=event_struct.reason,
                            message=event_struct.message,
                        ),
                    )
                )


def _print(happenings: tuple[Happening, ...]) -> None:
    for happening in happenings:
        print(happening_line(happening), flush=True)


def happening_line(happening: Happening) -> str:
    return f"{_clock(happening.at)}  {clean(happening.reason):<18}  {clean(happening.message)}".rstrip()


def _clock(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else "-" * 19


def _say_cut(error: BoatyardError) -> None:
    print(f"connection lost, trying again: {clean(str(error))}", file=sys.stderr)

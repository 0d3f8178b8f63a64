"""The verb `get`: lists objects of any kind, once or as they change."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from boatyard.cli.output import (
    align_cells,
    format_columns,
    format_data,
    print_names,
    print_objects,
    to_dict,
)
from boatyard.cli.output import print_object as print_one
from boatyard.cli.server_call import call_server
from boatyard.cli.tables import list_columns
from boatyard.cli.text_format import clean, terminal_now
from boatyard.client.client import ApiObject, Client, Listing, quote_text
from boatyard.client.connection import to_struct
from boatyard.client.kinds import ClientKind, find_kind
from boatyard.model.errors import BoatyardError, Refused
from boatyard.model.generated.osac import EventType


def get(args: argparse.Namespace) -> int:
    return call_server(args, _get)


async def _get(client: Client, args: argparse.Namespace) -> None:
    kind = find_kind(args.kind)
    if args.names and args.filter:
        raise Refused("give names or --filter, not both")
    if args.limit is not None and args.limit < 1:
        raise Refused("--limit must be 1 or more")
    if args.watch:
        if args.output in ("yaml", "name") or args.limit is not None:
            raise Refused("--watch goes with the table, -o wide or -o json, and without --limit")
        await _watch(client, kind, args)
        return
    listing = await _find_rows(client, kind, args)
    rows = listing.rows
    if args.output == "name":
        print_names(rows, kind)
    elif args.output in ("json", "yaml"):
        if len(args.names) == 1:
            print_one(rows[0], kind, args.output)
        else:
            print_objects(rows, args.output)
    elif rows:
        print("\n".join(_format_table(kind, rows, wide=args.output == "wide")))
    else:
        print(f"There are no {kind.plural}{' like that' if args.filter else ''}.", file=sys.stderr)
    if len(rows) < listing.total:
        print(f"Shown are {len(rows)} of {listing.total}; raise --limit for more.", file=sys.stderr)


async def _find_rows(client: Client, kind: ClientKind, args: argparse.Namespace) -> Listing:
    if args.names:
        rows = await client.find(kind, args.names)
        return Listing(rows, len(rows))
    return await client.list(kind, where=args.filter, limit=args.limit)


def _format_table(kind: ClientKind, rows: tuple[ApiObject, ...], *, wide: bool) -> list[str]:
    table_columns = list_columns(kind.name, wide=wide)
    now = terminal_now()
    cells = [[column.cell(row.document, now) for column in table_columns] for row in rows]
    return format_columns([column.title for column in table_columns], cells)


# --- watching ---------------------------------------------------------------------------------


async def _watch(client: Client, kind: ClientKind, args: argparse.Namespace) -> None:
    """Prints the rows, then each change; no change between the two is lost."""
    if args.filter:
        raise Refused("--watch goes with names, not with --filter")
    row_ids = sorted(row.id for row in await client.find(kind, args.names))
    ids = ", ".join(quote_text(id) for id in row_ids)
    where = f"event.{kind.event_field}.id in [{ids}]" if row_ids else ""
    printer = _ChangePrinter(kind, form=args.output)
    async with aclosing(client.watch(kind, where=where, on_cut=_print_lost_connection)) as stream:
        async for event in stream:
            if event is None:
                listing = await _find_rows(client, kind, args)
                printer.show_rows([row.document for row in listing.rows])
            else:
                printer.show_event(event)


class _ChangePrinter:
    """Prints a table that grows downwards; versions of an object that were printed are not printed again."""

    def __init__(self, kind: ClientKind, *, form: str) -> None:
        self._kind = kind
        self._json = form == "json"
        self._columns = list_columns(kind.name, wide=form == "wide")
        self._versions: dict[str, int] = {}
        self._widths: list[int] = []

    def show_rows(self, documents: Sequence[Any]) -> None:
        new_documents = [document for document in documents if self._is_newer(document)]
        if not self._json:
            self._print(new_documents)

    def show_event(self, event: Any) -> None:
        document = to_struct(getattr(event, self._kind.event_field))
        deleted = event.type == EventType.OBJECT_DELETED
        if not self._is_newer(document) and not deleted:
            return
        if self._json:
            print(format_data(to_dict(event), "json"), flush=True)
        else:
            self._print([document], deleted=deleted)

    def _is_newer(self, document: Any) -> bool:
        shown_version = self._versions.get(document.id, -1)
        self._versions[document.id] = max(shown_version, document.metadata.version)
        return bool(document.metadata.version > shown_version)

    def _print(self, documents: Sequence[Any], *, deleted: bool = False) -> None:
        now = terminal_now()
        lines = [
            [clean(column.cell(document, now)) or "-" for column in self._columns]
            for document in documents
        ]
        if not self._widths:
            lines.insert(0, [column.title for column in self._columns])
            self._widths = [
                max(column.min_width, *(len(line[index]) for line in lines))
                for index, column in enumerate(self._columns)
            ]
        for line in lines:
            print(align_cells(line, self._widths) + ("  (gone)" if deleted else ""), flush=True)


def _print_lost_connection(error: BoatyardError) -> None:
    print(f"connection lost, trying again: {clean(str(error))}", file=sys.stderr)

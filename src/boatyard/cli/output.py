"""Prints objects as JSON, YAML or names, and rows as aligned columns. Control characters are always escaped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from google.protobuf import json_format

from boatyard.cli.words import clean
from boatyard.client.client import Found
from boatyard.client.kinds import Kind


def print_object(row: Found, kind: Kind, form: str) -> None:
    if form == "name":
        print_names([row], kind)
        return
    print(as_form(as_data(row.message), form))


def print_objects(rows: Sequence[Found], form: str) -> None:
    """Prints a list, however many objects there are, so that scripts need no special case."""
    print(as_form([as_data(row.message) for row in rows], form))


def print_names(rows: Sequence[Found], kind: Kind) -> None:
    for row in rows:
        print(f"{kind.name}/{clean(row.document.metadata.name or row.id)}")


def as_data(message: Any) -> dict[str, Any]:
    """A message as the REST server shows it."""
    data: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return data


def as_form(data: Any, form: str) -> str:
    """JSON or YAML in plain ASCII: control characters are escaped."""
    if form == "json":
        return json.dumps(data, indent=2, ensure_ascii=True)
    import yaml

    plain = json.loads(json.dumps(data))  # an Any comes as a kind of dict that YAML does not know
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=False)
    return text.rstrip("\n")


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines under a header, each column as wide as its widest cell, control characters escaped."""
    cells = [[clean(cell) or "-" for cell in row] for row in rows]
    widths = [
        max([len(title), *(len(row[index]) for row in cells)]) for index, title in enumerate(header)
    ]
    return [aligned(line, widths) for line in (header, *cells)]


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()

"""Prints objects as JSON, YAML or names, and rows as aligned columns. Control characters are always escaped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from google.protobuf import json_format

from boatyard.cli.text_format import clean
from boatyard.client.client import ApiObject
from boatyard.client.kinds import ClientKind


def print_object(row: ApiObject, kind: ClientKind, form: str) -> None:
    if form == "name":
        print_names([row], kind)
        return
    print(format_data(to_dict(row.message), form))


def print_objects(rows: Sequence[ApiObject], form: str) -> None:
    """Prints a list, however many objects there are, so that scripts need no special case."""
    print(format_data([to_dict(row.message) for row in rows], form))


def print_names(rows: Sequence[ApiObject], kind: ClientKind) -> None:
    for row in rows:
        print(f"{kind.name}/{clean(row.document.metadata.name or row.id)}")


def to_dict(message: Any) -> dict[str, Any]:
    """A message as the REST server shows it."""
    data: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return data


def format_data(data: Any, form: str) -> str:
    """JSON or YAML in plain ASCII: control characters are escaped."""
    if form == "json":
        return json.dumps(data, indent=2, ensure_ascii=True)
    import yaml

    plain = json.loads(json.dumps(data))  # an Any comes as a kind of dict that YAML does not know
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=False)
    return text.rstrip("\n")


def format_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines under a header, each column as wide as its widest cell, control characters escaped."""
    cells = [[clean(cell) or "-" for cell in row] for row in rows]
    widths = [
        max([len(title), *(len(row[index]) for row in cells)]) for index, title in enumerate(header)
    ]
    return [align_cells(line, widths) for line in (header, *cells)]


def align_cells(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()

"""Compiles the filters and orders that callers send for lists and watches. Called by the API."""

from __future__ import annotations

import re
from functools import lru_cache

from google.protobuf.descriptor import Descriptor

from boatyard.ledger.filters.check import Checker, find_field
from boatyard.ledger.filters.conditions import OrderBy, Parameters, Predicate
from boatyard.ledger.filters.fields import SQL_TYPES, FieldPath, ValueKind
from boatyard.ledger.filters.parse import MAX_BYTES, parse_filter
from boatyard.model.errors import Refused

_MAX_KEYS = 8
_KEY_PATTERN = re.compile(
    r"(?P<path>[A-Za-z_][\w.]*)(?:\s+(?P<way>asc|desc))?", re.ASCII | re.IGNORECASE
)


@lru_cache(maxsize=1024)
def compile_filter(text: str, descriptor: Descriptor, variable: str = "this") -> Predicate:
    """Compiles a filter over messages of this descriptor. Refused, with line and column, when it is not valid.

    A filter can use the fields of the descriptor, except secret ones.
    """
    checker = Checker(descriptor, variable)
    node = checker.check_condition(parse_filter(text))
    return Predicate(node.sql, node.match(), frozenset(checker.mentioned_fields))


@lru_cache(maxsize=256)
def compile_order(text: str, descriptor: Descriptor, variable: str = "this") -> tuple[OrderBy, ...]:
    """Compiles keys such as `metadata.name desc, this.spec.version`. Refused when a key cannot be sorted by."""
    if len(text) > MAX_BYTES:
        raise _make_refusal(f"it is longer than {MAX_BYTES}")
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if len(parts) > _MAX_KEYS:
        raise _make_refusal(f"it has more than {_MAX_KEYS} keys")
    return tuple(_compile_key(part, descriptor, variable) for part in parts)


def _compile_key(part: str, descriptor: Descriptor, variable: str) -> OrderBy:
    match = _KEY_PATTERN.fullmatch(part)
    if match is None:
        raise _make_refusal(f"{part[:100]!r} is not a field, with or without asc or desc")
    path = FieldPath(ValueKind.MESSAGE, message=descriptor)
    for name in match["path"].removeprefix(f"{variable}.").split("."):
        try:
            path = find_field(path, name)
        except ValueError as error:
            raise _make_refusal(str(error)) from error
    if path.kind not in SQL_TYPES:
        raise _make_refusal(f"{path.dotted} is a {path.kind.value}, which has no order")

    def sql(parameters: Parameters) -> str:
        collate = ' collate "C"' if path.kind is ValueKind.STRING else ""
        return path.value(parameters) + collate

    return OrderBy(sql, descending=(match["way"] or "").lower() == "desc")


def _make_refusal(message: str) -> Refused:
    return Refused(f"bad order: {message}", reason="BadOrder")

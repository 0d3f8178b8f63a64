"""Constants of a filter, and their conversion to the type of the field that they are compared with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.protobuf.descriptor import EnumDescriptor

from boatyard.ledger.filters.fields import ValueKind
from boatyard.ledger.filters.nodes import Constant
from boatyard.ledger.filters.parse import TokenKind

INT64 = range(-(2**63), 2**63)
_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.)|$)", re.DOTALL
)


@dataclass(frozen=True)
class Literal:
    """A constant as written. A bare name stands for a value of an enum."""

    kind: ValueKind | None  # None is a bare name
    value: Any

    def convert_for(self, kind: ValueKind, enum: EnumDescriptor | None) -> Constant:
        """Converts the constant for a field of this kind. ValueError when they cannot be compared."""
        if kind is ValueKind.ENUM and enum is not None and self.kind in (None, ValueKind.STRING):
            return Constant(ValueKind.ENUM, _enum_number(enum, self.value))
        if kind is ValueKind.DOUBLE and self.kind is ValueKind.INT:
            return Constant(kind, float(self.value))
        if kind is self.kind or (kind is ValueKind.ENUM and self.kind is ValueKind.INT):
            return Constant(kind, self.value)
        if self.kind is None:
            raise ValueError(f"there is no {self.value!r}")
        hint = '; write timestamp("2026-01-31T12:00:00Z")' if kind is ValueKind.TIMESTAMP else ""
        raise ValueError(f"a {kind.value} cannot be compared with a {self.kind.value}{hint}")


def _enum_number(enum: EnumDescriptor, name: str) -> int:
    """The number of an enum's value by full name (CLUSTER_STATE_READY) or without the common prefix (READY)."""
    enum_value = enum.values_by_name.get(name)
    if enum_value is None:
        prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
        enum_value = enum.values_by_name.get(prefix + name)
    if enum_value is None:
        raise ValueError(f"{name!r} is not a value of {enum.name}")
    return int(enum_value.number)


def read_literal(kind: TokenKind, text: str) -> Literal:
    """Reads a literal. ValueError when it has no value."""
    match kind:
        case TokenKind.BOOL:
            return Literal(ValueKind.BOOL, text == "true")
        case TokenKind.NULL:
            return Literal(ValueKind.NULL, None)
        case TokenKind.INT:
            return Literal(ValueKind.INT, read_int(text))
        case TokenKind.DOUBLE:
            value = float(text)
            if value in (float("inf"), float("-inf")):
                raise ValueError(f"{text} is too large")
            return Literal(ValueKind.DOUBLE, value)
        case TokenKind.STRING:
            return Literal(ValueKind.STRING, read_string(text))
        case _:
            raise ValueError("constants of this kind are not supported")


def read_int(text: str) -> int:
    bare = text.rstrip("uU")
    value = int(bare, 16) if "0x" in bare else int(bare)
    if value not in INT64:
        raise ValueError(f"{text} does not fit into 64 bits")
    return value


def read_string(text: str) -> str:
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    quotes = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    body = body[quotes:-quotes]
    value = body if raw else _ESCAPE.sub(_unescape, body)
    if "\0" in value:
        raise ValueError("a text with a NUL character is kept nowhere")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError("a lone surrogate is no character")
    return value


def _unescape(match: re.Match[str]) -> str:
    for digits, base in ((match[1], 16), (match[2], 16), (match[3], 16), (match[4], 8)):
        if digits is not None:
            try:
                return chr(int(digits, base))
            except (ValueError, OverflowError) as error:
                raise ValueError(f"{match[0]} is no character") from error
    if match[5] not in _ESCAPES:
        raise ValueError(f"{match[0]!r} is not an escape")
    return _ESCAPES[match[5]]


def read_timestamp(text: str) -> Literal:
    try:
        value = datetime.fromisoformat(text)
        if value.tzinfo is None or "T" not in text:
            raise ValueError("no time zone")
        return Literal(ValueKind.TIMESTAMP, value.astimezone(UTC))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a moment; write it as 2026-01-31T12:00:00Z") from error

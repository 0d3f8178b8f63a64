"""Reads and changes fields of documents by path. Called by masks, references and redaction.

A path is dotted; `*` stands for every key of a map or every element of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

HIDDEN = "***"

S = TypeVar("S", bound=msgspec.Struct)


@cache
def split_path(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def read(value: object, path: str) -> Any:
    """The value at a path without `*`; None when a message on the way is absent."""
    for name in split_path(path):
        if value is None:
            return None
        value = getattr(value, name)
    return value


def list_values(value: Any, path: tuple[str, ...], at: str = "") -> list[tuple[str, Any]]:
    """All values at the path, each with its own path, in which `*` is replaced by the key or the index."""
    for place, name in enumerate(path):
        if value is None:
            return []
        if name == "*":
            here = _append_path(at, path[:place])
            entries = (
                [(f"{here}.{key}", entry) for key, entry in value.items()]
                if isinstance(value, Mapping)
                else [(f"{here}[{index}]", entry) for index, entry in enumerate(value)]
            )
            below = path[place + 1 :]
            return [match for at, entry in entries for match in list_values(entry, below, at)]
        value = getattr(value, name)
    return [] if value is None else [(_append_path(at, path), value)]


@cache
def _format_path(path: tuple[str, ...]) -> str:
    return ".".join(path)


def _append_path(at: str, path: tuple[str, ...]) -> str:
    return f"{at}.{_format_path(path)}" if at and path else at or _format_path(path)


def rewrite(
    value: Any, path: Sequence[str], change: Callable[[str, Any], Any], at: str = ""
) -> Any:
    """A copy of `value` with every value at the path changed; unchanged parts are shared, not copied."""
    if value is None:
        return None
    if not path:
        return change(at, value)
    head, rest = path[0], path[1:]
    if head != "*":
        old = getattr(value, head)
        new = rewrite(old, rest, change, f"{at}.{head}" if at else head)
        return value if new is old else msgspec.structs.replace(value, **{head: new})
    if isinstance(value, Mapping):
        entries = {key: rewrite(old, rest, change, f"{at}.{key}") for key, old in value.items()}
        return value if all(entries[key] is old for key, old in value.items()) else entries
    elements = tuple(rewrite(old, rest, change, f"{at}[{i}]") for i, old in enumerate(value))
    return value if all(a is b for a, b in zip(elements, value, strict=True)) else elements


def replace_field(doc: S, path: str, new: object) -> S:
    """A copy of the document with one field replaced; the messages on the way to it must exist."""
    return _put(doc, split_path(path), new)


def _put(doc: S, path: tuple[str, ...], new: object) -> S:
    name, below = path[0], path[1:]
    if below:
        new = _put(getattr(doc, name), below, new)
    return msgspec.structs.replace(doc, **{name: new})


def clear_fields(doc: S, paths: Sequence[str]) -> S:
    """A copy of the document with these fields empty."""
    for path in paths:
        parent, _, name = path.rpartition(".")
        empty = getattr(type(read(doc, parent))(), name)
        if read(doc, path) != empty:
            doc = replace_field(doc, path, empty)
    return doc


def redact(doc: S, paths: Sequence[str]) -> S:
    """A copy of the document with `***` in place of every non-empty value at these paths."""
    for path in paths:
        doc = rewrite(doc, split_path(path), _hide)
    return doc


def is_hidden(value: object) -> bool:
    return value in (HIDDEN, HIDDEN.encode())


def _hide(_path: str, value: str | bytes) -> str | bytes:
    if not value:
        return value
    return HIDDEN.encode() if isinstance(value, bytes) else HIDDEN

"""Reads a YAML file of a role safely: tags are refused, sizes are bounded, duplicate keys are mistakes. Pure.

The line of every value is recorded, so that a mistake can name it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from boatyard.roles.mistakes import Mistake

LARGEST_FILE = 256 * 1024
DEEPEST = 32
MOST_VALUES = 20_000  # aliases count each time they are used
MOST_TEXT = 2 * LARGEST_FILE  # characters, likewise

# The C loader where it is available; both make the same nodes.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_TEXTS = {f"{_TAG}{name}" for name in ("str", "timestamp", "value")}
_SCALARS = _TEXTS | {f"{_TAG}{name}" for name in ("int", "float", "bool", "null")}
_MERGE = f"{_TAG}merge"

Path = tuple[str | int, ...]


class _TooMuch(Exception):
    """The file has more values, text or nesting than any file written by a person."""


@dataclass(frozen=True)
class Document:
    """The values of one file, their lines, and the list to which mistakes are added."""

    file: str
    value: Any
    mistakes: list[Mistake]
    lines: Mapping[Path, int] = field(default_factory=dict)

    def wrong(self, path: Path, message: str, remedy: str = "") -> None:
        self.mistakes.append(
            Mistake(self.file, self._line(path), shown_path(path), message, remedy)
        )

    def _line(self, path: Path) -> int:
        """The line of the value at `path`, or of the nearest value around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)


def shown_path(path: Path) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def read_yaml(file: str, data: bytes, mistakes: list[Mistake]) -> Document | None:
    """The only document of the file. None when it cannot be read at all; `mistakes` then says why."""
    node = _compose(file, data, mistakes)
    if node is None:
        return None
    reader = _Reader(file, mistakes)
    try:
        value = reader.plain(node, (), 0)
    except _TooMuch as error:
        mistakes.append(Mistake(file, 0, "", str(error)))
        return None
    return Document(file, value, mistakes, reader.lines)


def check_yaml(file: str, data: bytes, mistakes: list[Mistake]) -> yaml.Node | None:
    """The root node when the file is YAML. Tags are not checked: tasks may have some that only Ansible knows."""
    return _compose(file, data, mistakes)


def _compose(file: str, data: bytes, mistakes: list[Mistake]) -> yaml.Node | None:
    def wrong(message: str, remedy: str = "", line: int = 0) -> None:
        mistakes.append(Mistake(file, line, "", message, remedy))

    if len(data) > LARGEST_FILE:
        wrong(f"has {len(data)} bytes", f"at most {LARGEST_FILE}")
        return None
    try:
        text = data.decode()
        # The composer recurses in C; events do not, so the depth is checked on events first.
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                wrong(f"is nested more than {DEEPEST} levels deep")
                return None
        node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    except UnicodeDecodeError:
        wrong("is not UTF-8 text")
        return None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        wrong(f"is not YAML: {error.problem or error.context}", line=line)
        return None
    except yaml.YAMLError:
        wrong("is not YAML: it has characters that text does not have")
        return None
    if node is None:
        wrong("is empty")
    return node


class _Reader:
    """Turns nodes into plain values."""

    def __init__(self, file: str, mistakes: list[Mistake]) -> None:
        self.lines: dict[Path, int] = {}
        self._file = file
        self._mistakes = mistakes
        self._count = 0
        self._size = 0
        self._scalars = yaml.constructor.SafeConstructor()

    def plain(self, node: yaml.Node, path: Path, depth: int) -> Any:
        self._count += 1
        if self._count > MOST_VALUES:
            raise _TooMuch(f"has more than {MOST_VALUES} values")
        if depth > DEEPEST:
            raise _TooMuch("refers to itself, or is nested too deeply")
        self.lines.setdefault(path, node.start_mark.line + 1)
        match node:
            case yaml.MappingNode() if node.tag == f"{_TAG}map":
                return self._mapping(node, path, depth)
            case yaml.SequenceNode() if node.tag == f"{_TAG}seq":
                return [
                    self.plain(item, (*path, index), depth + 1)
                    for index, item in enumerate(node.value)
                ]
            case yaml.ScalarNode() if node.tag in _SCALARS:
                return self._scalar(node, path)
        self._wrong(node, path, f"the tag {_short(node.tag)} is not obeyed here", "leave it out")
        return None

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, Any]:
        own_values: dict[str, Any] = {}
        merged_values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged_values = {**self._merged(value_node, path, depth), **merged_values}
                continue
            if key_node.tag not in _TEXTS:
                self._wrong(
                    key_node,
                    path,
                    "has a key that is read as something other than text",
                    "quote it",
                )
                continue
            key = key_node.value
            self._measure(key)
            if not _can_be_kept(key):
                self._wrong(key_node, path, "has a key with a character that cannot be kept")
                continue
            if key in own_values:
                self._wrong(key_node, (*path, key), "is there twice", "keep one of them")
                continue
            own_values[key] = self.plain(value_node, (*path, key), depth + 1)
        return {**merged_values, **own_values}

    def _merged(self, node: yaml.Node, path: Path, depth: int) -> dict[str, Any]:
        """The values that `<<` merges in; of several mappings the first wins."""
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged_values: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                self._wrong(part, path, "<< needs a mapping")
                continue
            self._count += 1
            merged_values = {**self._mapping(part, path, depth + 1), **merged_values}
        return merged_values

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        self._measure(node.value)
        if node.tag in _TEXTS:  # dates stay as they were written
            if not _can_be_kept(node.value):
                self._wrong(node, path, "has a character that cannot be kept", "leave it out")
                return None
            return node.value
        try:
            value = self._scalars.construct_object(node)
        except ValueError:
            self._wrong(node, path, "cannot be read as a number", "quote it")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._wrong(node, path, "is not a number that can be sent", "give a finite one")
            return None
        return value

    def _measure(self, text: str) -> None:
        self._size += len(text)
        if self._size > MOST_TEXT:
            raise _TooMuch(f"has more than {MOST_TEXT} characters, aliases written out")

    def _wrong(self, node: yaml.Node, path: Path, message: str, remedy: str = "") -> None:
        line = node.start_mark.line + 1
        self._mistakes.append(Mistake(self._file, line, shown_path(path), message, remedy))


def _can_be_kept(text: str) -> bool:
    """Whether PostgreSQL can store the text: it stores neither NUL nor a lone surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _short(tag: str) -> str:
    return repr(tag.replace(_TAG, "!!")[:80])

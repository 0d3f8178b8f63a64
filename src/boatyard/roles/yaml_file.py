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
MAX_DEPTH = 32
MAX_VALUES = 20_000  # aliases count each time they are used
MAX_TEXT_LENGTH = 2 * LARGEST_FILE  # characters, likewise

# The C loader where it is available; both make the same nodes.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG_PREFIX = "tag:yaml.org,2002:"
_TEXT_TAGS = {f"{_TAG_PREFIX}{name}" for name in ("str", "timestamp", "value")}
_SCALAR_TAGS = _TEXT_TAGS | {f"{_TAG_PREFIX}{name}" for name in ("int", "float", "bool", "null")}
_MERGE_TAG = f"{_TAG_PREFIX}merge"

YamlPath = tuple[str | int, ...]


class _LimitExceeded(Exception):
    """The file has more values, text or nesting than any file written by a person."""


@dataclass(frozen=True)
class YamlDocument:
    """The values of one file, their lines, and the list to which mistakes are added."""

    file: str
    value: Any
    mistakes: list[Mistake]
    lines: Mapping[YamlPath, int] = field(default_factory=dict)

    def add_mistake(self, path: YamlPath, message: str, remedy: str = "") -> None:
        self.mistakes.append(
            Mistake(self.file, self._line(path), format_path(path), message, remedy)
        )

    def _line(self, path: YamlPath) -> int:
        """The line of the value at `path`, or of the nearest value around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)


def format_path(path: YamlPath) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def read_yaml(file: str, data: bytes, mistakes: list[Mistake]) -> YamlDocument | None:
    """The only document of the file. None when it cannot be read at all; `mistakes` then says why."""
    node = _compose(file, data, mistakes)
    if node is None:
        return None
    reader = _NodeReader(file, mistakes)
    try:
        value = reader.to_plain_value(node, (), 0)
    except _LimitExceeded as error:
        mistakes.append(Mistake(file, 0, "", str(error)))
        return None
    return YamlDocument(file, value, mistakes, reader.lines)


def parse_yaml(file: str, data: bytes, mistakes: list[Mistake]) -> yaml.Node | None:
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
            if depth > MAX_DEPTH:
                wrong(f"is nested more than {MAX_DEPTH} levels deep")
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


class _NodeReader:
    """Turns nodes into plain values."""

    def __init__(self, file: str, mistakes: list[Mistake]) -> None:
        self.lines: dict[YamlPath, int] = {}
        self._file = file
        self._mistakes = mistakes
        self._count = 0
        self._size = 0
        self._scalars = yaml.constructor.SafeConstructor()

    def to_plain_value(self, node: yaml.Node, path: YamlPath, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_VALUES:
            raise _LimitExceeded(f"has more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise _LimitExceeded("refers to itself, or is nested too deeply")
        self.lines.setdefault(path, node.start_mark.line + 1)
        match node:
            case yaml.MappingNode() if node.tag == f"{_TAG_PREFIX}map":
                return self._mapping(node, path, depth)
            case yaml.SequenceNode() if node.tag == f"{_TAG_PREFIX}seq":
                return [
                    self.to_plain_value(item, (*path, index), depth + 1)
                    for index, item in enumerate(node.value)
                ]
            case yaml.ScalarNode() if node.tag in _SCALAR_TAGS:
                return self._scalar(node, path)
        self._add_mistake(
            node, path, f"the tag {_format_tag(node.tag)} is not obeyed here", "leave it out"
        )
        return None

    def _mapping(self, node: yaml.MappingNode, path: YamlPath, depth: int) -> dict[str, Any]:
        own_values: dict[str, Any] = {}
        merged_values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE_TAG:
                merged_values = {**self._merge_mappings(value_node, path, depth), **merged_values}
                continue
            if key_node.tag not in _TEXT_TAGS:
                self._add_mistake(
                    key_node,
                    path,
                    "has a key that is read as something other than text",
                    "quote it",
                )
                continue
            key = key_node.value
            self._count_characters(key)
            if not _can_be_stored(key):
                self._add_mistake(key_node, path, "has a key with a character that cannot be kept")
                continue
            if key in own_values:
                self._add_mistake(key_node, (*path, key), "is there twice", "keep one of them")
                continue
            own_values[key] = self.to_plain_value(value_node, (*path, key), depth + 1)
        return {**merged_values, **own_values}

    def _merge_mappings(self, node: yaml.Node, path: YamlPath, depth: int) -> dict[str, Any]:
        """The values that `<<` merges in; of several mappings the first wins."""
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged_values: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                self._add_mistake(part, path, "<< needs a mapping")
                continue
            self._count += 1
            merged_values = {**self._mapping(part, path, depth + 1), **merged_values}
        return merged_values

    def _scalar(self, node: yaml.ScalarNode, path: YamlPath) -> Any:
        self._count_characters(node.value)
        if node.tag in _TEXT_TAGS:  # dates stay as they were written
            if not _can_be_stored(node.value):
                self._add_mistake(node, path, "has a character that cannot be kept", "leave it out")
                return None
            return node.value
        try:
            value = self._scalars.construct_object(node)
        except ValueError:
            self._add_mistake(node, path, "cannot be read as a number", "quote it")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._add_mistake(node, path, "is not a number that can be sent", "give a finite one")
            return None
        return value

    def _count_characters(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_TEXT_LENGTH:
            raise _LimitExceeded(f"has more than {MAX_TEXT_LENGTH} characters, aliases written out")

    def _add_mistake(self, node: yaml.Node, path: YamlPath, message: str, remedy: str = "") -> None:
        line = node.start_mark.line + 1
        self._mistakes.append(Mistake(self._file, line, format_path(path), message, remedy))


def _can_be_stored(text: str) -> bool:
    """Whether PostgreSQL can store the text: it stores neither NUL nor a lone surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _format_tag(tag: str) -> str:
    return repr(tag.replace(_TAG_PREFIX, "!!")[:80])

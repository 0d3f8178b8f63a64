"""Field masks, and the merge of an update into the stored document. Called by the generic update for every kind.

An update replaces the fields that its mask names and that its caller can see, and keeps all others:
fields that the caller's package does not show, fields that only the service writes, and secrets
written back as `***`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from boatyard.model.errors import Refused, Violation
from boatyard.resources.metadata import quote_text

MOST_PATHS = 200
LONGEST_PATH = 512

# Maps the name of a field to the tree of what is chosen below it; an empty tree chooses all of it.
MaskTree: TypeAlias = dict[str, "MaskTree"]

S = TypeVar("S", bound=msgspec.Struct)

_SEGMENT = re.compile(r"`([^`]+)`|([^.`\[\]]+)")


def parse_paths(paths: Sequence[str], descriptor: Descriptor) -> MaskTree:
    """Parses the paths to a tree. Refused, naming every path that does not exist."""
    tree: MaskTree = {}
    violations = []
    if len(paths) > MOST_PATHS:
        raise Refused("", Violation("update_mask", f"has more than {MOST_PATHS} paths"))
    for path in paths:
        try:
            _add_path(tree, _split_path(path, descriptor))
        except _BadPath as error:
            violations.append(
                Violation("update_mask", f"{quote_text(path)}: {error}", error.remedy)
            )
    if violations:
        raise Refused("", *violations)
    return tree


def merge(old: S, new: S, tree: MaskTree, descriptor: Descriptor) -> S:
    """`old` with the fields that the tree chooses taken from `new`; fields that the descriptor lacks stay."""
    if not tree:
        return _overlay(old, new, descriptor)
    changed: dict[str, object] = {}
    for name, subtree in tree.items():
        field = descriptor.fields_by_name[name]
        before, after = getattr(old, name), getattr(new, name)
        if not subtree:
            changed[name] = _merge_value(before, after, field)
        elif _is_map(field):
            changed[name] = _merge_map(before, after, subtree, field)
        else:
            before = type(after)() if before is None and after is not None else before
            if before is None:
                continue  # absent in both: there is nothing to clear
            after = type(before)() if after is None else after
            changed[name] = merge(before, after, subtree, _message_type(field))
    return msgspec.structs.replace(old, **changed)


def contains_path(tree: MaskTree, path: str) -> bool:
    """Whether the mask chooses exactly this path or something below it."""
    for name in path.split("."):
        if not tree or name not in tree:
            return False
        tree = tree[name]
    return True


def remove_path(tree: MaskTree, path: str) -> MaskTree:
    """The mask without this path; branches that become empty are removed."""
    head, _, rest = path.partition(".")
    if head not in tree:
        return tree
    branches = {name: subtree for name, subtree in tree.items() if name != head}
    if rest and tree[head]:
        subtree = remove_path(tree[head], rest)
        if subtree:
            branches[head] = subtree
    elif rest:
        branches[head] = {}
    return branches


def paths_in_body(body: Mapping[str, object], descriptor: Descriptor) -> list[str]:
    """The mask that the body of a REST PATCH implies: its leaves; lists, maps and `{}` are leaves."""
    paths: list[str] = []
    for key, value in body.items():
        field = descriptor.fields_by_name.get(key) or descriptor.fields_by_camelcase_name.get(key)
        if field is None:
            paths.append(key)
            continue
        inside = field.message_type if not field.is_repeated else None
        if inside is None or not isinstance(value, dict) or not value or _is_single_value(inside):
            paths.append(field.name)
            continue
        paths += [f"{field.name}.{path}" for path in paths_in_body(value, inside)]
    return paths


class _BadPath(ValueError):
    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def _split_path(path: str, descriptor: Descriptor) -> list[str]:
    """The names along a path. The keys of a map of plain values may contain dots."""
    if not path or len(path) > LONGEST_PATH:
        raise _BadPath(f"a path has 1 to {LONGEST_PATH} characters")
    segments: list[str] = []
    inside: Descriptor | None = descriptor
    rest = path
    while rest:
        name, rest = _next_segment(rest)
        if inside is None:
            raise _BadPath(f"{segments[-1]!r} has nothing below it")
        field = inside.fields_by_name.get(name)
        if field is None:
            raise _BadPath(f"{inside.name} has no field {quote_text(name)}")
        segments.append(name)
        inside = field.message_type
        if _is_map(field):
            inside = _map_value_type(field)
            if rest and inside is None:
                segments.append(_strip_backquotes(rest))
                rest = ""
            elif rest:
                key, rest = _next_segment(rest)
                segments.append(key)
        elif field.is_repeated and rest:
            raise _BadPath(f"{name!r} is a list", f"name {'.'.join(segments)} to replace all of it")
        if inside is not None and _is_single_value(inside):
            inside = None
    return segments


def _next_segment(rest: str) -> tuple[str, str]:
    match = _SEGMENT.match(rest)
    if match is None:
        raise _BadPath("is not a path", "names joined by dots; a key with dots goes in backquotes")
    name = match.group(1) or match.group(2)
    rest = rest[match.end() :]
    if rest and (rest[0] != "." or len(rest) == 1):
        if rest[0] == "[":
            raise _BadPath(
                "a list cannot be changed by index", "name the list to replace all of it"
            )
        raise _BadPath("is not a path", "names joined by dots; a key with dots goes in backquotes")
    return name, rest[1:]


def _strip_backquotes(rest: str) -> str:
    return rest[1:-1] if len(rest) > 2 and rest[0] == rest[-1] == "`" else rest


def _add_path(tree: MaskTree, path: Iterable[str]) -> None:
    """A shorter path covers the longer ones below it, whichever came first."""
    segments = list(path)
    for index, name in enumerate(segments):
        last = index == len(segments) - 1
        if name in tree and (last or not tree[name]):
            tree[name] = {}
            return
        tree = tree.setdefault(name, {})


def _merge_map(
    old: Mapping[str, S], new: Mapping[str, S], tree: MaskTree, field: FieldDescriptor
) -> Mapping[str, object]:
    inside = _map_value_type(field)
    entries: dict[str, object] = dict(old)
    for key, subtree in tree.items():
        if subtree:
            if key not in old and key not in new:
                continue  # nothing to change, nothing to clear
            assert inside is not None, "only messages have something below them"
            entry_type = type(new[key] if key in new else old[key])
            entries[key] = merge(
                old.get(key, entry_type()), new.get(key, entry_type()), subtree, inside
            )
        elif key in new:
            entries[key] = _merge_entry(old.get(key), new[key], inside)
        else:
            entries.pop(key, None)
    return entries


def _overlay(old: S, new: S, descriptor: Descriptor) -> S:
    """`old` with every field that the descriptor shows taken from `new`."""
    changed = {
        field.name: _merge_value(getattr(old, field.name), getattr(new, field.name), field)
        for field in descriptor.fields
        if hasattr(old, field.name)  # payloads of kinds that are not served have no field
    }
    return msgspec.structs.replace(old, **changed)


def _merge_value(old: object, new: object, field: FieldDescriptor) -> object:
    if new is None or field.message_type is None:
        return new
    if _is_map(field):
        inside = _map_value_type(field)
        assert isinstance(old, Mapping)
        assert isinstance(new, Mapping)
        return {key: _merge_entry(old.get(key), entry, inside) for key, entry in new.items()}
    if field.is_repeated:
        return new
    return _merge_entry(old, new, field.message_type)


def _merge_entry(old: object, new: object, inside: Descriptor | None) -> object:
    if inside is None or not isinstance(old, msgspec.Struct) or not isinstance(new, type(old)):
        return new
    merged = _overlay(old, new, inside)
    return new if merged == new else merged


def _is_map(field: FieldDescriptor) -> bool:
    inside = field.message_type
    return inside is not None and inside.GetOptions().map_entry


def _message_type(field: FieldDescriptor) -> Descriptor:
    inside = field.message_type
    assert inside is not None, "only messages have something below them"
    return inside


def _map_value_type(field: FieldDescriptor) -> Descriptor | None:
    """The message that a map's values are, if they are messages."""
    return _message_type(field).fields_by_name["value"].message_type


def _is_single_value(descriptor: Descriptor) -> bool:
    """Messages that are one value in a document: times, Any, JSON."""
    return descriptor.full_name.startswith("google.protobuf.")

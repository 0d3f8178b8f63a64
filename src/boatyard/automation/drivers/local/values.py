"""Writes values for a role as YAML that is tagged !unsafe, so that Ansible evaluates none of it. Called by `planning`.

The tag is on the whole mapping and applies to every key and value in it. On a single text it would let Ansible read
"5" as a number; inside a tagged mapping a quoted text stays a text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from boatyard.model.errors import Refused, Violation

UNSAFE_TAG = "!unsafe "
MAX_DEPTH = 64

_NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED_CHARACTERS = re.compile(r"[^\x20-\x7e]|[\"\\]")
# Variables that Ansible, or we as OSAC does, set for a role: a parameter of that name would be overwritten.
RESERVED = frozenset(
    {
        *("environment", "group_names", "groups", "hostvars", "inventory_dir", "inventory_file"),
        *("inventory_hostname", "inventory_hostname_short", "item", "omit", "play_hosts"),
        *("playbook_dir", "role_name", "role_names", "role_path", "vars"),
        *("template_parameters", "cluster_order"),
    }
)
# Variables that control the run: the connection, the interpreter, the user.
RESERVED_PREFIXES = ("ansible_", "boatyard_")


def check_names(field: str, names: Iterable[str]) -> list[Violation]:
    """The names that cannot be names of a role's variables, each with the reason."""
    violations = []
    for name in names:
        if not _NAME_PATTERN.fullmatch(name):
            problem = "is no name of a variable"
        elif name in RESERVED or name.startswith(RESERVED_PREFIXES):
            problem = "is a name that Ansible or Boatyard itself uses"
        else:
            continue
        violations.append(Violation(f"{field}.{name}", problem, "give the parameter another name"))
    return violations


def render_values(values: Mapping[str, object]) -> str:
    """The variables for Ansible, in one line. Refused when a value is not plain data."""
    return f"{UNSAFE_TAG}{_render_value(values, 'values')}"


def _render_value(value: object, path: str, depth: int = 0) -> str:
    if depth > MAX_DEPTH:
        raise Refused("", Violation(path, f"is nested more than {MAX_DEPTH} deep", "nest it less"))
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if not math.isfinite(value):
                raise Refused("", Violation(path, "is no number", "give a finite number"))
            return f'!!float "{value!r}"'
        case str():
            return _quote_text(value)
        case Mapping():
            # "?": without it YAML limits a key to 1024 characters.
            pairs = (
                f"? {_quote_text(str(key))} : {_render_value(entry, f'{path}.{key}', depth + 1)}"
                for key, entry in value.items()
            )
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple():
            items = (
                _render_value(entry, f"{path}[{index}]", depth + 1)
                for index, entry in enumerate(value)
            )
            return "[" + ", ".join(items) + "]"
    raise Refused(
        "", Violation(path, f"is a {type(value).__name__}", "give text, numbers, lists or maps")
    )


def _quote_text(text: str) -> str:
    return '"' + _ESCAPED_CHARACTERS.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def iter_texts(value: object) -> Iterable[str]:
    """Every text and number in the value, as text: all that must be hidden of a secret."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case Mapping():
            for entry in value.values():
                yield from iter_texts(entry)
        case list() | tuple():
            for entry in value:
                yield from iter_texts(entry)

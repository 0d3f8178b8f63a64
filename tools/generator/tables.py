"""Writes the tables: projection.py (what a field may do) and rest.py (paths of the REST door)."""

from collections.abc import Callable, Iterator

from google.api import annotations_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from generator import source as src
from generator.shapes import Shapes
from generator.source import OURS, PRIVATE, PUBLIC, Source

PROJECTION = '''"""What tenants see, what a field may do. Made by tools/generate.py; not edited.

A path is dotted; `*` stands for every key of a map or every element of a list. Kinds are named
by their message: Cluster, Hub, Order.
"""

# Rules are quoted in one piece.
# ruff: noqa: E501

from collections.abc import Mapping
from typing import Any

'''

REST = '''"""Every REST binding of the wire. Made by tools/generate.py; not edited."""

from typing import NamedTuple


class Route(NamedTuple):
    """One line of the table; `body` and `response_body` name a field, "*" is the whole message."""

    method: str
    path: str
    service: str
    rpc: str
    body: str
    response_body: str
    streaming: bool


'''


def write_projection(shapes: Shapes, our_kinds: tuple[str, ...]) -> str:
    source = shapes.source
    kinds = {name: source.messages[f"{PRIVATE}.{name}"] for name in shapes.kinds}
    kinds |= {name: source.messages[f"{OURS}.{name}"] for name in our_kinds}
    public, hidden = {}, {}
    for message in shapes.messages:
        twin = source.messages.get(f"{PUBLIC}.{message.name}")
        if message.file.package != PRIVATE:
            continue
        names = [f.name for f in message.fields]
        shown = {f.name for f in twin.fields} if twin else set()
        public[message.name] = tuple(n for n in names if n in shown)
        hidden[message.name] = tuple(n for n in names if n not in shown)
    tables = [
        ("PUBLIC_FIELDS", "tuple[str, ...]", "Message to the fields tenants see.", public),
        ("PRIVATE_FIELDS", "tuple[str, ...]", "Message to the fields only operators see.", hidden),
        (
            "SENSITIVE",
            "tuple[str, ...]",
            "Kind to paths that are never shown or logged.",
            {k: _paths(shapes, m, src.is_sensitive) for k, m in kinds.items()},
        ),
        (
            "REFERENCES",
            "Mapping[str, str]",
            "Kind to paths of references and the kind each refers to.",
            {k: _references(shapes, m) for k, m in kinds.items() if k != "Event"},
        ),
    ]
    # Nobody asks for an event: what holds for its payload is said where the payload is a kind.
    asked = {k: m for k, m in kinds.items() if k != "Event"}
    for word, note in (
        ("IMMUTABLE", "paths that stay as they were created"),
        ("OUTPUT_ONLY", "paths that only the service writes"),
        ("REQUIRED", "paths that must be given"),
    ):
        chosen = {k: _paths(shapes, m, _behaves(word)) for k, m in asked.items()}
        tables.append((word, "tuple[str, ...]", f"Kind to {note}.", chosen))
    rules = {k: _rules(shapes, m) for k, m in asked.items()}
    tables.append(
        (
            "RULES",
            "Mapping[str, Mapping[str, Any]]",
            "Kind to paths and their validation rules, in protovalidate's words; "
            'the path "" is the object itself.',
            rules,
        )
    )
    return PROJECTION + "\n\n".join(
        f"# {note}\n{name}: Mapping[str, {kind}] = {rows!r}" for name, kind, note, rows in tables
    )


def _behaves(word: str) -> Callable[[FieldDescriptor], bool]:
    return lambda f: src.has_behavior(f, word)


def _paths(
    shapes: Shapes, message: Descriptor, wanted: Callable[[FieldDescriptor], bool]
) -> tuple[str, ...]:
    return tuple(path for path, f in walk(shapes, message) if wanted(f))


def _references(shapes: Shapes, message: Descriptor) -> dict[str, str]:
    found = {}
    for path, f in walk(shapes, message):
        element = src.map_value(f) if src.is_map(f) else f
        if element.message_type is None or not element.message_type.name.endswith("Reference"):
            continue
        target = element.message_type.name.removesuffix("Reference").removesuffix("Local")
        if element.message_type.file.package == PRIVATE:
            found[f"{path}.*" if f.is_repeated else path] = target
    return found


def _rules(shapes: Shapes, message: Descriptor) -> dict[str, object]:
    texts = shapes.source.rules
    found: dict[str, object] = {}
    if message.full_name in texts:
        found[""] = src.parse_rule(texts[message.full_name])
    for path, f in walk(shapes, message):
        name = f"{f.containing_type.full_name}.{f.name}"
        # Several rules are written on the public side only.
        text = texts.get(name) or texts.get(name.replace(PRIVATE, PUBLIC, 1))
        if text:
            found[path] = src.parse_rule(text)
    ignored = [path for path, rule in found.items() if rule == {"ignore": "IGNORE_ALWAYS"}]
    return {
        path: rule
        for path, rule in found.items()
        if path not in ignored and not any(path.startswith(f"{above}.") for above in ignored)
    }


def walk(
    shapes: Shapes, message: Descriptor, prefix: str = "", above: tuple[str, ...] = ()
) -> Iterator[tuple[str, FieldDescriptor]]:
    """Every field below `message` with its path; a recursion is entered once."""
    for f in shapes.fields(message):
        path = f"{prefix}{f.name}"
        yield path, f
        element = src.map_value(f) if src.is_map(f) else f
        inner = element.message_type
        if inner is None or inner.full_name.startswith("google.") or inner.full_name in above:
            continue
        deeper = f"{path}.*." if f.is_repeated else f"{path}."
        yield from walk(shapes, inner, deeper, (*above, message.full_name))


def bindings(source: Source) -> Iterator[tuple[str, str, str, str, str, str, bool]]:
    """Method, path, service, call, body, response body, whether the answer is a stream."""
    for name in sorted(source.services):
        for method in source.services[name].methods:
            http = method.GetOptions().Extensions[annotations_pb2.http]
            verb = http.WhichOneof("pattern")
            if verb is None:
                continue
            yield (
                verb.upper(),
                getattr(http, verb),
                name,
                method.name,
                http.body,
                http.response_body,
                bool(method.server_streaming),
            )


def write_rest(source: Source) -> str:
    rows = "".join(f"    Route{row!r},\n" for row in bindings(source))
    return f"{REST}ROUTES: tuple[Route, ...] = (\n{rows})\n"

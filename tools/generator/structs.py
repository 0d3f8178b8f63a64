"""Writes the frozen structs that code handles: osac.py and boatyard.py."""

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from generator import shapes as sh
from generator import source as src
from generator.shapes import Shapes

HEAD = '''"""{sentence} Made by tools/generate.py from proto/; not edited."""

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any

import msgspec
{more}
'''

# Every kind and every reference inherits from one of them, so that code for all kinds can be typed.
RESOURCE = '''class Resource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What every kind has."""

    id: str = ""
    metadata: Metadata = NO_METADATA'''
REFERENCE = '''class Reference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What every reference to another document has."""

    id: str = ""
    name: str = ""'''


def write(shapes: Shapes, package: str) -> str:
    """A class per message, its one empty instance after it, and an IntEnum per enum."""
    module = sh.MODULES[package]
    messages = [m for m in shapes.messages if m.file.package == package]
    enums = [e for e in shapes.enums if e.file.package == package]
    ours = package == src.OURS
    sentence = "Orders and what is asked about them." if ours else "What is kept: every kind."
    more = "\nfrom boatyard.model.generated import osac\n" if ours else ""
    parts = [HEAD.format(sentence=sentence, more=more)]
    parts += [_enum(shapes, e) for e in enums]
    for m in messages:
        parts.append(_struct(shapes, m, module))
        if m.full_name == sh.METADATA:
            parts += [RESOURCE, REFERENCE]
    return "\n\n".join(parts)


def _enum(shapes: Shapes, enum: EnumDescriptor) -> str:
    lines = [f"class {enum.name}(IntEnum):"]
    names = {v.number: f"{enum.full_name}.{v.name}" for v in enum.values}
    for word, number in sh.enum_words(enum).items():
        comment = shapes.source.comments.get(names[number])
        lines.append(f"    {word} = {number}" + (f"  # {comment}" if comment else ""))
    return "\n".join(lines)


def _struct(shapes: Shapes, message: Descriptor, module: str) -> str:
    fields = shapes.fields(message)
    renamed = {sh.attribute(f): f.name for f in fields if sh.attribute(f) != f.name}
    # Frozen values are trees: the collector need not look for cycles among them.
    options = "frozen=True, kw_only=True, omit_defaults=True, gc=False"
    options += f", rename={renamed!r}" if renamed else ""
    shared_base = sh.shared_base(message)
    base = "msgspec.Struct" if shared_base is None else sh.base_name(shared_base, module)
    lines = [f"class {message.name}({base}, {options}):"]
    if comment := shapes.source.comments.get(message.full_name):
        lines.append(f'    """{comment}"""\n')
    if shared_base is not None:
        fields, inherited = fields[2:], fields[:2]
        for f in inherited:
            if comment := shapes.source.comments.get(f"{message.full_name}.{f.name}"):
                lines.append(f"    # {f.name}: {comment}")
    for f in fields:
        if comment := shapes.source.comments.get(f"{message.full_name}.{f.name}"):
            lines.append(f"    # {comment}")
        lines.append(f"    {sh.attribute(f)}: {_annotation(shapes, message, f, module)}")
    if not fields:
        lines.append("    pass")
    lines.append(f"\n\nNO_{sh.snake(message.name).upper()} = {message.name}()")
    return "\n".join(lines)


def _annotation(shapes: Shapes, message: Descriptor, f: FieldDescriptor, module: str) -> str:
    if src.is_map(f):
        key = sh.element_type(src.map_key(f), module)
        return f"Mapping[{key}, {sh.element_type(src.map_value(f), module)}] = {{}}"
    kind = sh.element_type(f, module)
    if src.is_repeated(f):
        return f"tuple[{kind}, ...] = ()"
    if sh.may_be_none(shapes, message, f):
        quoted = f'"{kind} | None"' if shapes.is_recursive(message, f) else f"{kind} | None"
        return "Any = None" if kind == "Any" else f"{quoted} = None"
    if f.enum_type is not None:
        return f"{kind} = {kind}({f.enum_type.values[0].number})"
    if f.message_type is None:
        return f"{kind} = {sh.ZEROES[kind]}"
    if f.message_type.full_name == sh.FIELD_MASK:
        return f"{kind} = ()"
    return f"{kind} = {sh.empty(f.message_type, module)}"

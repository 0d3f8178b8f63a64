"""Values of the generated structs, whatever they may hold. For properties of conversions."""

from __future__ import annotations

import types
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from boatyard.model import wire
from boatyard.model.generated import osac

PREFIX = "type.googleapis.com/google.protobuf."

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
whole = st.integers(-(2**31), 2**31 - 1)
packed = st.one_of(
    text.map(lambda v: {"@type": f"{PREFIX}StringValue", "value": v}),
    st.booleans().map(lambda v: {"@type": f"{PREFIX}BoolValue", "value": v}),
    whole.map(lambda v: {"@type": f"{PREFIX}Int32Value", "value": v}),
    whole.map(lambda v: {"@type": f"{PREFIX}Int64Value", "value": str(v)}),
    st.just({"@type": f"{PREFIX}Struct", "value": {"a": ["b", True, None]}}),
)
SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {
    str: text,
    int: whole,
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bytes: st.binary(max_size=8),
    datetime: st.datetimes(timezones=st.just(UTC)),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation as the generator writes them."""
    if kind in SCALARS:
        return SCALARS[kind]
    if kind == Mapping[str, Any]:
        return packed
    if get_origin(kind) in (Union, types.UnionType):
        return st.one_of(st.none(), values_of(get_args(kind)[0]))
    if get_origin(kind) is tuple:
        return st.lists(values_of(get_args(kind)[0]), max_size=2).map(tuple)
    if get_origin(kind) is not None:
        key, value = get_args(kind)
        return st.dictionaries(values_of(key), values_of(value), max_size=2)
    if issubclass(kind, IntEnum):
        return st.sampled_from(list(kind))
    return structs(kind)


@cache
def structs(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    payload = [name for name in hints if kind is osac.Event and _is_payload(name)]
    plain = {name: values_of(hint) for name, hint in hints.items() if name not in payload}
    made = st.fixed_dictionaries({}, optional=plain)
    if not payload:
        return made.map(lambda given: kind(**given))
    # Of a oneof there is one at most.
    chosen = st.sampled_from(payload).flatmap(
        lambda name: st.tuples(st.just(name), values_of(get_args(hints[name])[0]))
    )
    return st.tuples(made, chosen).map(lambda both: kind(**both[0], **dict([both[1]])))


def _is_payload(name: str) -> bool:
    field = wire.message("osac.private.v1.Event").DESCRIPTOR.fields_by_name[name]
    return field.containing_oneof is not None

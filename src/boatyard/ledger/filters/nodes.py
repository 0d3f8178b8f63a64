"""The typed tree of a filter. Each node has SQL and a function over structs, which give the same results.

In SQL a null condition counts as false, so `not` is written `is not true`. A value that does not
exist (a missing map entry, an unset timestamp) makes == false, != true and every other test false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from boatyard.ledger.filters.conditions import Parameters
from boatyard.ledger.filters.fields import ABSENT, DEFAULTS, SQL_TYPES, FieldPath, Getter, ValueKind

Match = Callable[[Any], bool]


class Node(Protocol):
    def sql(self, parameters: Parameters) -> str: ...
    def match(self) -> Match: ...


@dataclass(frozen=True)
class And:
    parts: Sequence[Node]

    def sql(self, parameters: Parameters) -> str:
        return " and ".join(f"({part.sql(parameters)})" for part in self.parts)

    def match(self) -> Match:
        parts = [part.match() for part in self.parts]
        return lambda value: all(part(value) for part in parts)


@dataclass(frozen=True)
class Or:
    parts: Sequence[Node]

    def sql(self, parameters: Parameters) -> str:
        return " or ".join(f"({part.sql(parameters)})" for part in self.parts)

    def match(self) -> Match:
        parts = [part.match() for part in self.parts]
        return lambda value: any(part(value) for part in parts)


@dataclass(frozen=True)
class Not:
    part: Node

    def sql(self, parameters: Parameters) -> str:
        return f"({self.part.sql(parameters)}) is not true"

    def match(self) -> Match:
        part = self.part.match()
        return lambda value: not part(value)


@dataclass(frozen=True)
class ConstantCondition:
    """The constant condition `true` or `false`."""

    answer: bool

    def sql(self, parameters: Parameters) -> str:
        return "true" if self.answer else "false"

    def match(self) -> Match:
        return lambda _: self.answer


@dataclass(frozen=True)
class BoolField:
    """A bool field used as a condition."""

    path: FieldPath

    def sql(self, parameters: Parameters) -> str:
        return self.path.value(parameters)

    def match(self) -> Match:
        get = self.path.getter()
        return lambda value: get(value) is True


@dataclass(frozen=True)
class Constant:
    kind: ValueKind
    value: Any

    def sql(self, parameters: Parameters) -> str:
        return parameters.add(self.value, SQL_TYPES[self.kind])

    def getter(self) -> Getter:
        return lambda _: self.value


Operand = FieldPath | Constant
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Compare:
    """Two values of one kind. != is written as Not(==)."""

    op: str
    left: Operand
    right: Operand

    def sql(self, parameters: Parameters) -> str:
        if (
            self.op == "=="
            and isinstance(self.left, FieldPath)
            and isinstance(self.right, Constant)
        ):
            return _equals_sql(self.left, self.right, parameters)
        left, right = _value(self.left, parameters), _value(self.right, parameters)
        if self.op == "==":
            return f"{left} = {right}"
        collate = ' collate "C"' if self.left.kind is ValueKind.STRING else ""
        return f"{left} {self.op} {right}{collate}"

    def match(self) -> Match:
        left, right, test = self.left.getter(), self.right.getter(), _OPERATORS[self.op]

        def compare(value: Any) -> bool:
            a, b = left(value), right(value)
            return a is not ABSENT and b is not ABSENT and test(a, b)

        return compare


def _value(operand: Operand, parameters: Parameters) -> str:
    return operand.value(parameters) if isinstance(operand, FieldPath) else operand.sql(parameters)


def _equals_sql(path: FieldPath, constant: Constant, parameters: Parameters) -> str:
    """SQL for equality. A constant other than the default never equals an unset field, so an index can be used."""
    if constant.value == DEFAULTS.get(path.kind, ABSENT):
        return f"{path.value(parameters)} = {constant.sql(parameters)}"
    exact = f"{path.stored(parameters)} = {constant.sql(parameters)}"
    return f"{path.hint} = {constant.sql(parameters)} and {exact}" if path.hint else exact


@dataclass(frozen=True)
class OneOf:
    """`field in [constants]`."""

    path: FieldPath
    values: tuple[Any, ...]

    def sql(self, parameters: Parameters) -> str:
        plain = DEFAULTS.get(self.path.kind, ABSENT) not in self.values
        left = self.path.stored(parameters) if plain else self.path.value(parameters)
        return (
            f"{left} = any ({parameters.add(list(self.values), SQL_TYPES[self.path.kind] + '[]')})"
        )

    def match(self) -> Match:
        get, values = self.path.getter(), frozenset(self.values)
        return lambda value: get(value) in values


@dataclass(frozen=True)
class Contains:
    """`constant in field`, of a map (its keys) or a list."""

    path: FieldPath
    constant: Constant

    def sql(self, parameters: Parameters) -> str:
        field = f"({self.path.json(parameters)})"
        if self.path.kind is ValueKind.MAP:
            return f"{field} ? {self.constant.sql(parameters)}"
        return f"{field} @> to_jsonb({self.constant.sql(parameters)})"

    def match(self) -> Match:
        get, constant = self.path.getter(), self.constant.value

        def holds(value: Any) -> bool:
            container = get(value)
            return container is not ABSENT and constant in container

        return holds


@dataclass(frozen=True)
class TextTest:
    """startsWith, endsWith and contains, of a string field and a constant."""

    op: str
    path: FieldPath
    expected: str

    def sql(self, parameters: Parameters) -> str:
        value, operand = self.path.value(parameters), parameters.add(self.expected, "text")
        match self.op:
            case "startsWith":
                return f"starts_with({value}, {operand})"
            case "endsWith":
                return f"right({value}, length({operand})) = {operand}"
            case _:
                return f"strpos({value}, {operand}) > 0"

    def match(self) -> Match:
        get, operand = self.path.getter(), self.expected
        test: Callable[[str], bool]
        match self.op:
            case "startsWith":
                test = lambda text: text.startswith(operand)  # noqa: E731
            case "endsWith":
                test = lambda text: text.endswith(operand)  # noqa: E731
            case _:
                test = lambda text: operand in text  # noqa: E731

        def tested(value: Any) -> bool:
            text = get(value)
            return text is not ABSENT and test(text)

        return tested


@dataclass(frozen=True)
class IsSet:
    """Whether something is set. An empty message, list or map counts as unset."""

    path: FieldPath

    def sql(self, parameters: Parameters) -> str:
        if (
            self.path.kind in (ValueKind.MESSAGE, ValueKind.MAP, ValueKind.LIST)
            and not self._is_entry
        ):
            return f"coalesce({self.path.json(parameters)}, 'null') not in ('null', '{{}}', '[]')"
        if self.path.kind in DEFAULTS and not self.path.presence:
            default = parameters.add(DEFAULTS[self.path.kind], SQL_TYPES[self.path.kind])
            return f"{self.path.value(parameters)} <> {default}"
        if self.path.column is not None:
            return f"{self.path.column} is not null"
        return f"{self.path.json(parameters)} is not null"

    def match(self) -> Match:
        get, bare = (
            _make_presence_getter(self.path),
            self.path.presence and self.path.kind in DEFAULTS,
        )
        is_entry = self._is_entry

        def has(value: Any) -> bool:
            current = get(value)
            if current is None or current is ABSENT:
                return False
            if bare or is_entry:
                return True
            return (
                current != type(current)() if isinstance(current, msgspec.Struct) else bool(current)
            )

        return has

    @property
    def _is_entry(self) -> bool:
        return bool(self.path.keyed) and self.path.keyed[-1]


def _make_presence_getter(path: FieldPath) -> Getter:
    """Reads the value from a struct; None when it or something on the way is unset."""
    steps = tuple(zip(path.steps, path.keyed, strict=True))

    def get(value: Any) -> Any:
        for step, is_key in steps:
            if value is None:
                return None
            value = value.get(step) if is_key else getattr(value, step, None)
        return value

    return get

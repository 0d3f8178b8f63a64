"""Compiled filters and orders. Used by the ledger (SQL) and by watches (a function over structs)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Parameters:
    """Collects the parameters of a statement. The SQL text has their numbers only, never the values."""

    values: list[Any] = field(default_factory=list)

    def add(self, value: Any, type_name: str) -> str:
        self.values.append(value)
        return f"${len(self.values)}::{type_name}"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A filter with two back-ends that agree: `sql` over `documents`, `matches` over structs.

    `fields` are the dotted paths it mentions.
    """

    to_sql: Callable[[Parameters], str]
    to_match: Callable[[Any], bool]
    fields: frozenset[str] = frozenset()

    def sql(self, parameters: Parameters) -> str:
        return self.to_sql(parameters)

    def matches(self, value: Any) -> bool:
        return self.to_match(value)

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(
            to_sql=lambda parameters: f"({self.sql(parameters)}) and ({other.sql(parameters)})",
            to_match=lambda value: self.matches(value) and other.matches(value),
            fields=self.fields | other.fields,
        )


@dataclass(frozen=True, slots=True)
class OrderBy:
    """One key to sort a list by."""

    to_sql: Callable[[Parameters], str]
    descending: bool = False

    def sql(self, parameters: Parameters) -> str:
        return f"{self.to_sql(parameters)} {'desc' if self.descending else 'asc'}"

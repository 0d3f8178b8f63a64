"""The two answers of a step or driver that did not fail: Done and Waiting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Done:
    """The effect is confirmed. `facts` are values the caller may store, such as an address."""

    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting:
    """Not yet. `why` is one calm sentence, stable while the cause is the same."""

    why: str
    look_again: float = 1.0  # seconds
    reason: str = "Waiting"


Outcome = Done | Waiting


@dataclass(frozen=True)
class OwnedObject:
    """One object in an outside system that carries our mark."""

    key: str  # <order id>/<item key>
    kind: str
    name: str
    facts: Mapping[str, str] = field(default_factory=dict)

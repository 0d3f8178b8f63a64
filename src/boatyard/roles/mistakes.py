"""Mistakes in a role: where, what, and what to do. Pure; collected by all code that reads roles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Mistake:
    """One mistake for the author of the role to fix. `path` is inside the file; `line` counts from 1, 0 is unknown."""

    file: str
    line: int
    path: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = ": ".join(part for part in (place, self.path, self.message) if part)
        return f"{text}; {self.remedy}" if self.remedy else text


def sort_mistakes(mistakes: Iterable[Mistake]) -> Sequence[Mistake]:
    """The mistakes sorted by file and line, without duplicates."""
    return tuple(sorted(set(mistakes)))

"""What is wrong with a role: where, what, and what to do about it. Pure; collected by everything that reads roles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Mistake:
    """One thing that the role's author has to mend. `path` is the way into the file, `line` counts from 1."""

    file: str
    line: int
    path: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = ": ".join(part for part in (place, self.path, self.message) if part)
        return f"{text}; {self.remedy}" if self.remedy else text


def in_order(mistakes: Iterable[Mistake]) -> Sequence[Mistake]:
    """As a person goes through the files, each once."""
    return tuple(sorted(set(mistakes)))

"""How an installation tells of its progress; the command line draws it, tests listen to it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol


class Unit(StrEnum):
    """What a task is counted in."""

    BYTES = "bytes"
    MODULES = "modules"
    PACKAGES = "packages"


class Task(Protocol):
    """One long thing that is being done."""

    def at(self, done: int) -> None:
        """It has come so far, counted from its beginning."""


class Teller(Protocol):
    """Listens to an installation."""

    def say(self, line: str) -> None:
        """Something happened: one line."""

    def task(
        self, title: str, *, unit: Unit, total: int | None, done: int = 0
    ) -> AbstractContextManager[Task]:
        """Something long begins, and ends with the context. `total` is None when nobody knows."""

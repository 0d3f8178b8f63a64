"""The interface through which an installation reports its progress. The command line shows it, tests record it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol


class Unit(StrEnum):
    """The unit of a task's progress."""

    BYTES = "bytes"
    MODULES = "modules"
    PACKAGES = "packages"


class Task(Protocol):
    """A long task in progress."""

    def at(self, done: int) -> None:
        """Reports how much is done, counted from the beginning."""


class Teller(Protocol):
    """Receives the progress of an installation."""

    def say(self, line: str) -> None:
        """Shows one line."""

    def task(
        self, title: str, *, unit: Unit, total: int | None, done: int = 0
    ) -> AbstractContextManager[Task]:
        """Starts a task that ends with the context. `total` is None when it is not known."""

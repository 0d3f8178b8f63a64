"""The interface through which an installation reports its progress. The command line shows it, tests record it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol


class ProgressUnit(StrEnum):
    """The unit of a task's progress."""

    BYTES = "bytes"
    MODULES = "modules"
    PACKAGES = "packages"


class ProgressTask(Protocol):
    """A long task in progress."""

    def update(self, done: int) -> None:
        """Reports how much is done, counted from the beginning."""


class ProgressReporter(Protocol):
    """Receives the progress of an installation."""

    def show_line(self, line: str) -> None:
        """Shows one line."""

    def start_task(
        self, title: str, *, unit: ProgressUnit, total: int | None, done: int = 0
    ) -> AbstractContextManager[ProgressTask]:
        """Starts a task that ends with the context. `total` is None when it is not known."""

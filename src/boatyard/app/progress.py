"""Shows the progress of long local work: bars on a terminal, a line now and then everywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, TextIO

from boatyard.assets.telling import Task, Teller, Unit
from boatyard.cli.screen import is_terminal, make_console
from boatyard.cli.words import clean, spell_duration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINE_SECONDS = 15.0


def open_teller(stream: TextIO) -> AbstractContextManager[Teller]:
    """Bars when the stream is a terminal that can draw them, else lines."""
    return _bars(stream) if is_terminal(stream) else nullcontext(LineTeller(stream))


class LineTeller:
    """Prints a line when something happens, and one every 15 seconds during a long task."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock

    def say(self, line: str) -> None:
        print(clean(line), file=self._stream, flush=True)

    @contextmanager
    def task(self, title: str, *, unit: Unit, total: int | None, done: int = 0) -> Iterator[Task]:
        self.say(f"{title}: from {amount(done, unit)} on" if done else title)
        yield _Lines(self, title, unit, total, self._clock)


class _Lines:
    def __init__(
        self,
        teller: LineTeller,
        title: str,
        unit: Unit,
        total: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._teller = teller
        self._doing = title
        self._unit = unit
        self._total = total
        self._clock = clock
        self._began = self._told = clock()

    def at(self, done: int) -> None:
        now = self._clock()
        if now - self._told < LINE_SECONDS:
            return
        self._told = now
        amount_text = amount(done, self._unit, self._total)
        self._teller.say(f"{self._doing}: {amount_text}, {spell_duration(now - self._began)}")


def amount(done: int, unit: Unit, total: int | None = None) -> str:
    """2.5 MB, 2.5 of 10.0 MB, 12 modules, 200 of 1700 packages."""
    numbers = [done] if total is None else [done, total]
    if unit is Unit.BYTES:
        return " of ".join(f"{number / 1e6:.1f}" for number in numbers) + " MB"
    return f"{' of '.join(map(str, numbers))} {unit}"


@contextmanager
def _bars(stream: TextIO) -> Iterator[Teller]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[amount]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=make_console(stream), transient=True) as progress:
        yield BarTeller(progress)


class BarTeller:
    """Draws a bar for each task and removes it at the end; lines stay above the bars."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def say(self, line: str) -> None:
        self.progress.console.print(clean(line), soft_wrap=True)

    @contextmanager
    def task(self, title: str, *, unit: Unit, total: int | None, done: int = 0) -> Iterator[Task]:
        bar = self.progress.add_task(
            clean(title), total=total, completed=done, amount=amount(done, unit, total)
        )
        try:
            yield _Bar(self.progress, bar, unit, total)
        finally:
            self.progress.remove_task(bar)
            self.progress.refresh()


class _Bar:
    def __init__(self, progress: Progress, bar: TaskID, unit: Unit, total: int | None) -> None:
        self._progress = progress
        self._bar = bar
        self._unit = unit
        self._total = total

    def at(self, done: int) -> None:
        amount_text = amount(done, self._unit, self._total)
        self._progress.update(self._bar, completed=done, amount=amount_text)

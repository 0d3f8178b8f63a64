"""Shows the progress of long local work: bars on a terminal, a line now and then everywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, TextIO

from boatyard.assets.progress import ProgressReporter, ProgressTask, ProgressUnit
from boatyard.cli.screen import is_terminal, make_console
from boatyard.cli.text_format import clean, format_duration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINE_SECONDS = 15.0


def open_progress(stream: TextIO) -> AbstractContextManager[ProgressReporter]:
    """Bars when the stream is a terminal that can draw them, else lines."""
    return _open_bars(stream) if is_terminal(stream) else nullcontext(LineProgress(stream))


class LineProgress:
    """Prints a line when something happens, and one every 15 seconds during a long task."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock

    def show_line(self, line: str) -> None:
        print(clean(line), file=self._stream, flush=True)

    @contextmanager
    def start_task(
        self, title: str, *, unit: ProgressUnit, total: int | None, done: int = 0
    ) -> Iterator[ProgressTask]:
        self.show_line(f"{title}: from {format_amount(done, unit)} on" if done else title)
        yield _LineTask(self, title, unit, total, self._clock)


class _LineTask:
    def __init__(
        self,
        progress: LineProgress,
        title: str,
        unit: ProgressUnit,
        total: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._reporter = progress
        self._title = title
        self._unit = unit
        self._total = total
        self._clock = clock
        self._started_at = self._last_printed_at = clock()

    def update(self, done: int) -> None:
        now = self._clock()
        if now - self._last_printed_at < LINE_SECONDS:
            return
        self._last_printed_at = now
        amount_text = format_amount(done, self._unit, self._total)
        self._reporter.show_line(
            f"{self._title}: {amount_text}, {format_duration(now - self._started_at)}"
        )


def format_amount(done: int, unit: ProgressUnit, total: int | None = None) -> str:
    """2.5 MB, 2.5 of 10.0 MB, 12 modules, 200 of 1700 packages."""
    numbers = [done] if total is None else [done, total]
    if unit is ProgressUnit.BYTES:
        return " of ".join(f"{number / 1e6:.1f}" for number in numbers) + " MB"
    return f"{' of '.join(map(str, numbers))} {unit}"


@contextmanager
def _open_bars(stream: TextIO) -> Iterator[ProgressReporter]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[amount]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=make_console(stream), transient=True) as progress:
        yield BarProgress(progress)


class BarProgress:
    """Draws a bar for each task and removes it at the end; lines stay above the bars."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def show_line(self, line: str) -> None:
        self.progress.console.print(clean(line), soft_wrap=True)

    @contextmanager
    def start_task(
        self, title: str, *, unit: ProgressUnit, total: int | None, done: int = 0
    ) -> Iterator[ProgressTask]:
        bar = self.progress.add_task(
            clean(title), total=total, completed=done, amount=format_amount(done, unit, total)
        )
        try:
            yield _Bar(self.progress, bar, unit, total)
        finally:
            self.progress.remove_task(bar)
            self.progress.refresh()


class _Bar:
    def __init__(
        self, progress: Progress, bar: TaskID, unit: ProgressUnit, total: int | None
    ) -> None:
        self._progress = progress
        self._bar = bar
        self._unit = unit
        self._total = total

    def update(self, done: int) -> None:
        amount_text = format_amount(done, self._unit, self._total)
        self._progress.update(self._bar, completed=done, amount=amount_text)

"""Shows progress: one live tree on a terminal, one line per change everywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from boatyard.cli.tree import Line, format_tree, list_changes, to_plain_text
from boatyard.model.generated.boatyard import Explanation

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_COLOURS = {
    "name": "bold",
    "good": "green",
    "busy": "cyan",
    "late": "yellow",
    "bad": "bold red",
    "dim": "dim",
}


class Screen(Protocol):
    """Shows explanations as they come. A context manager, so that the terminal is restored."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def show(self, explanation: Explanation) -> None: ...

    def show_remark(self, words: str) -> None:
        """Shows a passing remark, such as a lost connection."""


def open_screen(
    stream: TextIO,
    *,
    doing: str,
    clock: Callable[[], datetime],
    before: Explanation | None = None,
) -> Screen:
    """The live tree when the stream is a terminal that can draw it, else lines.

    Lines are printed only for differences from `before`.
    """
    if is_terminal(stream):
        return TerminalScreen(stream, doing=doing, clock=clock)
    return PipeScreen(stream, doing=doing, before=before)


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


class PipeScreen:
    """One line per change."""

    def __init__(self, stream: TextIO, *, doing: str, before: Explanation | None = None) -> None:
        self._stream = stream
        self._progress_word = doing
        self._last = before

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()

    def show(self, explanation: Explanation) -> None:
        for line in list_changes(self._last, explanation, doing=self._progress_word):
            print(line, file=self._stream, flush=True)
        self._last = explanation

    def show_remark(self, words: str) -> None:
        print(words, file=self._stream, flush=True)


class TerminalScreen:
    """A tree that redraws itself; durations tick even when nothing changes."""

    def __init__(self, stream: TextIO, *, doing: str, clock: Callable[[], datetime]) -> None:
        from rich.live import Live

        self._progress_word = doing
        self._clock = clock
        self._last: Explanation | None = None
        self._remark = ""
        self._live = Live(
            console=make_console(stream),
            get_renderable=self._draw,
            refresh_per_second=8,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._remark = ""
        self._live.stop()

    def show(self, explanation: Explanation) -> None:
        self._last = explanation
        self._remark = ""
        self._live.refresh()

    def show_remark(self, words: str) -> None:
        self._remark = words

    def _draw(self) -> Text:
        lines: list[Line] = []
        if self._last is not None:
            lines = format_tree(self._last, now=self._clock(), doing=self._progress_word)
        text = to_rich_text(lines)
        if self._remark:
            text.append(("\n" if lines else "") + self._remark, style="yellow")
        return text


def print_lines(lines: Iterable[Line], stream: TextIO | None = None) -> None:
    """Prints lines once: in colour on a terminal, plain elsewhere."""
    out = stream or sys.stdout
    if not is_terminal(out):
        for line in lines:
            print(to_plain_text(line), file=out)
        return
    make_console(out).print(to_rich_text(lines, cut=False), soft_wrap=True)


def make_console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def to_rich_text(lines: Iterable[Line], *, cut: bool = True) -> Text:
    """Lines as rich text; names are never read as markup."""
    from rich.text import Text

    text = Text(no_wrap=cut, overflow="ellipsis" if cut else "fold")
    for index, line in enumerate(lines):
        if index:
            text.append("\n")
        for span in line:
            text.append(span.text, style=_COLOURS.get(span.style, ""))
    return text

"""The verb `logs`: the tasks of the runs of a cluster's template."""

from __future__ import annotations

import argparse
import sys
from contextlib import aclosing
from typing import TextIO

from boatyard.cli.calling import call
from boatyard.cli.screen import as_text, is_terminal, make_console
from boatyard.cli.tree import Line, Span, plain
from boatyard.cli.words import clean, count
from boatyard.client.client import Client
from boatyard.client.kinds import CLUSTER
from boatyard.model.errors import BoatyardError, NotFound
from boatyard.model.generated.boatyard import StoryLine

_STYLES = {"task": "dim", "ok": "good", "changed": "late", "failed": "bad", "skipped": "dim"}
_RESULTS = ("ok", "changed", "failed", "skipped")
_PART = 12  # letters of the longest part
_KIND = 7
_INDENT = " " * (19 + 2 + _PART + 2 + _KIND + 2)


def logs(args: argparse.Namespace) -> int:
    return call(args, _logs)


async def _logs(client: Client, args: argparse.Namespace) -> None:
    try:
        id = (await client.find_one(CLUSTER, args.name)).id
    except NotFound:
        id = args.name  # the logs of a deleted cluster are kept for some time
    page = Page(sys.stdout, at_once=args.follow)
    story = client.story(id, run=args.part, follow=args.follow, on_cut=_say_cut)
    async with aclosing(story) as lines:
        async for line in lines:
            if isinstance(line, int):
                _remark(f"{count(line, 'line')} before this {_are(line)} no longer kept")
            else:
                page.add(line)
    page.end()
    if not page.shown:
        run_words = f" called {clean(args.part)}" if args.part else " of its template"
        _remark(f"{clean(args.name)}: no run{run_words} has told anything")


class Page:
    """Prints lines as they come: in colour on a terminal, plain elsewhere.

    The start of a task is printed only when its result does not follow, because the result names the task
    too. With `at_once` somebody is watching, and starts are printed at once.
    """

    def __init__(self, stream: TextIO, *, at_once: bool) -> None:
        self._stream = stream
        self._console = make_console(stream) if is_terminal(stream) else None
        self._at_once = at_once
        self._held: StoryLine | None = None
        self.shown = 0

    def add(self, line: StoryLine) -> None:
        task_line, self._held = self._held, None
        if task_line is not None and not _is_result_of(line, task_line):
            self._print(task_line)
        if line.kind == "task" and not self._at_once:
            self._held = line
        else:
            self._print(line)

    def end(self) -> None:
        if self._held is not None:
            self._print(self._held)
            self._held = None

    def _print(self, line: StoryLine) -> None:
        self.shown += 1
        lines = story_lines(line)
        if self._console is not None:
            self._console.print(as_text(lines, cut=False), soft_wrap=True)
            return
        for text_line in lines:
            print(plain(text_line), file=self._stream, flush=self._at_once)


def story_lines(line: StoryLine) -> list[Line]:
    """One log line for people; text of several lines follows indented below it."""
    style = _STYLES.get(line.kind, "")
    first, *more = line.text.rstrip().splitlines() or [""]
    if line.task and first:
        first, more = (f": {first}", more) if not more else (":", [first, *more])
    part = line.part if line.attempt < 2 else f"{line.part} #{line.attempt}"
    at = line.at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if line.at else "-" * 19
    head: Line = (
        Span(f"{at}  ", "dim"),
        Span(f"{clean(part):<{_PART}}  "),
        Span(f"{clean(line.kind):<{_KIND}}  ", style),
        Span(clean(line.task), "bad" if line.kind == "failed" else ""),
        Span(clean(first)),
    )
    return [head, *((Span(_INDENT), Span(clean(text))) for text in more)]


def _is_result_of(line: StoryLine, task_line: StoryLine) -> bool:
    is_same_task = (line.run, line.attempt, line.task) == (
        task_line.run,
        task_line.attempt,
        task_line.task,
    )
    return is_same_task and line.kind in _RESULTS


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _remark(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _say_cut(error: BoatyardError) -> None:
    _remark(f"connection lost, trying again: {clean(str(error))}")

"""The verb `logs`: the tasks of the runs of a cluster's template."""

from __future__ import annotations

import argparse
import sys
from contextlib import aclosing
from typing import TextIO

from boatyard.cli.screen import is_terminal, make_console, to_rich_text
from boatyard.cli.server_call import call_server
from boatyard.cli.text_format import clean, format_count
from boatyard.cli.tree import Line, Span, to_plain_text
from boatyard.client.client import Client
from boatyard.client.kinds import CLUSTER
from boatyard.model.errors import BoatyardError, NotFound
from boatyard.model.generated.boatyard import LogLine

_STYLES = {"task": "dim", "ok": "good", "changed": "late", "failed": "bad", "skipped": "dim"}
_RESULTS = ("ok", "changed", "failed", "skipped")
_PART_WIDTH = 12  # letters of the longest part
_KIND_WIDTH = 7
_INDENT = " " * (19 + 2 + _PART_WIDTH + 2 + _KIND_WIDTH + 2)


def logs(args: argparse.Namespace) -> int:
    return call_server(args, _logs)


async def _logs(client: Client, args: argparse.Namespace) -> None:
    try:
        id = (await client.find_one(CLUSTER, args.name)).id
    except NotFound:
        id = args.name  # the logs of a deleted cluster are kept for some time
    page = LogPrinter(sys.stdout, at_once=args.follow)
    story = client.read_logs(id, run=args.part, follow=args.follow, on_cut=_print_lost_connection)
    async with aclosing(story) as lines:
        async for line in lines:
            if isinstance(line, int):
                _print_remark(
                    f"{format_count(line, 'line')} before this {_choose_is_or_are(line)} no longer kept"
                )
            else:
                page.add(line)
    page.flush()
    if not page.printed_count:
        run_words = f" called {clean(args.part)}" if args.part else " of its template"
        _print_remark(f"{clean(args.name)}: no run{run_words} has told anything")


class LogPrinter:
    """Prints lines as they come: in colour on a terminal, plain elsewhere.

    The start of a task is printed only when its result does not follow, because the result names the task
    too. With `at_once` somebody is watching, and starts are printed at once.
    """

    def __init__(self, stream: TextIO, *, at_once: bool) -> None:
        self._stream = stream
        self._console = make_console(stream) if is_terminal(stream) else None
        self._at_once = at_once
        self._held_task: LogLine | None = None
        self.printed_count = 0

    def add(self, line: LogLine) -> None:
        task_line, self._held_task = self._held_task, None
        if task_line is not None and not _is_result_of(line, task_line):
            self._print(task_line)
        if line.kind == "task" and not self._at_once:
            self._held_task = line
        else:
            self._print(line)

    def flush(self) -> None:
        if self._held_task is not None:
            self._print(self._held_task)
            self._held_task = None

    def _print(self, line: LogLine) -> None:
        self.printed_count += 1
        lines = format_log_line(line)
        if self._console is not None:
            self._console.print(to_rich_text(lines, cut=False), soft_wrap=True)
            return
        for text_line in lines:
            print(to_plain_text(text_line), file=self._stream, flush=self._at_once)


def format_log_line(line: LogLine) -> list[Line]:
    """One log line for people; text of several lines follows indented below it."""
    style = _STYLES.get(line.kind, "")
    first, *more = line.text.rstrip().splitlines() or [""]
    if line.task and first:
        first, more = (f": {first}", more) if not more else (":", [first, *more])
    part = line.part if line.attempt < 2 else f"{line.part} #{line.attempt}"
    at = line.at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if line.at else "-" * 19
    head: Line = (
        Span(f"{at}  ", "dim"),
        Span(f"{clean(part):<{_PART_WIDTH}}  "),
        Span(f"{clean(line.kind):<{_KIND_WIDTH}}  ", style),
        Span(clean(line.task), "bad" if line.kind == "failed" else ""),
        Span(clean(first)),
    )
    return [head, *((Span(_INDENT), Span(clean(text))) for text in more)]


def _is_result_of(line: LogLine, task_line: LogLine) -> bool:
    is_same_task = (line.run, line.attempt, line.task) == (
        task_line.run,
        task_line.attempt,
        task_line.task,
    )
    return is_same_task and line.kind in _RESULTS


def _choose_is_or_are(number: int) -> str:
    return "is" if number == 1 else "are"


def _print_remark(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _print_lost_connection(error: BoatyardError) -> None:
    _print_remark(f"connection lost, trying again: {clean(str(error))}")

"""`boatyard prove`: kills a worker before and after every write and every effect, and compares what is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from argparse import Namespace
from pathlib import Path

from boatyard.app.proving.runs import JOURNEYS, Options, prove
from boatyard.app.proving.verdict import Verdict
from boatyard.model.errors import BoatyardError

_MOST_SHOWN = 40


def run(args: Namespace) -> int:
    """0 when nothing differs, 1 when something does, 2 for a journey that there is not."""
    journeys = tuple(args.journeys.split(",")) if args.journeys else JOURNEYS
    unknown = [name for name in journeys if name not in JOURNEYS]
    if unknown:
        sys.stderr.write(f"there is no journey {unknown[0]!r}; there are {', '.join(JOURNEYS)}\n")
        return 2
    options = Options(
        journeys=journeys,
        every=max(1, args.every),
        lanes=args.lanes or min(4, 2 * (os.cpu_count() or 1)),
        keep=args.keep,
    )
    try:
        verdict = asyncio.run(_prove(options))
    except BoatyardError as error:
        sys.stderr.write(f"boatyard: the proof cannot be run: {error}\n")
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    if args.json:
        Path(args.json).write_text(json.dumps(verdict.plain(), indent=2) + "\n")
    _show(verdict)
    return 0 if verdict.proven else 1


async def _prove(options: Options) -> Verdict:
    """Ends cleanly when told to: PostgreSQL and the twins are children of ours."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await prove(options, _progress)


def _progress(verdict: Verdict, done: int, total: int) -> None:
    """One line that renews itself on a terminal, a line for each tenth elsewhere."""
    text = (
        f"{done}/{total} runs, {len(verdict.killed)} kills, {len(verdict.differences)} differences"
    )
    if sys.stdout.isatty():
        sys.stdout.write(f"\r{text}   ")
    elif done * 10 // total > (done - 1) * 10 // total:
        sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _show(verdict: Verdict) -> None:
    print(f"\n{verdict.table()}\n")
    for words in verdict.differences[:_MOST_SHOWN]:
        print(f"DIFFERS {words}")
    if len(verdict.differences) > _MOST_SHOWN:
        print(f"… and {len(verdict.differences) - _MOST_SHOWN} more")
    print(verdict.summary())

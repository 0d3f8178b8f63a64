"""`python -m boatyard.twin --state DIR --socket PATH`: the twin without the rest of Boatyard."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from boatyard.model.errors import Refused
from boatyard.twin.delays import PROFILES
from boatyard.twin.layout import read_layout
from boatyard.twin.process import serve_twin


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="boatyard.twin", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="directory it is kept in")
    parser.add_argument("--socket", type=Path, required=True, help="unix socket it answers on")
    parser.add_argument("--layout", type=Path, help="JSON file of hubs to add")
    parser.add_argument("--delays", choices=sorted(PROFILES), help="how long things take")
    parser.add_argument(
        "--with-parent", action="store_true", help="ends when its standard input is closed"
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING)
    try:
        asyncio.run(_run(options))
    except Refused as error:
        sys.stderr.write(f"{error}\n")
        return 4
    return 0


async def _run(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    if options.with_parent:
        # The parent holds the other end: however the parent dies, a read then returns end of file.
        loop.add_reader(sys.stdin.fileno(), _on_stdin, loop, stop)
    await serve_twin(
        options.state,
        options.socket,
        layout=read_layout(options.layout) if options.layout else None,
        delays=options.delays,
        stop=stop,
        on_ready=lambda: print("ready", flush=True),  # noqa: T201 - whoever started it waits for this
    )


def _on_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        stop.set()


if __name__ == "__main__":
    sys.exit(main())

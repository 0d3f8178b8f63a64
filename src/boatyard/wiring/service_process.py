"""Shared by the long-running commands: settings, logs, signals, keys, and one clear line when they cannot start."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from boatyard.ledger.ledger import Ledger, OnWrite
from boatyard.ledger.seal import Seal
from boatyard.model.errors import BoatyardError, Refused, Unavailable
from boatyard.processes.logs import JsonLines
from boatyard.wiring.settings import Settings, load_settings

logger = logging.getLogger(__name__)

SEAL_KEY = "seal.key"
ISSUER_KEY = "issuer.key"
OPERATOR_TOKEN = "operator.token"

_TRIM_SECONDS = 3600.0

ServiceBody = Callable[[Settings, asyncio.Event], Awaitable[None]]


def run_service(args: Namespace, body: ServiceBody) -> int:
    """Runs `body` until SIGTERM or Ctrl-C; returns the exit code. A second signal ends the process at once."""
    try:
        settings = load_settings(args)
        start_logging(settings.log_level)
        asyncio.run(_run_until_signalled(settings, body))
    except BoatyardError as error:
        sys.stderr.write(f"boatyard: {error}\n")
        return 4 if isinstance(error, Refused) else 1
    except BaseExceptionGroup as group:
        ours, others = group.split(BoatyardError)
        if others is not None or ours is None:
            raise
        for leaf in _list_leaves(ours):
            sys.stderr.write(f"boatyard: {leaf}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _list_leaves(group: BaseExceptionGroup[BoatyardError]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves += _list_leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return leaves


async def _run_until_signalled(settings: Settings, body: ServiceBody) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(signal_number: signal.Signals) -> None:
        if stop.is_set():
            loop.remove_signal_handler(signal_number)
            signal.raise_signal(signal_number)
        stop.set()

    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, on_signal, signal_number)
    reduce_garbage_collection()
    await body(settings, stop)


def reduce_garbage_collection() -> None:
    """Makes garbage collection rare.

    Imported modules stay for good and documents have no reference cycles, so collecting finds nothing; with the
    usual thresholds it doubles the time of a list call.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@asynccontextmanager
async def open_ledger(
    settings: Settings, url: str, *, application: str, on_write: OnWrite | None = None
) -> AsyncIterator[Ledger]:
    """Opens the ledger and runs its publisher, listener and trimming until the context is left."""
    seal = Seal.load_or_create(settings.data_dir / SEAL_KEY)
    ledger = await Ledger.open(
        url,
        seal=seal,
        application=application,
        on_write=on_write,
        pool_size=settings.pool_size,
    )
    try:
        # When one of them fails the process ends: a server that no longer publishes must not look healthy.
        async with asyncio.TaskGroup() as tasks:
            background_tasks = [
                tasks.create_task(ledger.run(), name="publisher and listener"),
                tasks.create_task(_trim_old_events(ledger, settings.event_days), name="trimming"),
            ]
            try:
                yield ledger
            finally:
                for task in background_tasks:
                    task.cancel()
    finally:
        await ledger.close()


@asynccontextmanager
async def end_with_child(child: Awaitable[object], name: str) -> AsyncIterator[None]:
    """Ends this process when `child` ends before the context is left: it must not look healthy without it."""

    async def watch() -> None:
        await child
        raise Unavailable(f"{name} ended by itself; start again, nothing is lost")

    try:
        async with asyncio.TaskGroup() as tasks:
            watch_task = tasks.create_task(watch(), name=name)
            try:
                yield
            finally:
                watch_task.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None  # bare: its class decides the exit code


async def _trim_old_events(ledger: Ledger, days: float) -> None:
    """Deletes events, and logs of runs whose order is gone, that are older than `days`. Repeats every hour.

    Several processes may do it at the same time.
    """
    while True:
        try:
            before = ledger.clock.now() - timedelta(days=days)
            trimmed = await ledger.events.trim(before)
            forgotten = await ledger.run_logs.delete_old(before)
        except Unavailable as error:
            logger.warning("events not trimmed", extra={"why": str(error)})
        else:
            if trimmed or forgotten:
                extra = {"events": trimmed, "stories": forgotten}
                logger.info("events trimmed", extra=extra)
        await asyncio.sleep(_TRIM_SECONDS)


def require_database(settings: Settings) -> str:
    if not settings.database_url:
        raise Refused(
            "which database? give --database-url postgresql://… (or use `boatyard up`, which starts one)"
        )
    return settings.database_url


def make_data_dir(settings: Settings) -> Path:
    path = settings.data_dir
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot make the data directory {path}: {error.strerror}") from error
    return path


def print_line(text: str) -> None:
    """Prints a line for the person or script that started the process."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def start_logging(level: str) -> None:
    try:
        number = logging.getLevelNamesMapping()[level.upper()]
    except KeyError as error:
        raise Refused(f"log_level {level!r} is none of debug, info, warning, error") from error
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=number, handlers=[handler], force=True)
    for library in ("uvicorn", "asyncio", "grpc"):
        logging.getLogger(library).setLevel(max(number, logging.WARNING))

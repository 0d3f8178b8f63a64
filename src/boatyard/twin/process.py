"""The twin as a process: `boatyard twin`, and `python -m boatyard.twin`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boatyard.processes.serving import SocketServer
from boatyard.twin.journal import Journal
from boatyard.twin.layout import Layout, demo_layout
from boatyard.twin.server import SMALLEST_JOURNAL_TO_REPLACE, TwinServer
from boatyard.twin.world import TwinWorld

logger = logging.getLogger(__name__)


async def serve_twin(
    state_dir: Path,
    socket_path: Path,
    *,
    layout: Layout | None = None,
    delays: str | None = None,
    replace_journal_at: int = SMALLEST_JOURNAL_TO_REPLACE,
    stop: asyncio.Event | None = None,
    on_ready: Callable[[], None] | None = None,
) -> None:
    """Serves the data centre kept in `state_dir` until `stop` is set.

    Hubs of `layout` that are not there yet are added; an empty data centre without one gets the
    demo's. `delays` sets the delay profile; without it the stored profile stays, at first the
    demo's. Refused when another twin holds the directory. A disk that cannot be written ends it
    with OSError.
    """
    socket_server = SocketServer(socket_path)
    journal = Journal(state_dir)
    world = TwinWorld()
    journal.replay(world.state.apply)
    _prepare_world(world, layout, delays)
    changes = world.take_changes()
    if changes:
        journal.append(changes)
    server = TwinServer(world, journal, _Clock().now, replace_at=replace_journal_at)
    await socket_server.listen(server.handle)  # the directory's lock is ours
    logger.info("twin is ready", extra={"socket": str(socket_path), "hubs": len(world.state.hubs)})
    if on_ready is not None:
        on_ready()
    try:
        await _wait_until_stopped(stop or asyncio.Event(), server.failed)
    finally:
        socket_server.close()
        await server.close()


def _prepare_world(world: TwinWorld, layout: Layout | None, delays: str | None) -> None:
    empty = not world.state.hubs
    if layout is not None or empty:
        world.add_missing_hubs(layout or demo_layout())
    if empty and delays is None:
        delays = "demo"
    if delays is not None and delays != world.state.delays.profile:
        world.state.change("delays", delays, {})


async def _wait_until_stopped(stop: asyncio.Event, failed: asyncio.Future[None]) -> None:
    stopped = asyncio.ensure_future(stop.wait())
    futures: set[asyncio.Future[Any]] = {stopped, failed}
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
    if failed.done():
        failed.result()


class _Clock:
    """Wall-clock time that never goes backwards. What is under way goes on after a restart."""

    def __init__(self) -> None:
        self._last = 0.0

    def now(self) -> float:
        # The twin is an edge: it is the outside world, with a clock of its own.
        self._last = max(self._last, time.time())  # noqa: TID251 - see above
        return self._last

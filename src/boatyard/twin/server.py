"""Carries out the twin's calls: one world, one journal, many clients. Started by `process`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from boatyard.processes.serving import ServedConnection
from boatyard.processes.socket_protocol import decode_call, encode_response
from boatyard.twin.journal import Journal
from boatyard.twin.world import TwinWorld

logger = logging.getLogger(__name__)

SMALLEST_JOURNAL_TO_REPLACE = 16 * 1024 * 1024


class TwinServer:
    """Answers a call only when all that the call has read or changed is on disk.

    Calls are carried out one after the other as they arrive. The changes of all calls that arrive
    during one write to disk are written together by the next.
    """

    def __init__(
        self,
        world: TwinWorld,
        journal: Journal,
        now: Callable[[], float],
        *,
        replace_at: int = SMALLEST_JOURNAL_TO_REPLACE,
    ) -> None:
        self._world = world
        self._journal = journal
        self._now = now
        self._replace_at = replace_at
        self._loop = asyncio.get_running_loop()
        self._disk_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="twin-journal")
        self._entries: list[tuple[Any, ...]] = []
        self._answers: list[tuple[ServedConnection, bytes, float]] = []
        self._writing = False
        self.failed: asyncio.Future[None] = self._loop.create_future()

    def handle(self, connection: ServedConnection, payload: bytes) -> None:
        number, verb, args = decode_call(payload)
        reply = self._world.call(verb, args, self._now())
        self._entries += self._world.take_changes()
        answer = b"" if reply.silent else encode_response(number, reply.value, reply.error)
        if not self._entries and not self._writing:
            self._send(connection, answer, reply.delay)
            return
        # A call that only reads waits too: it may have read what is not on disk yet.
        if not self._answers and not self._writing:
            self._loop.call_soon(self._start_write)
        self._answers.append((connection, answer, reply.delay))

    async def close(self) -> None:
        """Waits for the write under way. Calls that were not answered may be lost."""
        await self._loop.run_in_executor(self._disk_thread, self._journal.close)
        self._disk_thread.shutdown()

    def _start_write(self) -> None:
        entries, answers = self._entries, self._answers
        self._entries, self._answers = [], []
        self._writing = True
        write = self._loop.run_in_executor(self._disk_thread, self._journal.append, entries)
        write.add_done_callback(lambda written: self._on_written(written, answers))

    def _on_written(
        self, written: asyncio.Future[None], answers: list[tuple[ServedConnection, bytes, float]]
    ) -> None:
        try:
            written.result()
            for connection, answer, delay in answers:
                self._send(connection, answer, delay)
            if self._journal.size > max(self._replace_at, 2 * self._journal.snapshot_size):
                self._replace_journal()
        except OSError as error:
            # The world is ahead of the disk: only a restart from the disk makes them equal again.
            logger.error("journal could not be written", exc_info=error)
            if not self.failed.done():
                self.failed.set_exception(error)
            return
        self._writing = False
        if self._entries:
            self._start_write()
        elif self._answers:
            answers, self._answers = self._answers, []
            for connection, answer, delay in answers:
                self._send(connection, answer, delay)

    def _replace_journal(self) -> None:
        """Blocks all calls for tenths of a second; copying the world first would double its memory."""
        self._entries = []  # the snapshot has them
        self._journal.replace_by_snapshot(self._world.state.snapshot())
        logger.info("journal replaced by a snapshot", extra={"bytes": self._journal.snapshot_size})

    def _send(self, connection: ServedConnection, answer: bytes, delay: float) -> None:
        if delay:
            self._loop.call_later(delay, connection.send, answer)
        else:
            connection.send(answer)

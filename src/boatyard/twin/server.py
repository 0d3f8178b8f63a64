"""The twin behind a unix socket: one world, one journal, many clients. Started by `process`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from boatyard.processes.wire import BadFrame, Frames, decode_call, encode_answer
from boatyard.twin.journal import Journal
from boatyard.twin.world import World

logger = logging.getLogger(__name__)

SMALLEST_JOURNAL_TO_REPLACE = 16 * 1024 * 1024


class TwinServer:
    """Answers a call only when all that the call has read or changed is on disk.

    Calls are carried out one after the other as they arrive. The changes of all calls that arrive
    during one write to disk are written together by the next.
    """

    def __init__(
        self,
        world: World,
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
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="twin-journal")
        self._entries: list[tuple[Any, ...]] = []
        self._answers: list[tuple[Connection, bytes, float]] = []
        self._writing = False
        self.closing = False
        self.failed: asyncio.Future[None] = self._loop.create_future()

    def handle(self, connection: Connection, payload: bytes) -> None:
        number, verb, args = decode_call(payload)
        reply = self._world.call(verb, args, self._now())
        self._entries += self._world.take_changes()
        answer = b"" if reply.silent else encode_answer(number, reply.value, reply.error)
        if not self._entries and not self._writing:
            self._send(connection, answer, reply.delay)
            return
        # A call that only reads waits too: it may have read what is not on disk yet.
        if not self._answers and not self._writing:
            self._loop.call_soon(self._write)
        self._answers.append((connection, answer, reply.delay))

    async def close(self) -> None:
        """Waits for the write under way. Calls that were not answered may be lost."""
        await self._loop.run_in_executor(self._disk, self._journal.close)
        self._disk.shutdown()

    def _write(self) -> None:
        entries, answers = self._entries, self._answers
        self._entries, self._answers = [], []
        self._writing = True
        write = self._loop.run_in_executor(self._disk, self._journal.append, entries)
        write.add_done_callback(lambda written: self._written(written, answers))

    def _written(
        self, written: asyncio.Future[None], answers: list[tuple[Connection, bytes, float]]
    ) -> None:
        try:
            written.result()
            for connection, answer, delay in answers:
                self._send(connection, answer, delay)
            if self._journal.size > max(self._replace_at, 2 * self._journal.snapshot_size):
                self._begin_anew()
        except OSError as error:
            # The world is ahead of the disk: only a restart from the disk makes them equal again.
            logger.error("journal could not be written", exc_info=error)
            if not self.failed.done():
                self.failed.set_exception(error)
            return
        self._writing = False
        if self._entries:
            self._write()
        elif self._answers:
            answers, self._answers = self._answers, []
            for connection, answer, delay in answers:
                self._send(connection, answer, delay)

    def _begin_anew(self) -> None:
        """Blocks all calls for tenths of a second; copying the world first would double its memory."""
        self._entries = []  # the snapshot has them
        self._journal.begin_anew(self._world.state.snapshot())
        logger.info("journal replaced by a snapshot", extra={"bytes": self._journal.snapshot_size})

    def _send(self, connection: Connection, answer: bytes, delay: float) -> None:
        if delay:
            self._loop.call_later(delay, connection.send, answer)
        else:
            connection.send(answer)


class Connection(asyncio.Protocol):
    """The connection of one client. Answers of one iteration of the event loop leave in one write."""

    def __init__(self, server: TwinServer, connections: set[Connection]) -> None:
        self._server = server
        self._connections = connections
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)
        if self._server.closing:  # accepted just before the listener closed
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._frames.feed(data):
                self._server.handle(self, payload)
        except BadFrame as error:
            logger.warning("client does not speak the twin's protocol", extra={"what": str(error)})
            self.close()

    def send(self, answer: bytes) -> None:
        if self._transport is None or not answer:
            return
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(answer)

    def close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def _flush(self) -> None:
        if self._transport is not None and self._outgoing:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

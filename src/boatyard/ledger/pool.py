"""A pool that lends a connection for one statement. Used by the ledger's connections.

asyncpg's own pool spends about as much time on lending as a short statement takes: a proxy, two
timers and a task each time. Here no transaction or cursor outlives a statement, so none of it is needed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import asyncpg

from boatyard.ledger.postgres_errors import CONNECTION_ERRORS

PostgresConnection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class Pool:
    """At most `size` connections, opened when needed; the most recently used one is lent first."""

    def __init__(
        self,
        open_one: Callable[[], Awaitable[PostgresConnection]],
        *,
        size: int,
        wait_seconds: float,
        idle_seconds: float,
    ) -> None:
        self._open_connection = open_one
        self._free_slots = asyncio.Semaphore(size)
        self._wait_seconds = wait_seconds
        self._idle_seconds = idle_seconds
        self._idle: deque[tuple[float, PostgresConnection]] = (
            deque()
        )  # since when; the longest idle first
        self._closed = False

    async def fetch(self, query: str, args: Sequence[Any]) -> Sequence[asyncpg.Record]:
        """Runs one statement and returns its rows. TimeoutError when every connection stays in use."""
        if self._free_slots.locked():
            async with asyncio.timeout(self._wait_seconds):
                await self._free_slots.acquire()
        else:
            await self._free_slots.acquire()
        try:
            return await self._fetch(query, args)
        finally:
            self._free_slots.release()

    async def close(self) -> None:
        """Closes idle connections now, and lent ones when they come back."""
        self._closed = True
        while self._idle:
            await self._idle.pop()[1].close()

    async def _fetch(self, query: str, args: Sequence[Any]) -> Sequence[asyncpg.Record]:
        connection = await self._borrow()
        try:
            rows = await connection.fetch(query, *args)
        except CONNECTION_ERRORS:
            connection.terminate()
            raise
        except asyncpg.PostgresError:
            self._give_back(connection)
            raise
        except BaseException:
            # Interrupted in the middle of a statement: its result must not be read as the next one's.
            connection.terminate()
            raise
        self._give_back(connection)
        return rows

    async def _borrow(self) -> PostgresConnection:
        if self._closed:
            raise asyncpg.InterfaceError("the pool is closed")
        while self._idle:
            connection = self._idle.pop()[1]
            if not connection.is_closed():
                return connection
        return await self._open_connection()

    def _give_back(self, connection: PostgresConnection) -> None:
        now = time.monotonic()
        if self._closed:
            connection.terminate()
        elif not connection.is_closed():
            self._idle.append((now, connection))
        if self._idle and now - self._idle[0][0] > self._idle_seconds:
            self._idle.popleft()[1].terminate()

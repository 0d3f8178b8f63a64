"""Connections to PostgreSQL: one round trip per statement, and failures in our words. Used by the ledger's parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from boatyard.ledger.failures import DROPPED, TRY_AGAIN, translate
from boatyard.model.errors import Refused, Unavailable

STATEMENT_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_TRIES = 8


class _Connection(asyncpg.Connection):
    def get_reset_query(self) -> str:
        # No session state is ever left behind here, and the usual reset costs a round trip each time.
        return ""


async def connect(url: str, application: str) -> asyncpg.Connection[asyncpg.Record]:
    """One connection of its own, for listening and for migrations. Unavailable when there is none."""
    try:
        return await asyncpg.connect(
            url, timeout=_CONNECT_SECONDS, server_settings={"application_name": application}
        )
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise unreachable(error) from error


def unreachable(error: Exception) -> Unavailable | Refused:
    """Why there is no connection: the address is wrong, or the server is not there."""
    if isinstance(error, ValueError | asyncpg.InvalidAuthorizationSpecificationError):
        return Refused(f"cannot use the database address: {error}")
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return Refused(f"cannot use the database address: {error}; create the database first")
    return Unavailable(f"PostgreSQL cannot be reached: {str(error) or type(error).__name__}")


class Connections:
    """A pool of connections. Statements are prepared once per connection."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record]) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, url: str, *, application: str, size: int) -> Connections:
        try:
            pool = await asyncpg.create_pool(
                url,
                min_size=min(2, size),
                max_size=size,
                max_inactive_connection_lifetime=300.0,
                connection_class=_Connection,
                init=_use_bytes_for_json,
                timeout=_CONNECT_SECONDS,
                command_timeout=STATEMENT_SECONDS,
                server_settings={
                    "application_name": application,
                    "jit": "off",
                    "random_page_cost": "1.1",  # as on every disk without a head to move
                    "timezone": "UTC",
                    "idle_in_transaction_session_timeout": "30000",
                },
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise unreachable(error) from error
        return cls(pool)

    async def close(self) -> None:
        await self._pool.close()

    def terminate(self) -> None:
        self._pool.terminate()

    async def read(self, doing: str, query: str, *args: Any) -> Sequence[asyncpg.Record]:
        """Rows of a statement that changes nothing; tried once more when the connection drops."""
        try:
            return await self._fetch(query, args)
        except DROPPED:
            pass
        except asyncpg.PostgresError as error:
            raise translate(error, doing) from error
        return await self._translated(doing, lambda: self._fetch(query, args))

    async def write(self, doing: str, query: str, *args: Any) -> Sequence[asyncpg.Record]:
        """Rows of a statement that changes something, in one transaction.

        Run again only when PostgreSQL rolled it back to end a deadlock. Unavailable when the
        connection was lost: whether it was committed is then unknown.
        """
        for _ in range(_TRIES - 1):
            try:
                return await self._fetch(query, args)
            except TRY_AGAIN:
                continue
            except (asyncpg.PostgresError, *DROPPED) as error:
                raise translate(error, doing) from error
        return await self._translated(doing, lambda: self._fetch(query, args))

    async def _translated(
        self, doing: str, run: Callable[[], Awaitable[Sequence[asyncpg.Record]]]
    ) -> Sequence[asyncpg.Record]:
        try:
            return await run()
        except (asyncpg.PostgresError, *DROPPED) as error:
            raise translate(error, doing) from error

    async def _fetch(self, query: str, args: Sequence[Any]) -> Sequence[asyncpg.Record]:
        async with self._pool.acquire(timeout=STATEMENT_SECONDS) as connection:
            return await connection.fetch(query, *args)


async def _use_bytes_for_json(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", format="binary", encoder=_with_mark, decoder=_without_mark
    )


def _with_mark(text: bytes) -> bytes:
    return b"\x01" + text  # the version of jsonb's binary form


def _without_mark(packed: bytes) -> bytes:
    return bytes(packed[1:])

"""Connections to PostgreSQL: one round trip per statement, failures as errors of the model. Used by the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from boatyard.ledger.pool import Pool, PostgresConnection
from boatyard.ledger.postgres_errors import CONNECTION_ERRORS, RETRYABLE_ERRORS, translate_error
from boatyard.model.errors import Refused, Unavailable

STATEMENT_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 300.0
_MOST_TRIES = 8


async def open_connection(url: str, application: str) -> PostgresConnection:
    """Opens a connection outside of the pool, for listening and for migrations. Unavailable when it cannot."""
    try:
        return await asyncpg.connect(
            url, timeout=_CONNECT_SECONDS, server_settings={"application_name": application}
        )
    except (asyncpg.PostgresError, *CONNECTION_ERRORS) as error:
        raise make_connection_error(error) from error


def make_connection_error(error: Exception) -> Unavailable | Refused:
    """The error for a failed connection: Refused when the address is wrong, else Unavailable."""
    if isinstance(error, ValueError | asyncpg.InvalidAuthorizationSpecificationError):
        return Refused(f"cannot use the database address: {error}")
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return Refused(f"cannot use the database address: {error}; create the database first")
    return Unavailable(f"PostgreSQL cannot be reached: {str(error) or type(error).__name__}")


class Connections:
    """A pool of connections. Statements are prepared once per connection."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, url: str, *, application: str, size: int) -> Connections:
        """Opens the pool and a first connection. Refused or Unavailable when that fails."""

        async def open_one() -> PostgresConnection:
            connection = await asyncpg.connect(
                url,
                timeout=_CONNECT_SECONDS,
                command_timeout=STATEMENT_SECONDS,
                server_settings={
                    "application_name": application,
                    "jit": "off",
                    "random_page_cost": "1.1",  # for solid-state disks
                    "timezone": "UTC",
                    "idle_in_transaction_session_timeout": "30000",
                },
            )
            await _use_bytes_for_json(connection)
            return connection

        pool = Pool(open_one, size=size, wait_seconds=STATEMENT_SECONDS, idle_seconds=_IDLE_SECONDS)
        try:
            await pool.fetch("select 1", ())
        except (asyncpg.PostgresError, *CONNECTION_ERRORS) as error:
            raise make_connection_error(error) from error
        return cls(pool)

    async def close(self) -> None:
        await self._pool.close()

    async def read(self, doing: str, query: str, *args: Any) -> Sequence[asyncpg.Record]:
        """Runs a statement that changes nothing and returns its rows; tries once more when the connection drops."""
        try:
            return await self._pool.fetch(query, args)
        except CONNECTION_ERRORS:
            pass
        except asyncpg.PostgresError as error:
            raise translate_error(error, doing) from error
        return await self._run_translated(doing, lambda: self._pool.fetch(query, args))

    async def write(self, doing: str, query: str, *args: Any) -> Sequence[asyncpg.Record]:
        """Runs a statement that changes something, in one transaction, and returns its rows.

        Tries again only when PostgreSQL rolled it back to end a deadlock. Unavailable when the
        connection was lost: whether it was committed is then unknown.
        """
        for _ in range(_MOST_TRIES - 1):
            try:
                return await self._pool.fetch(query, args)
            except RETRYABLE_ERRORS:
                continue
            except (asyncpg.PostgresError, *CONNECTION_ERRORS) as error:
                raise translate_error(error, doing) from error
        return await self._run_translated(doing, lambda: self._pool.fetch(query, args))

    async def _run_translated(
        self, doing: str, run: Callable[[], Awaitable[Sequence[asyncpg.Record]]]
    ) -> Sequence[asyncpg.Record]:
        try:
            return await run()
        except (asyncpg.PostgresError, *CONNECTION_ERRORS) as error:
            raise translate_error(error, doing) from error


async def _use_bytes_for_json(connection: PostgresConnection) -> None:
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", format="binary", encoder=_encode_jsonb, decoder=_decode_jsonb
    )


def _encode_jsonb(text: bytes) -> bytes:
    return b"\x01" + text  # the version of jsonb's binary form


def _decode_jsonb(packed: bytes) -> bytes:
    return bytes(packed[1:])

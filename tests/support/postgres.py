"""A real PostgreSQL for tests: one server per test process, one database per test, cloned in milliseconds.

Loaded by tests/conftest.py as a plugin. `database_url` is migrated; `ledger` is open on it.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from boatyard.ledger import schema
from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal

KEY = bytes(range(32))
TEMPLATE = "boatyard_template"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """The server all tests of this process share. Fast rather than durable; do not stop it."""
    data_dir = Path(tempfile.mkdtemp(prefix="by-", dir="/tmp"))
    server = EmbeddedPostgres(data_dir, durable=False)
    asyncio.run(_prepare(server))
    yield server
    asyncio.run(server.stop())
    shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
async def empty_database_url(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A database in which nothing was ever migrated."""
    async with _database(postgres, "template1") as url:
        yield url


@pytest.fixture
async def database_url(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A migrated database of this test's own."""
    async with _database(postgres, TEMPLATE) as url:
        yield url


@pytest.fixture
def seal() -> Seal:
    return Seal.from_bytes(KEY)


@pytest.fixture
async def ledger(database_url: str, seal: Seal) -> AsyncIterator[Ledger]:
    opened = await Ledger.open(database_url, seal=seal, application="test")
    yield opened
    await opened.close()


class _database:
    def __init__(self, postgres: EmbeddedPostgres, template: str) -> None:
        self._postgres = postgres
        self._template = template
        self._name = f"test_{next(_numbers)}"

    async def __aenter__(self) -> str:
        await _execute(self._postgres, f"create database {self._name} template {self._template}")
        return self._postgres.url(self._name)

    async def __aexit__(self, *_: object) -> None:
        await _execute(self._postgres, f"drop database {self._name} with (force)")


async def _prepare(server: EmbeddedPostgres) -> None:
    await server.start()
    await _execute(server, f"create database {TEMPLATE}")
    await schema.migrate(server.url(TEMPLATE))


async def _execute(server: EmbeddedPostgres, statement: str) -> None:
    connection = await asyncpg.connect(server.url("postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()

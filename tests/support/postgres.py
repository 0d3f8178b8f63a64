"""A real PostgreSQL for tests: one server per test process, one empty database per test.

Loaded by tests/conftest.py as a plugin. `database_url` is migrated; `ledger` is open on it.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from boatyard.ledger import schema
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
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
    async with unmigrated(postgres) as url:
        yield url


@pytest.fixture
async def database_url(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A migrated database of this test's own."""
    async with migrated(postgres) as url:
        yield url


@pytest.fixture
def seal() -> Seal:
    return Seal.from_bytes(KEY)


@pytest.fixture
async def ledger(database_url: str, seal: Seal) -> AsyncIterator[Ledger]:
    opened = await Ledger.open(database_url, seal=seal, application="test")
    yield opened
    await opened.close()


# By server: databases that are migrated, empty, and used by nobody.
_idle: dict[str, list[str]] = {}

# Emptying takes a tenth of the time that cloning takes.
_EMPTY = """
select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend';
truncate documents, archive, events, event_log, claims, reservations, pools, work, wakes, settings,
    stories, story_lines restart identity;
insert into event_log (last_seq, trimmed) values (0, 0);
alter sequence work_token restart
"""


@asynccontextmanager
async def migrated(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A migrated, empty database; used again by a later test."""
    idle = _idle.setdefault(postgres.url(TEMPLATE), [])
    if idle:
        name = idle.pop()
    else:
        name = f"test_{next(_numbers)}"
        await _execute(postgres, "postgres", f"create database {name} template {TEMPLATE}")
    yield postgres.url(name)
    if await _shape(postgres, name) == await _shape(postgres, TEMPLATE):
        await _execute(postgres, name, _EMPTY)
        idle.append(name)
    else:  # the test took out a guard: nobody may get its database
        await _execute(postgres, "postgres", f"drop database {name} with (force)")


@asynccontextmanager
async def unmigrated(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    name = f"test_{next(_numbers)}"
    await _execute(postgres, "postgres", f"create database {name}")
    yield postgres.url(name)
    await _execute(postgres, "postgres", f"drop database {name} with (force)")


_SHAPE = """
select md5(string_agg(part, ',' order by part)) from (
    select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) from pg_constraint
        where connamespace = 'public'::regnamespace
    union all select indexdef from pg_indexes where schemaname = 'public'
    union all select proname || ' ' || md5(prosrc) from pg_proc where pronamespace = 'public'::regnamespace
) as parts (part)
"""
_shapes: dict[str, str] = {}


async def _shape(server: EmbeddedPostgres, database: str) -> str:
    """The constraints, indexes and functions of a database, in short. The template's never changes."""
    if database in _shapes:
        return _shapes[database]
    connection = await asyncpg.connect(server.url(database))
    try:
        found: str = await connection.fetchval(_SHAPE)
    finally:
        await connection.close()
    if database == TEMPLATE:
        _shapes[database] = found
    return found


@asynccontextmanager
async def postgres_server() -> AsyncIterator[EmbeddedPostgres]:
    """A server for whoever has no fixtures: `migrated` gives databases on it."""
    data_dir = Path(tempfile.mkdtemp(prefix="by-", dir="/tmp"))
    server = EmbeddedPostgres(data_dir, durable=False)
    try:
        await _prepare(server)
        yield server
    finally:
        await server.stop()
        await asyncio.to_thread(shutil.rmtree, data_dir, ignore_errors=True)


async def _prepare(server: EmbeddedPostgres) -> None:
    await server.start()
    await _execute(server, "postgres", f"create database {TEMPLATE}")
    await schema.migrate(server.url(TEMPLATE))


async def _execute(server: EmbeddedPostgres, database: str, statement: str) -> None:
    connection = await asyncpg.connect(server.url(database))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()

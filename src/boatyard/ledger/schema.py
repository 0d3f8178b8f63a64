"""The shape of the database: brought up to date by `boatyard migrate`, checked when a server starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import asyncpg

from boatyard.ledger.connections import Connections, connect
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Refused

HEAD = "0003"  # the last of migrations/versions; a test keeps it so
_MIGRATIONS = Path(__file__).with_name("migrations")
_LOCK = 7202_0001

OnStep = Callable[[str], None]


async def migrate(url: str, *, on_step: OnStep | None = None) -> str:
    """Brings the schema up to date and answers its revision.

    May be called any number of times and by several at once: they take turns. Killed half way, the
    next call goes on after the last step that was committed. `on_step` is told of each step before it.
    """
    # alembic and SQLAlchemy take half a second to import; servers never need them.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    def upgrade(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.attributes.update(connection=connection, on_step=on_step)
        command.upgrade(config, "head")

    async def creator() -> asyncpg.Connection[asyncpg.Record]:
        return await asyncpg.connect(url, server_settings={"application_name": "boatyard migrate"})

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=creator,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
    )
    # Held by a session: it ends with the process, whatever happens to it.
    turn = await connect(url, "boatyard migrate")
    try:
        await turn.execute(f"select pg_advisory_lock({_LOCK})")
        async with engine.connect() as connection:
            await connection.run_sync(upgrade)
    finally:
        await engine.dispose()
        turn.terminate()
    return await current(url) or ""


async def current(url: str) -> str | None:
    """The revision the database is at; None when nothing was ever migrated."""
    connections = await Connections.open(url, application="boatyard migrate", size=1)
    try:
        return await _revision(connections)
    finally:
        await connections.close()


async def require_current(connections: Connections) -> None:
    """Refused when the schema is not the one this program was written for, naming what to run."""
    revision = await _revision(connections)
    if revision == HEAD:
        return
    if revision is not None and revision > HEAD:
        raise Refused(
            f"the database is at revision {revision}, newer than this program knows ({HEAD}); "
            "run the newer program"
        )
    step = await _last_step(connections)
    found = f"at revision {revision}" if revision else "empty"
    if step:
        found += f", a migration stopped after step {step!r}"
    raise Refused(f"the database is {found}, this program needs {HEAD}; run: boatyard migrate")


async def require_key(connections: Connections, seal: Seal) -> None:
    """Refused when the key is not the database's. The first key to open a database is its key."""
    claim = "insert into settings (name, value) values ('seal_key', $1) on conflict do nothing"
    await connections.write("keeping the key's id", claim, seal.key_id)
    rows = await connections.read(
        "reading the key's id", "select value from settings where name = 'seal_key'"
    )
    if rows[0][0] != seal.key_id:
        raise Refused(
            f"the seal key {seal.key_id} is not the one this database was made with "
            f"({rows[0][0]}); give the key file that belongs to it"
        )


async def _revision(connections: Connections) -> str | None:
    if not await _exists(connections, "alembic_version"):
        return None
    rows = await connections.read("reading the revision", "select version_num from alembic_version")
    return rows[0][0] if rows else None


async def _last_step(connections: Connections) -> str | None:
    if not await _exists(connections, "migration_steps"):
        return None
    query = "select name from migration_steps where revision > $1 order by done desc limit 1"
    rows = await connections.read("reading the steps", query, await _revision(connections) or "")
    return rows[0][0] if rows else None


async def _exists(connections: Connections, table: str) -> bool:
    rows = await connections.read("reading the schema", "select to_regclass($1) is not null", table)
    return bool(rows[0][0])

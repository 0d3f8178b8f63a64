"""The database schema: migrated by `boatyard migrate`, checked when a server starts.

A migration is a file `migrations/<number>_<name>.sql`. The table `boatyard_migrations` says which are applied.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from boatyard.ledger.connections import Connections, open_connection
from boatyard.ledger.pool import PostgresConnection
from boatyard.ledger.postgres_errors import CONNECTION_ERRORS, translate_error
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Refused

MIGRATIONS_FOLDER = Path(__file__).with_name("migrations")
_FILE_NAME = re.compile(r"(?P<number>[0-9]{4})_(?P<name>[a-z0-9_]+)\.sql")
_LOCK_ID = 7202_0001

_CREATE_TABLE = """
create table if not exists boatyard_migrations (
    number integer primary key,
    name text not null,
    checksum text not null,
    applied timestamptz not null default clock_timestamp()
)
"""
_APPLIED_QUERY = "select number, name, checksum from boatyard_migrations order by number"
_RECORD_QUERY = "insert into boatyard_migrations (number, name, checksum) values ($1, $2, $3)"

# Older programs recorded each file in `migration_steps`, and alembic the last revision in `alembic_version`.
_ALEMBIC_REVISIONS = {"0001", "0002", "0003"}
# What an older program reads afterwards: it compares as text, and refuses a revision that is larger than its own.
_ALEMBIC_END = "see boatyard_migrations"

OnStep = Callable[[str], None]


@dataclass(frozen=True)
class Migration:
    """One file. Its checksum leaves out comments and empty lines, which may be reworded."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        lines = (line.rstrip() for line in self.sql.splitlines())
        code = [line for line in lines if line and not line.lstrip().startswith("--")]
        return hashlib.sha256("\n".join(code).encode()).hexdigest()

    @property
    def label(self) -> str:
        return f"{self.number:04}_{self.name}"


@dataclass(frozen=True)
class AppliedMigration:
    """A migration as recorded in the database."""

    number: int
    name: str
    checksum: str


def read_migrations(folder: Path = MIGRATIONS_FOLDER) -> tuple[Migration, ...]:
    """The migrations of a folder, by number. ValueError when a name is wrong or a number is missing or used twice."""
    migrations = []
    for path in sorted(folder.glob("*.sql")):
        match = _FILE_NAME.fullmatch(path.name)
        if match is None:
            raise ValueError(f"{path.name} is not named like 0001_tables.sql")
        migrations.append(Migration(int(match["number"]), match["name"], path.read_text()))
    numbers = [migration.number for migration in migrations]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"migrations are numbered from 0001 without gaps, not {numbers}")
    return tuple(migrations)


def latest_revision(folder: Path = MIGRATIONS_FOLDER) -> str:
    """The revision this program is written for: the number of its last migration."""
    return f"{len(read_migrations(folder)):04}"


def list_pending(
    migrations: Sequence[Migration], applied: Sequence[AppliedMigration]
) -> Sequence[Migration]:
    """The migrations that are to be applied, in their order.

    Refused when the database has other migrations than this program: more, changed ones, or with one left out.
    """
    if applied and applied[-1].number > len(migrations):
        raise Refused(
            f"the database is at revision {applied[-1].number:04}, newer than this program knows "
            f"({len(migrations):04}); run the newer program"
        )
    # `migrations` is without gaps, and so must be what is applied of it.
    for migration, record in zip(migrations, applied, strict=False):
        if migration.number != record.number:
            raise Refused(
                f"migration {migration.label} was never applied to this database, "
                f"but later ones were; restore the database from a backup"
            )
        if (migration.name, migration.checksum) != (record.name, record.checksum):
            raise Refused(
                f"migration {migration.label} is not the one that was applied to this database as "
                f"{record.number:04}_{record.name}; run the program that matches the database"
            )
    return migrations[len(applied) :]


async def migrate(
    url: str, *, on_step: OnStep | None = None, folder: Path = MIGRATIONS_FOLDER
) -> str:
    """Brings the schema up to date and returns its revision.

    May be called any number of times and by several processes at once: they take turns. Each file is one
    transaction, so after a crash the next call goes on with the first file that was not committed.
    `on_step` is called with each file's name before it is applied.
    """
    migrations = read_migrations(folder)
    connection = await open_connection(url, "boatyard migrate")
    try:
        # Held by the session: PostgreSQL frees it when the process ends, in whatever way.
        await connection.execute(f"select pg_advisory_lock({_LOCK_ID})")
        await _adopt_alembic(connection, migrations)
        await connection.execute(_CREATE_TABLE)
        rows = await connection.fetch(_APPLIED_QUERY)
        for migration in list_pending(migrations, [AppliedMigration(*row) for row in rows]):
            await _apply_migration(connection, migration, on_step)
    except CONNECTION_ERRORS as error:
        raise translate_error(error, "migrating") from error
    finally:
        connection.terminate()
    return latest_revision(folder)


async def _apply_migration(
    connection: PostgresConnection, migration: Migration, on_step: OnStep | None
) -> None:
    async with connection.transaction():
        if on_step is not None:
            on_step(migration.name)
        await connection.execute(migration.sql)
        await connection.execute(
            _RECORD_QUERY, migration.number, migration.name, migration.checksum
        )


async def _adopt_alembic(connection: PostgresConnection, migrations: Sequence[Migration]) -> None:
    """Takes over the records of an older program, in one transaction. Does nothing when there are none."""
    async with connection.transaction():
        if not await connection.fetchval("select to_regclass('migration_steps') is not null"):
            return
        steps = {row[0] for row in await connection.fetch("select name from migration_steps")}
        applied_migrations = [migration for migration in migrations if migration.name in steps]
        revisions = {row[0] for row in await connection.fetch("select * from alembic_version")}
        if len(applied_migrations) != len(steps) or not revisions <= _ALEMBIC_REVISIONS:
            raise Refused(
                "the database was migrated by a program that this one does not know "
                f"(revision {', '.join(sorted(revisions)) or 'none'}); run that program"
            )
        await connection.execute(_CREATE_TABLE)
        for migration in applied_migrations:
            await connection.execute(
                _RECORD_QUERY, migration.number, migration.name, migration.checksum
            )
        await connection.execute("drop table migration_steps")
        await connection.execute("delete from alembic_version")
        await connection.execute("insert into alembic_version values ($1)", _ALEMBIC_END)


async def current_revision(url: str) -> str | None:
    """The revision the database is at; None when nothing was ever migrated."""
    connections = await Connections.open(url, application="boatyard migrate", size=1)
    try:
        applied = await _read_applied(connections)
    finally:
        await connections.close()
    return f"{applied[-1].number:04}" if applied else None


async def require_current(connections: Connections) -> None:
    """Refused, with the command to run, when the schema is not the one this program was written for."""
    applied = await _read_applied(connections)
    if not list_pending(read_migrations(), applied):
        return
    state = f"at revision {applied[-1].number:04}" if applied else "empty"
    if not applied and await _table_exists(connections, "migration_steps"):
        state = "of an older program"
    raise Refused(
        f"the database is {state}, this program needs {latest_revision()}; run: boatyard migrate"
    )


async def require_key(connections: Connections, seal: Seal) -> None:
    """Refused when the seal key is not the database's. The first key that opens a database becomes its key."""
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


async def _read_applied(connections: Connections) -> list[AppliedMigration]:
    if not await _table_exists(connections, "boatyard_migrations"):
        return []
    rows = await connections.read("reading the migrations", _APPLIED_QUERY)
    return [AppliedMigration(*row) for row in rows]


async def _table_exists(connections: Connections, table: str) -> bool:
    rows = await connections.read("reading the schema", "select to_regclass($1) is not null", table)
    return bool(rows[0][0])

"""What the ledger promises about its schema: killed migrations go on, servers refuse what is not theirs."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import sys
from pathlib import Path

import asyncpg
import pytest

from boatyard.ledger import schema
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.schema import (
    MIGRATIONS_FOLDER,
    AppliedMigration,
    Migration,
    list_pending,
    read_migrations,
)
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.osac import Cluster

STEPS = ("tables", "commit", "claim", "events", "contents", "stories")
OLDER = Path(__file__).with_name("data") / "alembic_0002.sql"
GATE = 4711  # an advisory lock at which a migration waits until the test lets it through

# Kills itself, hard, after the file before this one was committed.
KILLED_BETWEEN = """
import asyncio, os, signal, sys
from boatyard.ledger import schema

def on_step(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(schema.migrate(sys.argv[1], on_step=on_step))
"""
RUN = """
import asyncio, pathlib, sys
from boatyard.ledger import schema
asyncio.run(schema.migrate(sys.argv[1], folder=pathlib.Path(sys.argv[2])))
"""


async def start(program: str, *args: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *args, stderr=asyncio.subprocess.PIPE
    )


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def folder_with(tmp_path: Path, **files: str) -> Path:
    """A folder with our migrations, of which some are written anew or added: `_0007_more="…"`."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS_FOLDER, folder)
    for name, sql in files.items():
        (folder / f"{name.lstrip('_')}.sql").write_text(sql)
    return folder


# --- going forward -------------------------------------------------------------------------------


async def test_migrating_again_changes_nothing(empty_database_url: str) -> None:
    assert await schema.current_revision(empty_database_url) is None
    assert await schema.migrate(empty_database_url) == schema.latest_revision() == "0006"
    assert await schema.current_revision(empty_database_url) == "0006"

    steps: list[str] = []
    assert (
        await schema.migrate(empty_database_url, on_step=steps.append) == schema.latest_revision()
    )
    assert steps == []


async def test_a_newer_program_applies_only_what_is_new(
    empty_database_url: str, tmp_path: Path
) -> None:
    await schema.migrate(empty_database_url)
    folder = folder_with(tmp_path, _0007_more="create table more (id text)")
    steps: list[str] = []

    assert await schema.migrate(empty_database_url, on_step=steps.append, folder=folder) == "0007"
    assert steps == ["more"]


async def test_several_migrations_at_once_take_turns(empty_database_url: str) -> None:
    steps: list[str] = []

    revisions = await asyncio.gather(
        *(schema.migrate(empty_database_url, on_step=steps.append) for _ in range(3))
    )

    assert revisions == [schema.latest_revision()] * 3
    assert tuple(steps) == STEPS


async def test_a_migration_waits_for_another_process_that_is_at_it(
    empty_database_url: str, tmp_path: Path
) -> None:
    folder = folder_with(tmp_path, _0007_more=f"select pg_advisory_xact_lock({GATE})")
    keeper = await asyncpg.connect(empty_database_url)
    await keeper.execute(f"select pg_advisory_lock({GATE})")
    first = await start(RUN, empty_database_url, str(folder))
    await until_waiting(keeper)

    steps: list[str] = []
    second = asyncio.create_task(
        schema.migrate(empty_database_url, on_step=steps.append, folder=folder)
    )
    await until_waiting(keeper, processes=2)
    await keeper.execute(f"select pg_advisory_unlock({GATE})")

    assert await first.wait() == 0
    assert await second == "0007"
    assert steps == []
    await keeper.close()


# --- killed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
async def test_a_migration_killed_between_two_files_goes_on_with_the_second(
    empty_database_url: str, seal: Seal, step: str
) -> None:
    child = await start(KILLED_BETWEEN, empty_database_url, step)
    _, errors = await child.communicate()
    assert child.returncode == -signal.SIGKILL, errors.decode()

    await goes_on_with(step, empty_database_url, seal)


@pytest.mark.parametrize("step", STEPS)
async def test_a_migration_killed_inside_a_file_goes_on_with_that_file(
    empty_database_url: str, seal: Seal, step: str, tmp_path: Path
) -> None:
    (migration,) = (known for known in read_migrations() if known.name == step)
    first, *others = re.split(r";\n\n(?=\S)", migration.sql.rstrip().removesuffix(";"))
    gate = f"select pg_advisory_xact_lock({GATE})"
    folder = folder_with(tmp_path, **{migration.label: ";\n".join([first, gate, *others])})
    keeper = await asyncpg.connect(empty_database_url)
    await keeper.execute(f"select pg_advisory_lock({GATE})")

    child = await start(RUN, empty_database_url, str(folder))
    await until_waiting(keeper)
    child.kill()
    await child.wait()
    await keeper.close()  # what PostgreSQL still does of it is never committed

    await goes_on_with(step, empty_database_url, seal)


async def goes_on_with(step: str, url: str, seal: Seal) -> None:
    with pytest.raises(Refused, match="boatyard migrate"):
        await Ledger.open(url, seal=seal, application="test")
    steps: list[str] = []
    await schema.migrate(url, on_step=steps.append)

    assert tuple(steps) == STEPS[STEPS.index(step) :]
    ledger = await Ledger.open(url, seal=seal, application="test")
    await ledger.close()


async def until_waiting(connection: asyncpg.Connection, processes: int = 1) -> None:
    """Returns once so many migrations wait for an advisory lock."""
    query = """
        select count(*) from pg_stat_activity where datname = current_database()
            and application_name = 'boatyard migrate' and wait_event = 'advisory'
    """
    async with asyncio.timeout(30):
        while await connection.fetchval(query) < processes:  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.02)


async def test_a_migration_that_fails_changes_nothing(
    empty_database_url: str, tmp_path: Path
) -> None:
    await schema.migrate(empty_database_url)
    folder = folder_with(tmp_path, _0007_more="create table more (id text); select 1 / 0")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await schema.migrate(empty_database_url, folder=folder)

    assert await schema.current_revision(empty_database_url) == "0006"
    (folder / "0007_more.sql").write_text("create table more (id text)")
    assert await schema.migrate(empty_database_url, folder=folder) == "0007"


# --- databases of an older program ---------------------------------------------------------------


async def test_a_database_of_an_older_program_is_upgraded_without_loss(
    empty_database_url: str, seal: Seal
) -> None:
    await execute(empty_database_url, OLDER.read_text())
    with pytest.raises(Refused, match=r"older program.*run: boatyard migrate"):
        await Ledger.open(empty_database_url, seal=seal, application="test")

    steps: list[str] = []
    await schema.migrate(empty_database_url, on_step=steps.append)

    assert steps == ["stories"]
    ledger = await Ledger.open(empty_database_url, seal=seal, application="test")
    cluster = await ledger.documents.get(Cluster, "a")
    archived = await ledger.documents.get_archived(Cluster, "b")
    assert cluster is not None
    assert archived is not None
    assert (cluster.metadata.name, archived.metadata.name) == ("web", "old")
    assert [event.seq for event in await ledger.events.list_after(0, 10)] == [1, 2, 3]
    assert [claim.item for claim in await ledger.claims.list_by_owner("a")] == ["100"]
    assert await ledger.claims.sum_reserved("hub/boston/hosts") == 3
    assert await ledger.work.next_due() is not None
    await ledger.close()


async def test_an_upgraded_database_has_the_same_schema_as_a_new_one(
    empty_database_url: str, database_url: str
) -> None:
    await execute(empty_database_url, OLDER.read_text())
    await schema.migrate(empty_database_url)

    assert await columns_and_functions(empty_database_url) == await columns_and_functions(
        database_url
    )


async def columns_and_functions(url: str) -> list[str]:
    query = """
        select table_name || '.' || column_name || ' ' || data_type from information_schema.columns
            where table_schema = 'public' and table_name <> 'alembic_version'
        union all select proname || ' ' || md5(prosrc) from pg_proc
            where pronamespace = 'public'::regnamespace
        union all select indexdef from pg_indexes
            where schemaname = 'public' and tablename <> 'alembic_version'
        order by 1
    """
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def test_an_older_program_killed_half_way_is_continued(
    empty_database_url: str, seal: Seal
) -> None:
    tables, commit = read_migrations()[:2]
    notes = """
        create table alembic_version (version_num varchar(32) primary key);
        create table migration_steps (
            revision text, name text, done timestamptz default now(), primary key (revision, name)
        );
        insert into migration_steps (revision, name) values ('0001', 'tables'), ('0001', 'commit');
    """
    await execute(empty_database_url, notes + tables.sql + commit.sql)

    await goes_on_with("claim", empty_database_url, seal)


async def test_an_older_program_finds_an_upgraded_database_newer_than_itself(
    empty_database_url: str,
) -> None:
    await execute(empty_database_url, OLDER.read_text())
    await schema.migrate(empty_database_url)

    connection = await asyncpg.connect(empty_database_url)
    (revision,) = await connection.fetch("select version_num from alembic_version")
    await connection.close()
    assert revision[0] > "0003"  # how it compares


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("update alembic_version set version_num = '0004'", id="a revision"),
        pytest.param("insert into migration_steps values ('0004', 'other', now())", id="a step"),
    ],
)
async def test_an_older_database_that_nobody_knows_is_refused_and_stays(
    empty_database_url: str, change: str
) -> None:
    await execute(empty_database_url, OLDER.read_text())
    await execute(empty_database_url, f"set search_path to public; {change}")

    with pytest.raises(Refused, match="does not know"):
        await schema.migrate(empty_database_url)

    await execute(empty_database_url, "select from migration_steps")
    assert await schema.current_revision(empty_database_url) is None


# --- what is refused -----------------------------------------------------------------------------


async def test_a_half_migrated_database_is_refused_with_its_revision(
    empty_database_url: str, seal: Seal
) -> None:
    class Stop(Exception):
        pass

    def stop(name: str) -> None:
        if name == "claim":
            raise Stop

    with pytest.raises(Stop):
        await schema.migrate(empty_database_url, on_step=stop)

    with pytest.raises(Refused, match=r"at revision 0002,.*needs 0006; run: boatyard migrate"):
        await Ledger.open(empty_database_url, seal=seal, application="test")


async def test_a_newer_schema_is_refused_by_servers_and_by_migrate(
    empty_database_url: str, seal: Seal, tmp_path: Path
) -> None:
    folder = folder_with(tmp_path, _0007_more="create table more (id text)")
    await schema.migrate(empty_database_url, folder=folder)

    sentence = r"at revision 0007, newer than this program knows \(0006\)"
    with pytest.raises(Refused, match=sentence):
        await Ledger.open(empty_database_url, seal=seal, application="test")
    with pytest.raises(Refused, match=sentence):
        await schema.migrate(empty_database_url)


async def test_a_file_that_was_changed_after_it_was_applied_is_refused(
    empty_database_url: str, tmp_path: Path
) -> None:
    await schema.migrate(empty_database_url)
    folder = folder_with(tmp_path, _0005_contents="create table contents (digest text)")

    with pytest.raises(Refused, match="0005_contents is not the one that was applied"):
        await schema.migrate(empty_database_url, folder=folder)


async def test_a_server_refuses_a_database_with_a_changed_file(
    empty_database_url: str, seal: Seal
) -> None:
    await schema.migrate(empty_database_url)
    await execute(
        empty_database_url, "update boatyard_migrations set checksum = 'other' where number = 3"
    )

    with pytest.raises(Refused, match="0003_claim is not the one that was applied"):
        await Ledger.open(empty_database_url, seal=seal, application="test")


A, B, C = (
    Migration(number, name, f"create table {name} ()") for number, name in enumerate("abc", 1)
)


def noted(*migrations: Migration) -> list[AppliedMigration]:
    return [AppliedMigration(each.number, each.name, each.checksum) for each in migrations]


@pytest.mark.parametrize(
    "applied, expected",
    [
        pytest.param([], [A, B, C], id="an empty database gets everything"),
        pytest.param([A], [B, C], id="what is applied is left out"),
        pytest.param([A, B, C], [], id="nothing is left to do"),
    ],
)
def test_pending(applied: list[Migration], expected: list[Migration]) -> None:
    assert list(list_pending([A, B, C], noted(*applied))) == expected


@pytest.mark.parametrize(
    "applied, message",
    [
        pytest.param([A, C], "0002_b was never applied", id="a gap"),
        pytest.param([A, Migration(2, "x", B.sql)], "0002_b is not the one", id="another name"),
        pytest.param([A, Migration(2, "b", "drop")], "0002_b is not the one", id="another content"),
        pytest.param([A, B, C, Migration(4, "d", "")], "newer", id="one more"),
    ],
)
def test_pending_refuses(applied: list[Migration], message: str) -> None:
    with pytest.raises(Refused, match=message):
        list_pending([A, B, C], noted(*applied))


@pytest.mark.parametrize(
    "sql, same",
    [
        pytest.param("-- Other words.\ncreate table a ()\n\n", True, id="comments and empty lines"),
        pytest.param("create table a (id text)", False, id="code"),
    ],
)
def test_a_checksum_is_about_code(sql: str, same: bool) -> None:
    assert (Migration(1, "a", sql).checksum == A.checksum) is same


@pytest.mark.parametrize(
    "name", ["0008_later", "0006_again", "7_short"], ids=["a gap", "a number twice", "no number"]
)
def test_wrongly_numbered_files_are_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"number|named"):
        read_migrations(folder_with(tmp_path, **{name: ""}))


def test_every_file_has_statements() -> None:
    assert [migration.name for migration in read_migrations()] == list(STEPS)
    assert all(migration.sql.strip() for migration in read_migrations())


async def test_an_address_where_nobody_answers_is_unavailable(tmp_path: Path, seal: Seal) -> None:
    url = f"postgresql://nobody@/nothing?host={tmp_path}"

    with pytest.raises(Unavailable):
        await Ledger.open(url, seal=seal, application="test")
    with pytest.raises(Unavailable):
        await schema.migrate(url)


async def test_a_database_that_does_not_exist_is_refused(postgres: object, seal: Seal) -> None:
    url = postgres.url("nothing")  # type: ignore[attr-defined]

    with pytest.raises(Refused):
        await Ledger.open(url, seal=seal, application="test")
    with pytest.raises(Refused):
        await schema.migrate(url)

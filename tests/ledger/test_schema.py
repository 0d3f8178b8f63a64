"""What the ledger promises about its schema: killed migrations go on, servers refuse what is not theirs."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import asyncpg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from boatyard.ledger import schema
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.migrations.steps import statements
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Refused, Unavailable

MIGRATIONS = Path(schema.__file__).with_name("migrations")
STEPS = ("tables", "commit", "claim", "events", "contents", "stories")

# Kills itself, hard, in the middle of a step: its first statements are sent, its commit is not.
KILLED = """
import asyncio, os, signal, sys
from boatyard.ledger import schema
from boatyard.ledger.migrations import steps

plain, doomed = steps.statements, ""

def note(name):
    global doomed
    doomed = name

def statements(path):
    found = plain(path)
    yield from found[:1]
    if doomed == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
    yield from found[1:]

steps.statements = statements
asyncio.run(schema.migrate(sys.argv[1], on_step=note))
"""


def test_this_program_is_written_for_the_last_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))

    assert ScriptDirectory.from_config(config).get_current_head() == schema.HEAD


async def test_migrating_again_changes_nothing(empty_database_url: str) -> None:
    assert await schema.current(empty_database_url) is None
    assert await schema.migrate(empty_database_url) == schema.HEAD

    steps: list[str] = []
    assert await schema.migrate(empty_database_url, on_step=steps.append) == schema.HEAD
    assert steps == []


@pytest.mark.parametrize("step", STEPS)
async def test_a_migration_killed_in_the_middle_of_a_step_goes_on_with_that_step(
    empty_database_url: str, seal: Seal, step: str
) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, empty_database_url, step, stderr=asyncio.subprocess.PIPE
    )
    _, said = await child.communicate()
    assert child.returncode == -signal.SIGKILL, said.decode()
    with pytest.raises(Refused, match="boatyard migrate"):
        await Ledger.open(empty_database_url, seal=seal, application="test")

    steps: list[str] = []
    await schema.migrate(empty_database_url, on_step=steps.append)

    assert tuple(steps) == STEPS[STEPS.index(step) :]
    ledger = await Ledger.open(empty_database_url, seal=seal, application="test")
    await ledger.close()


async def test_several_migrations_at_once_take_turns(empty_database_url: str) -> None:
    steps: list[str] = []

    revisions = await asyncio.gather(
        *(schema.migrate(empty_database_url, on_step=steps.append) for _ in range(3))
    )

    assert revisions == [schema.HEAD] * 3
    assert tuple(steps) == STEPS


async def test_a_half_migrated_database_is_refused_with_the_step(
    empty_database_url: str, seal: Seal
) -> None:
    class Stop(Exception):
        pass

    def stop(name: str) -> None:
        if name == "claim":
            raise Stop

    with pytest.raises(Stop):
        await schema.migrate(empty_database_url, on_step=stop)

    with pytest.raises(Refused, match=r"stopped after step 'commit'.*boatyard migrate"):
        await Ledger.open(empty_database_url, seal=seal, application="test")


async def test_a_newer_schema_is_refused(database_url: str, seal: Seal) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("update alembic_version set version_num = '9999'")
    try:
        with pytest.raises(Refused, match="newer"):
            await Ledger.open(database_url, seal=seal, application="test")
    finally:
        await connection.execute(f"update alembic_version set version_num = '{schema.HEAD}'")
        await connection.close()


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


def test_every_step_has_statements() -> None:
    for path in (MIGRATIONS / "sql").glob("*.sql"):
        assert all(statement.strip() for statement in statements(path)), path

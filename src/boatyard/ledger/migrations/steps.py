"""Steps of a migration: each is committed with a note that it is done, so a killed migration goes on after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from alembic import context, op
from sqlalchemy import text

_SQL = Path(__file__).with_name("sql")
_TABLE = """
create table if not exists migration_steps (
    revision text not null,
    name text not null,
    done timestamptz not null default clock_timestamp(),
    primary key (revision, name)
)
"""


def run(revision: str, names: Sequence[str]) -> None:
    """Runs sql/<revision>_<name>.sql for each name that is not done yet, one transaction each."""
    connection = op.get_bind()
    on_step = context.config.attributes.get("on_step")
    connection.exec_driver_sql(_TABLE)
    done = connection.execute(
        text("select name from migration_steps where revision = :revision"), {"revision": revision}
    )
    finished = set(done.scalars())
    for name in names:
        if name in finished:
            continue
        connection.exec_driver_sql("begin")
        if on_step is not None:
            on_step(name)
        for statement in statements(_SQL / f"{revision}_{name}.sql"):
            connection.exec_driver_sql(statement)
        connection.execute(
            text("insert into migration_steps (revision, name) values (:revision, :name)"),
            {"revision": revision, "name": name},
        )
        connection.exec_driver_sql("commit")


def statements(path: Path) -> list[str]:
    """The statements of a file, which are parted by lines of four dashes."""
    return path.read_text().split("\n----\n")

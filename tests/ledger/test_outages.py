"""What the ledger promises when PostgreSQL goes away: reads try again, commits say so, listeners come back."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from boatyard.ledger import connections, schema
from boatyard.ledger import ledger as ledger_module
from boatyard.ledger.changes import Insert
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Unavailable
from boatyard.model.generated.osac import Cluster
from tests.ledger.docs import NOW, cluster


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedPostgres]:
    """A server of this test's own, which it may stop."""
    data_dir = Path(tempfile.mkdtemp(prefix="by-"))
    own = EmbeddedPostgres(data_dir)
    await schema.migrate(await own.start())
    yield own
    await own.stop()
    shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
async def ledger(server: EmbeddedPostgres, seal: Seal) -> AsyncIterator[Ledger]:
    opened = await Ledger.open(server.url(), seal=seal, application="outage")
    yield opened
    await opened.close()


@pytest.fixture
async def shared_ledger(database_url: str, seal: Seal) -> AsyncIterator[Ledger]:
    """On the server that all tests share: connections may be cut, the server stays."""
    opened = await Ledger.open(database_url, seal=seal, application="outage")
    yield opened
    await opened.close()


async def cut(url: str, application: str = "outage") -> None:
    """Ends every connection of the ledger, as a restart would."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1",
        application,
    )
    await connection.close()


@pytest.mark.parametrize(
    "dropped",
    [
        pytest.param(asyncpg.ConnectionDoesNotExistError("gone"), id="gone"),
        pytest.param(asyncpg.InternalClientError("cannot switch to state 12"), id="half gone"),
    ],
)
async def test_a_read_on_a_dropped_connection_is_tried_once_more(
    ledger: Ledger,
    server: EmbeddedPostgres,
    monkeypatch: pytest.MonkeyPatch,
    dropped: Exception,
) -> None:
    await ledger.commit([Insert(cluster("a"))], now=NOW)
    plain, drops = ledger._connections._pool.fetch, [1]

    async def fetch(query: str, args: object) -> object:
        if drops:
            drops.pop()
            raise dropped
        return await plain(query, args)  # type: ignore[arg-type]

    monkeypatch.setattr(ledger._connections._pool, "fetch", fetch)
    assert await ledger.documents.get(Cluster, "a") == cluster("a")
    drops += [1, 1]
    with pytest.raises(Unavailable):
        await ledger.documents.get(Cluster, "a")

    monkeypatch.undo()
    await cut(server.url())
    assert await ledger.documents.get(Cluster, "a") == cluster("a")


async def test_a_commit_on_a_dropped_connection_is_unavailable_and_never_repeated(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def fetch(query: str, args: object) -> object:
        nonlocal tries
        tries += 1
        raise asyncpg.ConnectionDoesNotExistError("gone")

    monkeypatch.setattr(ledger._connections._pool, "fetch", fetch)
    with pytest.raises(Unavailable):
        await ledger.commit([Insert(cluster("a"))], now=NOW)

    assert tries == 1


async def test_a_deadlock_is_run_again_and_not_shown(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, deadlocks = ledger._connections._pool.fetch, [1, 1]

    async def fetch(query: str, args: object) -> object:
        if deadlocks:
            deadlocks.pop()
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        return await plain(query, args)  # type: ignore[arg-type]

    monkeypatch.setattr(ledger._connections._pool, "fetch", fetch)
    await ledger.commit([Insert(cluster("a"))], now=NOW)

    assert await ledger.documents.get(Cluster, "a") is not None


async def test_while_postgresql_is_away_all_is_unavailable_and_then_all_is_well(
    ledger: Ledger, server: EmbeddedPostgres
) -> None:
    await ledger.commit([Insert(cluster("a"))], now=NOW)
    await server.stop()

    for call in (
        ledger.documents.get(Cluster, "a"),
        ledger.commit([Insert(cluster("b"))], now=NOW),
        ledger.claims.claim("vlan", ["1"], "a", now=NOW),
        ledger.events.publish(),
    ):
        with pytest.raises(Unavailable):
            await call

    await server.start()
    await ledger.commit([Insert(cluster("b"))], now=NOW)
    assert set(await ledger.documents.get_many(Cluster, ["a", "b"])) == {"a", "b"}


async def test_nothing_acknowledged_is_lost_when_postgresql_is_killed_under_load(
    ledger: Ledger, server: EmbeddedPostgres
) -> None:
    acknowledged: list[str] = []
    unknown: list[str] = []
    enough = asyncio.Event()

    async def write(writer: int) -> None:
        for number in range(10_000):
            name = f"{writer}-{number}"
            try:
                await ledger.commit([Insert(cluster(name))], now=NOW)
            except Unavailable:
                unknown.append(name)
                return
            acknowledged.append(name)
            if len(acknowledged) == 200:
                enough.set()

    async with asyncio.TaskGroup() as writers:
        for writer in range(8):
            writers.create_task(write(writer))
        await enough.wait()
        os.kill(server.pid, signal.SIGQUIT)  # immediate: no checkpoint, like a crash
    await server.stop()
    await server.start()

    stored = set(await ledger.documents.get_many(Cluster, acknowledged + unknown))
    await ledger.events.publish()
    events = await ledger.events.list_after(0, 10_000)
    assert stored >= set(acknowledged)
    assert {event.id for event in events} == stored  # an event for each, and for nothing else
    assert [event.seq for event in events] == list(range(1, len(stored) + 1))


async def test_listening_goes_on_after_a_restart_of_postgresql(
    ledger: Ledger, server: EmbeddedPostgres
) -> None:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(ledger.run())
        async with ledger.publish_notifier.subscribe() as wake:
            assert await wake.wait(10)  # it listens
            await server.stop()
            await server.start()

            assert await wake.wait(10)  # it listens again, and told so
            while await wake.wait(0.3):
                pass
            await ledger.commit([Insert(cluster("a"))], now=NOW)
            assert await wake.wait(10)
            assert [event.id for event in await ledger.events.list_after(0, 10)] == ["a"]
        running.cancel()


class DroppedListener:
    """A listener's connection that drops at the moment at which it should begin to listen."""

    def __init__(
        self, connection: Any, drop: Callable[[Any], Awaitable[object]], drops: list[int]
    ) -> None:
        self._connection, self._drop, self._drops = connection, drop, drops

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def add_listener(self, channel: str, callback: Any) -> None:
        if self._drops:
            self._drops.pop()
            await self._drop(self._connection)
        await self._connection.add_listener(channel, callback)


async def drop_before(connection: Any) -> None:
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        await drop_during(connection)
    assert connection.is_closed()


async def drop_during(connection: Any) -> None:
    await connection.execute("select pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize(
    "drop",
    [
        pytest.param(drop_before, id="between connect and LISTEN"),
        pytest.param(drop_during, id="during LISTEN"),
    ],
)
async def test_a_connection_dropped_before_it_listens_does_not_end_the_ledger(
    shared_ledger: Ledger, monkeypatch: pytest.MonkeyPatch, drop: Callable[[Any], Awaitable[object]]
) -> None:
    drops = [1, 1]

    async def connect(url: str, application: str) -> DroppedListener:
        return DroppedListener(await connections.open_connection(url, application), drop, drops)

    monkeypatch.setattr(ledger_module, "open_connection", connect)
    await rings_again(shared_ledger)

    assert drops == []


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(asyncpg.InternalClientError("cannot switch to state 12"), id="half gone"),
        pytest.param(asyncpg.ConnectionDoesNotExistError("closed in the middle"), id="gone"),
        pytest.param(asyncpg.CannotConnectNowError("is starting up"), id="starting"),
        pytest.param(asyncpg.PostgresIOError("could not read block 0"), id="disk"),
        pytest.param(asyncpg.InvalidPasswordError("a new password"), id="password"),
        pytest.param(asyncpg.InvalidCatalogNameError("no such database"), id="database"),
        pytest.param(ConnectionRefusedError(), id="nobody there"),
        pytest.param(TimeoutError(), id="no answer"),
    ],
)
async def test_a_connection_that_cannot_be_opened_does_not_end_the_ledger(
    shared_ledger: Ledger, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    plain, failures = asyncpg.connect, [failure] * 3
    await shared_ledger.close()  # so that statements, too, must open new connections
    shared_ledger._connections._pool._closed = False

    async def connect(*args: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return await plain(*args, **options)

    monkeypatch.setattr(asyncpg, "connect", connect)
    with pytest.raises(Unavailable):
        await shared_ledger.events.publish()
    await rings_again(shared_ledger)

    assert failures == []


async def test_a_connection_dropped_while_it_listens_is_replaced(
    shared_ledger: Ledger, database_url: str
) -> None:
    async def cut_listener() -> None:
        await cut(database_url, "outage listener")

    await rings_again(shared_ledger, then=cut_listener)


async def rings_again(ledger: Ledger, then: Callable[[], Awaitable[None]] | None = None) -> None:
    """Runs the ledger; fails unless it listens, listens again after `then`, and has not ended."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(ledger.run())
        async with ledger.publish_notifier.subscribe() as wake:
            assert await wake.wait(20)
            if then is not None:
                await then()
                assert await wake.wait(20)
            while await wake.wait(0.3):
                pass
            await ledger.commit([Insert(cluster("a"))], now=NOW)
            assert await wake.wait(20)
        assert not running.done()
        running.cancel()


async def test_the_clock_is_the_databases_and_never_runs_backwards(
    ledger: Ledger, server: EmbeddedPostgres
) -> None:
    connection = await asyncpg.connect(server.url())
    database = await connection.fetchval("select clock_timestamp()")
    await connection.close()

    assert abs((ledger.clock.now() - database).total_seconds()) < 5
    before = ledger.clock.now()
    ledger.clock.set(NOW)  # a step back by months
    assert ledger.clock.now() >= before

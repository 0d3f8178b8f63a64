"""A watcher loses nothing, however far it falls behind; on a log in memory."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import pytest

from boatyard.api import watch
from boatyard.api.watch import QUEUE_SIZE, EventWatchers, Watcher
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.notifications import Notifier
from boatyard.ledger.records import EventRow
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Unavailable

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Log:
    """Events as the ledger keeps them: numbered from 1, read in pages."""

    seal = Seal.from_bytes(bytes(32))

    def __init__(self) -> None:
        self.rows: list[EventRow] = []
        self.publish_notifier = Notifier()
        self.errors: list[Exception] = []  # raised by the next reads, one each

    def append(self, count: int, tenants: Sequence[str] = ("acme",)) -> None:
        for tenant in itertools.islice(itertools.cycle(tenants), count):
            seq = len(self.rows) + 1
            self.rows.append(
                EventRow(
                    seq=seq,
                    kind="Cluster",
                    id=f"c{seq}",
                    tenant=tenant,
                    type=1,
                    at=NOW,
                    reason="",
                    message="",
                    doc=None,
                )
            )

    @property
    def events(self) -> Log:
        return self

    async def publish(self) -> int:
        return 0

    async def last_seq(self) -> int:
        return len(self.rows)

    async def list_after(
        self, seq: int, limit: int, *, tenants: Sequence[str] | None = None
    ) -> list[EventRow]:
        if self.errors:
            raise self.errors.pop()
        rows = [row for row in self.rows[seq:] if tenants is None or row.tenant in tenants]
        return rows[:limit]


async def live_watcher(
    log: Log, tenants: Sequence[str] | None = None
) -> tuple[EventWatchers, Watcher]:
    """A watcher that has read all there is and waits at its queue."""
    watches = EventWatchers(cast(Ledger, log))
    watcher = await watches.add_watcher(None, tenants)
    assert await watcher.next_entries(timeout=0) == []
    return watches, watcher


async def hand_out(watches: EventWatchers) -> None:
    """The reader of the log gives every watcher what is new, as `Watches.run` does."""
    while await watches._read_page():
        pass


async def drain(watcher: Watcher) -> list[int]:
    numbers: list[int] = []
    while entries := await watcher.next_entries(timeout=0):
        numbers += [entry.row.seq for entry in entries]
    return numbers


@pytest.mark.parametrize("batch", [1, 7, 100, QUEUE_SIZE, QUEUE_SIZE + 1, 600])
async def test_a_watcher_whose_queue_overflows_reads_the_log_and_loses_nothing(batch: int) -> None:
    log = Log()
    watches, watcher = await live_watcher(log)

    while len(log.rows) < 600:  # nobody reads the queue meanwhile; it has 256 places
        log.append(min(batch, 600 - len(log.rows)))
        await hand_out(watches)

    assert await drain(watcher) == list(range(1, 601))
    log.append(3)
    await hand_out(watches)
    assert await drain(watcher) == [601, 602, 603], "it is back at its queue"


@pytest.mark.parametrize("batch", [100, 500])
async def test_a_watcher_that_overflows_while_it_catches_up_loses_and_repeats_nothing(
    batch: int,
) -> None:
    log = Log()
    watches, watcher = await live_watcher(log)
    numbers: list[int] = []

    for _ in range(8):
        log.append(batch)
        await hand_out(watches)
        log.append(batch)
        await hand_out(watches)
        numbers += [entry.row.seq for entry in await watcher.next_entries(timeout=0)]

    assert numbers + await drain(watcher) == list(range(1, 16 * batch + 1))


async def test_a_tenants_watcher_that_overflows_reads_its_own_and_no_others() -> None:
    log = Log()
    watches, watcher = await live_watcher(log, ("acme", "shared"))

    for _ in range(6):
        log.append(200, ("acme", "globex", "shared", "globex"))
        await hand_out(watches)

    assert await drain(watcher) == list(range(1, 1201, 2))


@pytest.mark.parametrize("error", [Unavailable("the database is away"), RuntimeError("a bug")])
async def test_the_reader_of_the_log_goes_on_after_an_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_RETRY_SECONDS", 0.0)
    log = Log()
    watches, watcher = await live_watcher(log)
    log.append(2)
    log.errors = [error, error]
    reader = asyncio.create_task(watches.run())
    try:
        entries = await watcher.next_entries(timeout=5)
    finally:
        reader.cancel()
        await asyncio.wait([reader])

    assert [entry.row.seq for entry in entries] == [1, 2]
    assert log.errors == [], "both errors were met"

"""What the ledger promises about events: gap-free, in order per object, none lost, one wake per batch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import msgspec
import pytest

from boatyard.ledger.changes import Archive, Change, Due, EventNote, Insert, Replace, Signal
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import EventRow
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Conflict, Refused
from boatyard.model.generated.osac import Cluster
from tests.ledger.docs import NOW, at, cluster, read_at

CREATED, UPDATED, DELETED, SIGNALED = 1, 2, 3, 4


@asynccontextmanager
async def running(*ledgers: Ledger) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(ledger.run()) for ledger in ledgers]
        yield
        for task in started:
            task.cancel()


async def test_every_change_makes_one_event_with_the_document_and_the_note(ledger: Ledger) -> None:
    doc = cluster("a")
    await ledger.commit([Insert(doc, EventNote("Ordered", "by ann"))], now=NOW)
    await ledger.commit([Replace(doc)], now=at(1))
    await ledger.commit([Signal("Cluster", "a", "acme", EventNote("Poked", "look"))], now=at(2))
    await ledger.commit([Archive(read_at(doc, 1)), Due("Cluster", "a", NOW)], now=at(3))

    assert await ledger.events.list_after(0, 10) == []  # nothing is seen before it is numbered
    assert await ledger.events.publish() == 4
    events = await ledger.events.list_after(0, 10)

    assert [(event.seq, event.type, event.reason, event.at) for event in events] == [
        (1, CREATED, "Ordered", at(0)),
        (2, UPDATED, "", at(1)),
        (3, SIGNALED, "Poked", at(2)),
        (4, DELETED, "", at(3)),
    ]
    assert [decoded(event) for event in events] == [doc, read_at(doc, 1), None, read_at(doc, 1)]


def decoded(event: EventRow) -> Cluster | None:
    return None if event.doc is None else msgspec.json.decode(event.doc, type=Cluster)


async def test_events_are_read_by_tenant_and_kind_and_page_by_page(ledger: Ledger) -> None:
    await ledger.commit([Insert(cluster("a")), Insert(cluster("b", tenant="other"))], now=NOW)
    await ledger.commit([Insert(cluster("c"))], now=NOW)
    await ledger.events.publish()

    assert [e.id for e in await ledger.events.list_after(0, 10, tenants=["acme"])] == ["a", "c"]
    assert [e.id for e in await ledger.events.list_after(0, 10, kinds=["Hub"])] == []
    assert [e.id for e in await ledger.events.list_after(1, 1)] == ["b"]
    assert [
        e.id for e in await ledger.events.list_history([("Cluster", "a"), ("Cluster", "c")], 10)
    ] == [
        "a",
        "c",
    ]


async def test_a_rolled_back_commit_leaves_no_event_and_no_gap(ledger: Ledger) -> None:
    await ledger.commit([Insert(cluster("a"))], now=NOW)
    with pytest.raises(Conflict):
        await ledger.commit([Insert(cluster("x")), Replace(read_at(cluster("a"), 7))], now=NOW)
    await ledger.commit([Insert(cluster("b"))], now=NOW)
    await ledger.events.publish()

    assert [(event.seq, event.id) for event in await ledger.events.list_after(0, 10)] == [
        (1, "a"),
        (2, "b"),
    ]


async def test_writers_and_two_publishers_at_once_leave_no_gap_and_keep_each_objects_order(
    ledger: Ledger, database_url: str, seal: Seal
) -> None:
    second = await Ledger.open(database_url, seal=seal, application="second")

    async def write(own: Ledger, name: str) -> None:
        doc = cluster(name)
        await own.commit([Insert(doc)], now=NOW)
        for version in range(10):
            await own.commit([Replace(read_at(doc, version))], now=NOW)

    async def publish(own: Ledger) -> None:
        while True:
            await own.events.publish()

    publishers = [asyncio.create_task(publish(own)) for own in (ledger, second, ledger)]
    names = [(own, f"{own is second}-{n}") for own in (ledger, second) for n in range(10)]
    try:
        await asyncio.gather(*(write(own, name) for own, name in names))
    finally:
        for task in publishers:
            task.cancel()
        await asyncio.wait(publishers)
        await second.close()
    await ledger.events.publish()

    events = await ledger.events.list_after(0, 1000)
    assert [event.seq for event in events] == list(range(1, 221))
    versions: dict[str, list[int]] = {}
    for event in events:
        doc = decoded(event)
        assert doc is not None
        versions.setdefault(doc.id, []).append(doc.metadata.version)
    assert set(map(tuple, versions.values())) == {tuple(range(11))}


async def test_what_a_killed_publisher_left_is_numbered_by_the_next(
    ledger: Ledger, database_url: str
) -> None:
    await ledger.commit([Insert(cluster("a")), Insert(cluster("b"))], now=NOW)
    doomed = await asyncpg.connect(database_url)
    await doomed.execute("begin")
    assert await doomed.fetchval("select boatyard_publish(100, false)") == 2
    waiting = asyncio.create_task(ledger.events.publish())
    doomed.terminate()  # before its commit: like a kill

    assert await waiting == 2
    assert [event.seq for event in await ledger.events.list_after(0, 10)] == [1, 2]


async def test_a_large_backlog_is_published_whole(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boatyard.ledger.events.BATCH_SIZE", 10)
    await ledger.commit([Insert(cluster(f"c{number}")) for number in range(35)], now=NOW)

    assert await ledger.events.publish() == 35
    assert await ledger.events.publish() == 0
    assert (await ledger.events.first_seq(), await ledger.events.last_seq()) == (1, 35)


# --- trimming --------------------------------------------------------------------------------------


async def test_old_events_are_forgotten_and_whoever_asks_for_them_is_told_where_to_begin(
    ledger: Ledger, seal: Seal
) -> None:
    for number in range(5):
        await ledger.commit([Insert(cluster(f"c{number}"))], now=at(number))
    await ledger.events.publish()

    assert await ledger.events.trim(at(3)) == 3
    assert (await ledger.events.first_seq(), await ledger.events.last_seq()) == (4, 5)
    with pytest.raises(Refused, match=seal.event_id(3)):
        await ledger.events.list_after(2, 10)
    assert [event.seq for event in await ledger.events.list_after(3, 10)] == [4, 5]

    assert await ledger.events.trim(at(99)) == 2
    await ledger.commit([Insert(cluster("new"))], now=at(100))
    await ledger.events.publish()
    assert [event.seq for event in await ledger.events.list_after(5, 10)] == [6]


async def test_only_a_prefix_of_the_log_is_ever_forgotten(ledger: Ledger) -> None:
    for number, moment in enumerate([0, 50, 1]):
        await ledger.commit([Insert(cluster(f"c{number}"))], now=at(moment))
    await ledger.events.publish()

    assert await ledger.events.trim(at(10)) == 1
    assert [event.seq for event in await ledger.events.list_after(1, 10)] == [2, 3]


async def test_an_event_that_is_not_there_yet_cannot_be_resumed_after(ledger: Ledger) -> None:
    with pytest.raises(Refused):
        await ledger.events.list_after(1, 10)


# --- waking ----------------------------------------------------------------------------------------


async def test_watchers_in_other_processes_are_woken_once_per_batch(
    ledger: Ledger, database_url: str, seal: Seal
) -> None:
    other = await Ledger.open(database_url, seal=seal, application="other")
    rings = 0
    async with running(other):
        await ledger.events.publish()
        async with (
            other.publish_notifier.subscribe() as wake,
            other.change_notifier.subscribe() as worker,
        ):
            await listening(ledger, wake)
            rung = wake.notify

            def ring() -> None:
                nonlocal rings
                rings += 1
                rung()

            wake.notify = ring  # type: ignore[method-assign]
            changes: list[Change] = [Insert(cluster(f"c{number}")) for number in range(50)]
            await ledger.commit(changes, now=NOW)
            await ledger.events.publish()

            assert await wake.wait(5)
            assert await worker.wait(5)
            assert rings == 1
    await other.close()


async def listening(ledger: Ledger, wake: object) -> None:
    """Returns once the other side hears us."""
    async with asyncio.timeout(10):
        while True:
            await ledger.events.publish(poke=True)
            if await wake.wait(0.2):  # type: ignore[attr-defined]
                break
        while await wake.wait(0.2):  # type: ignore[attr-defined]
            pass


async def test_a_commit_is_published_and_heard_in_another_process_within_moments(
    ledger: Ledger, database_url: str, seal: Seal
) -> None:
    other = await Ledger.open(database_url, seal=seal, application="other")
    async with running(ledger, other), other.publish_notifier.subscribe() as wake:
        await listening(ledger, wake)

        await ledger.commit([Insert(cluster("a"))], now=NOW)

        assert await wake.wait(0.9)  # sooner than the poll
        assert [event.id for event in await other.events.list_after(0, 10)] == ["a"]
    await other.close()


async def test_a_poke_without_an_event_wakes_workers_elsewhere(
    ledger: Ledger, database_url: str, seal: Seal
) -> None:
    other = await Ledger.open(database_url, seal=seal, application="other")
    async with running(ledger, other), other.change_notifier.subscribe() as wake:
        await listening(ledger, wake)

        await ledger.commit([Due("Cluster", "a", NOW)], now=NOW)

        assert await wake.wait(5)
    await other.close()


async def test_events_left_by_a_process_that_died_are_published_by_those_who_live(
    ledger: Ledger, database_url: str, seal: Seal
) -> None:
    other = await Ledger.open(database_url, seal=seal, application="other")
    await ledger.commit([Insert(cluster("a"))], now=NOW)  # and never publishes
    async with running(other), other.publish_notifier.subscribe() as wake:
        async with asyncio.timeout(10):
            while not await other.events.list_after(0, 10):
                await wake.wait(2)
    await other.close()


# --- ids -------------------------------------------------------------------------------------------


def test_event_ids_are_opaque_and_ours_alone(seal: Seal) -> None:
    ids = [seal.event_id(number) for number in range(1000)]

    assert [seal.event_seq(text) for text in ids] == list(range(1000))
    assert len({text[:8] for text in ids}) == 1000  # neighbours have nothing in common
    for foreign in ("", "7", "zz", ids[1][:-1], ids[1] + "00", ids[1][::-1], "00" * 16):
        with pytest.raises(Refused):
            seal.event_seq(foreign)
    with pytest.raises(Refused):
        Seal.from_bytes(b"x" * 32).event_seq(ids[1])


def test_a_place_in_the_log_has_another_id_each_time(seal: Seal) -> None:
    ids = [seal.resume_id(7) for _ in range(10)]

    assert {seal.event_seq(text) for text in ids} == {7}
    assert len({*ids, seal.event_id(7)}) == 11

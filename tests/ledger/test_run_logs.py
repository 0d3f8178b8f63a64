"""What the ledger promises about stories of runs: each line once, in order, bounded, forgotten with the order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from boatyard.ledger.changes import Archive, Insert
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.run_logs import LastLogLine, RunLogTable, StoredLogLine
from boatyard.model.generated.boatyard import Order
from boatyard.model.generated.osac import Metadata
from tests.ledger.docs import NOW, at, read_at

ORDER, RUN = "o-1", "post_install"


def line(
    number: int, text: str = "", *, start: str = "a", run: str = RUN, **more: str
) -> StoredLogLine:
    return StoredLogLine(
        run=run,
        part=more.pop("part", "post_install"),
        attempt=1,
        start=start,
        number=number,
        at=at(number),
        kind="ok",
        task=f"task {number}",
        text=text or f"line {number}",
        **more,  # type: ignore[arg-type]
    )


def lines(first: int, last: int, **more: str) -> list[StoredLogLine]:
    return [line(number, **more) for number in range(first, last + 1)]


def texts(found: Sequence[StoredLogLine]) -> list[str]:
    return [one.text for one in found]


def bounded(ledger: Ledger, **bounds: int) -> RunLogTable:
    return RunLogTable(ledger._connections, **bounds)


async def test_lines_come_back_as_they_were_kept(ledger: Ledger) -> None:
    kept = [line(1), replace(line(2), shown_text="line on a host", text="line on r1-07")]
    assert await ledger.run_logs.store_lines(ORDER, RUN, kept, NOW) == 2

    told = await ledger.run_logs.read_lines(ORDER)

    assert told.lines == (replace(kept[0], seq=1), replace(kept[1], seq=2))
    assert (told.missing, told.last_seq) == (0, 2)


async def test_a_line_that_is_known_is_not_kept_twice(ledger: Ledger) -> None:
    """Killed between keeping and what comes after it, a worker reads the same lines again."""
    await ledger.run_logs.store_lines(ORDER, RUN, lines(1, 3), NOW)
    assert await ledger.run_logs.store_lines(ORDER, RUN, lines(2, 5), at(1)) == 2
    assert await ledger.run_logs.store_lines(ORDER, RUN, lines(1, 5), at(2)) == 0

    told = await ledger.run_logs.read_lines(ORDER)

    assert texts(told.lines) == [f"line {number}" for number in range(1, 6)]
    assert [one.seq for one in told.lines] == [1, 2, 3, 4, 5]


async def test_several_workers_at_once_lose_and_double_nothing(ledger: Ledger) -> None:
    await asyncio.gather(
        *(ledger.run_logs.store_lines(ORDER, RUN, lines(1, 10 + late), NOW) for late in range(8))
    )

    told = await ledger.run_logs.read_lines(ORDER)

    assert texts(told.lines) == [f"line {number}" for number in range(1, 18)]
    assert [one.seq for one in told.lines] == list(range(1, 18))


async def test_numbers_that_begin_anew_are_another_story(ledger: Ledger) -> None:
    await ledger.run_logs.store_lines(ORDER, RUN, lines(1, 2), NOW)
    again = [line(1, "anew", start="b")]
    assert await ledger.run_logs.store_lines(ORDER, RUN, again, NOW) == 1

    assert texts((await ledger.run_logs.read_lines(ORDER)).lines) == ["line 1", "line 2", "anew"]
    assert await ledger.run_logs.read_last_line(ORDER, RUN) == LastLogLine("b", 1, "ok")
    assert await ledger.run_logs.read_last_line(ORDER, "role") is None


async def test_the_same_numbers_of_other_runs_and_orders_are_their_own(ledger: Ledger) -> None:
    await ledger.run_logs.store_lines(ORDER, RUN, [line(1, "mine")], NOW)
    await ledger.run_logs.store_lines(ORDER, "role", [line(1, "the role's", run="role")], NOW)
    await ledger.run_logs.store_lines("o-2", RUN, [line(1, "theirs")], NOW)

    assert texts((await ledger.run_logs.read_lines(ORDER)).lines) == ["mine", "the role's"]
    assert texts((await ledger.run_logs.read_lines("o-2")).lines) == ["theirs"]
    assert (await ledger.run_logs.read_lines("o-3")).lines == ()


async def test_the_newest_lines_are_kept_and_the_reader_is_told_what_is_missing(
    ledger: Ledger,
) -> None:
    stories = bounded(ledger, most_lines=5)
    for number in range(1, 13):
        await stories.store_lines(ORDER, RUN, [line(number)], NOW)

    told = await stories.read_lines(ORDER)
    assert texts(told.lines) == [f"line {number}" for number in range(8, 13)]
    assert (told.missing, told.last_seq) == (7, 12)
    told = await stories.read_lines(ORDER, after=5)
    assert (told.missing, told.lines[0].seq) == (2, 8)
    assert (await stories.read_lines(ORDER, after=7)).missing == 0


async def test_a_batch_larger_than_the_bound_keeps_its_end(ledger: Ledger) -> None:
    stories = bounded(ledger, most_lines=5)
    await stories.store_lines(ORDER, RUN, lines(1, 100), NOW)

    told = await stories.read_lines(ORDER)
    assert (len(told.lines), told.lines[-1].text, told.missing) == (5, "line 100", 95)


async def test_bytes_are_bounded_too(ledger: Ledger) -> None:
    stories = bounded(ledger, most_bytes=10_000)
    for number in range(1, 51):
        await stories.store_lines(ORDER, RUN, [line(number, "ü" * 500)], NOW)

    told = await stories.read_lines(ORDER)
    assert len(told.lines) == 9
    assert told.missing == 41
    rows = await ledger.read("x", "select bytes from stories")
    sums = await ledger.read("x", "select sum(bytes) from story_lines")
    assert rows[0][0] == sums[0][0] <= 10_000


@pytest.mark.parametrize(
    "asked, expected",
    [
        pytest.param("", ["a", "b", "c"], id="all"),
        pytest.param("scale/2", ["a"], id="by its key"),
        pytest.param("scale", ["a", "b"], id="by the beginning of its key"),
        pytest.param("validate", ["c"], id="by the role's part"),
        pytest.param("nothing", [], id="nothing"),
        pytest.param("scale/2' or true --", [], id="text is no SQL"),
    ],
)
async def test_runs_are_chosen_by_name(ledger: Ledger, asked: str, expected: list[str]) -> None:
    for run, part, text in (
        ("scale/2", "scale", "a"),
        ("scale/3", "scale", "b"),
        ("acceptance/3", "validate", "c"),
    ):
        await ledger.run_logs.store_lines(ORDER, run, [line(1, text, run=run, part=part)], NOW)

    assert texts((await ledger.run_logs.read_lines(ORDER, run=asked)).lines) == expected


async def test_pages_follow_each_other(ledger: Ledger) -> None:
    await ledger.run_logs.store_lines(ORDER, RUN, lines(1, 7), NOW)
    seen: list[int] = []
    while page := (
        await ledger.run_logs.read_lines(ORDER, after=seen[-1] if seen else 0, limit=3)
    ).lines:
        seen += [one.seq for one in page]
    assert seen == [1, 2, 3, 4, 5, 6, 7]


async def test_a_story_stays_with_its_order_and_is_forgotten_some_time_after_it(
    ledger: Ledger,
) -> None:
    order = Order(id=ORDER, metadata=Metadata(name=ORDER, tenant="acme", creation_timestamp=NOW))
    await ledger.commit([Insert(order)], now=NOW)
    await ledger.run_logs.store_lines(ORDER, RUN, lines(1, 2), NOW)
    assert await ledger.run_logs.delete_old(at(1000)) == 0, "the order is there"

    await ledger.commit([Archive(read_at(order, 0))], now=at(2000))
    assert await ledger.run_logs.delete_old(at(2000)) == 0, "it has left just now"
    assert len((await ledger.run_logs.read_lines(ORDER)).lines) == 2

    assert await ledger.run_logs.delete_old(at(2001)) == 1
    assert (await ledger.run_logs.read_lines(ORDER)).lines == ()
    rows = await ledger.read("x", "select count(*) from story_lines")
    assert rows[0][0] == 0


async def test_what_is_told_late_of_a_forgotten_order_goes_too(ledger: Ledger) -> None:
    await ledger.run_logs.store_lines(ORDER, RUN, lines(1, 1), at(10))
    assert await ledger.run_logs.delete_old(at(10)) == 0
    assert await ledger.run_logs.delete_old(at(11)) == 1

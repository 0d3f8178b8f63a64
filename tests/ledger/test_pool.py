"""What the pool promises: one statement per loan, never more than its size, no answer of another's statement."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from boatyard.ledger.pool import Pool


class Fake:
    """A connection that answers when it is let."""

    def __init__(self) -> None:
        self.closed = False
        self.answer: asyncio.Future[list[Any]] | None = None

    async def fetch(self, query: str, *args: Any) -> list[Any]:
        if query == "fail":
            raise asyncpg.UniqueViolationError("taken")
        if query == "wait":
            self.answer = asyncio.get_running_loop().create_future()
            return await self.answer
        return [query]

    def is_closed(self) -> bool:
        return self.closed

    def terminate(self) -> None:
        self.closed = True

    async def close(self) -> None:
        self.closed = True


class Opened(list[Fake]):
    """Every connection that was opened."""

    async def open_one(self) -> Any:
        self.append(Fake())
        return self[-1]

    def pool(self, *, idle: float = 300.0) -> Pool:
        return Pool(self.open_one, size=2, wait_seconds=0.01, idle_seconds=idle)


@pytest.fixture
def opened() -> Opened:
    return Opened()


async def test_one_after_the_other_is_one_connection(opened: Opened) -> None:
    pool = opened.pool()
    assert [await pool.fetch("a", ()), await pool.fetch("b", ())] == [["a"], ["b"]]
    assert len(opened) == 1


async def test_a_refused_statement_leaves_the_connection_in_use(opened: Opened) -> None:
    pool = opened.pool()
    with pytest.raises(asyncpg.UniqueViolationError):
        await pool.fetch("fail", ())
    await pool.fetch("a", ())
    assert len(opened) == 1


async def test_a_connection_left_in_the_middle_is_not_lent_again(opened: Opened) -> None:
    pool = opened.pool()
    waiting = asyncio.create_task(pool.fetch("wait", ()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert await pool.fetch("a", ()) == ["a"]
    assert [fake.closed for fake in opened] == [True, False]


async def test_no_more_are_opened_than_its_size(opened: Opened) -> None:
    pool = opened.pool()
    waiting = [asyncio.create_task(pool.fetch("wait", ())) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await pool.fetch("a", ())
    for fake in opened:
        assert fake.answer is not None
        fake.answer.set_result([])
    await asyncio.gather(*waiting)
    assert len(opened) == 2


async def test_a_connection_that_was_lost_is_replaced(opened: Opened) -> None:
    pool = opened.pool()
    await pool.fetch("a", ())
    opened[0].terminate()
    assert await pool.fetch("a", ()) == ["a"]
    assert len(opened) == 2


async def test_what_is_idle_too_long_is_closed(opened: Opened) -> None:
    pool = opened.pool(idle=-1.0)
    await pool.fetch("a", ())
    assert opened[0].closed


async def test_a_closed_pool_lends_nothing(opened: Opened) -> None:
    pool = opened.pool()
    await pool.fetch("a", ())
    await pool.close()
    assert opened[0].closed
    with pytest.raises(asyncpg.InterfaceError):
        await pool.fetch("a", ())


async def test_a_place_comes_back_whatever_became_of_the_statement(opened: Opened) -> None:
    pool = Pool(opened.open_one, size=2, wait_seconds=0.2, idle_seconds=60)

    for _ in range(3):
        assert await pool.fetch("a", ()) == ["a"]
        with pytest.raises(asyncpg.UniqueViolationError):
            await pool.fetch("fail", ())

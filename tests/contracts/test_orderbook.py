"""The order book's promises, from the port's docstrings alone, for every driver by name."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest

from boatyard.model.errors import Conflict, LeaseLost, Precondition
from boatyard.model.generated.boatyard import (
    Item,
    ItemState,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
    OrderPhase,
    OrderStatus,
)
from boatyard.model.generated.osac import Metadata
from tests.contracts.order_books import LATER, NOW, SPEC, OrderBookHarness

POOL = "hub-1/hosts"
PORT = "orderbook"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_order_that_was_put_is_there_with_its_secrets_readable(
    harness: OrderBookHarness,
) -> None:
    await harness.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    order = await harness.book.get("o-1")
    assert order is not None
    assert order.spec == SPEC
    assert (order.id, order.metadata.tenant) == ("o-1", "acme")
    assert order.metadata.deletion_timestamp is None
    assert await harness.due_orders() == {"o-1"}


async def test_an_unknown_order_is_none(harness: OrderBookHarness) -> None:
    assert await harness.book.get("nobody") is None


async def test_the_same_spec_again_changes_nothing(harness: OrderBookHarness) -> None:
    await harness.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    before = await harness.book.get("o-1")
    await harness.book.put("o-1", tenant="acme", spec=SPEC, now=LATER)
    assert await harness.book.get("o-1") == before


async def test_another_spec_replaces_the_wish_and_keeps_the_status(
    harness: OrderBookHarness,
) -> None:
    await harness.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    status = OrderStatus(phase=OrderPhase.READY, observed_generation=1)
    await harness.set_status("o-1", status)
    wish = msgspec.structs.replace(SPEC, generation=2, version="4.18.3")
    await harness.book.put("o-1", tenant="acme", spec=wish, now=LATER)
    order = await harness.book.get("o-1")
    assert order is not None
    assert (order.spec, order.status) == (wish, status)
    assert await harness.due_orders() == {"o-1"}


async def test_two_that_put_at_once_do_not_both_win_unnoticed(harness: OrderBookHarness) -> None:
    await harness.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    wishes = [msgspec.structs.replace(SPEC, generation=number) for number in range(2, 12)]
    answers = await asyncio.gather(
        *(harness.book.put("o-1", tenant="acme", spec=wish, now=NOW) for wish in wishes),
        return_exceptions=True,
    )
    assert {type(answer) for answer in answers} <= {type(None), Conflict}
    order = await harness.book.get("o-1")
    assert order is not None
    assert order.spec in [w for w, answer in zip(wishes, answers, strict=True) if answer is None]


async def test_a_deletion_is_asked_for_once_with_its_bound(harness: OrderBookHarness) -> None:
    await harness.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    await harness.book.request_delete("o-1", delete_by=LATER, now=NOW)
    first = await harness.book.get("o-1")
    assert first is not None
    assert (first.metadata.deletion_timestamp, first.spec.delete_by) == (NOW, LATER)
    await harness.book.request_delete("o-1", delete_by=LATER + timedelta(hours=1), now=LATER)
    assert await harness.book.get("o-1") == first


async def test_a_deletion_of_nothing_changes_nothing(harness: OrderBookHarness) -> None:
    await harness.book.request_delete("nobody", delete_by=LATER, now=NOW)
    assert await harness.book.get("nobody") is None


async def test_an_order_that_is_being_deleted_is_left_alone_by_put(
    harness: OrderBookHarness,
) -> None:
    await harness.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    await harness.book.request_delete("o-1", delete_by=LATER, now=NOW)
    before = await harness.book.get("o-1")
    wish = msgspec.structs.replace(SPEC, generation=2)
    await harness.book.put("o-1", tenant="acme", spec=wish, now=LATER)
    assert await harness.book.get("o-1") == before


async def test_a_finished_order_is_forgotten_and_that_may_be_asked_twice(
    harness: OrderBookHarness,
) -> None:
    await harness.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    await harness.book.request_delete("o-1", delete_by=LATER, now=NOW)
    with pytest.raises(Precondition):
        await harness.book.forget("o-1", now=NOW)
    await harness.set_status("o-1", OrderStatus(phase=OrderPhase.DELETED))
    await harness.book.forget("o-1", now=LATER)
    assert await harness.book.get("o-1") is None
    await harness.book.forget("o-1", now=LATER)


async def test_a_claim_takes_the_first_free_candidate(harness: OrderBookHarness) -> None:
    claim = harness.book.claim
    assert await claim(POOL, ["a", "b"], "o-1/host/0", now=NOW) == "a"
    assert await claim(POOL, ["a", "b"], "o-1/host/1", now=NOW) == "b"
    assert await claim(POOL, ["a", "b"], "o-2/host/0", now=NOW) is None
    assert await claim(POOL, [], "o-2/host/0", now=NOW) is None


async def test_an_owner_holds_one_of_a_pool_whatever_it_asks_for(harness: OrderBookHarness) -> None:
    claim = harness.book.claim
    assert await claim(POOL, ["a"], "o-1/host/0", now=NOW) == "a"
    assert await claim(POOL, ["b"], "o-1/host/0", now=NOW) == "a"
    assert await claim(POOL, [], "o-1/host/0", now=NOW) == "a"


async def test_pools_do_not_know_each_other(harness: OrderBookHarness) -> None:
    claim = harness.book.claim
    assert await claim("hub-1/hosts", ["a"], "o-1/host/0", now=NOW) == "a"
    assert await claim("hub-2/hosts", ["a"], "o-2/host/0", now=NOW) == "a"


async def test_what_many_ask_for_at_once_is_handed_out_once(harness: OrderBookHarness) -> None:
    free = [f"host-{number}" for number in range(5)]
    given = await asyncio.gather(
        *(harness.book.claim(POOL, free, f"o-{n}/host/0", now=NOW) for n in range(12))
    )
    taken = [one for one in given if one is not None]
    assert sorted(taken) == free
    assert given.count(None) == 7


async def test_what_is_given_back_can_be_claimed_again(harness: OrderBookHarness) -> None:
    await harness.book.claim(POOL, ["a"], "o-1/host/0", now=NOW)
    await harness.book.claim("hub-1/vlans", ["7"], "o-1/host/0", now=NOW)
    await harness.book.unclaim("o-1/host/0", now=NOW)
    assert await harness.book.claim(POOL, ["a"], "o-2/host/0", now=NOW) == "a"
    assert await harness.book.claim("hub-1/vlans", ["7"], "o-2/host/0", now=NOW) == "7"


async def test_giving_back_touches_nobody_elses(harness: OrderBookHarness) -> None:
    await harness.book.claim(POOL, ["a"], "o-1/host/1", now=NOW)
    await harness.book.claim(POOL, ["b"], "o-1/host/10", now=NOW)
    await harness.book.unclaim("o-1/host/1", now=NOW)
    assert await harness.book.claim(POOL, [], "o-1/host/10", now=NOW) == "b"
    await harness.book.unclaim("nobody", now=NOW)


async def test_a_book_of_a_lost_lease_writes_nothing(harness: OrderBookHarness) -> None:
    stale = await harness.stale_book()
    with pytest.raises(LeaseLost):
        await stale.claim(POOL, ["a"], "o-1/host/0", now=NOW)
    with pytest.raises(LeaseLost):
        await stale.put("o-9", tenant="acme", spec=SPEC, now=NOW)
    with pytest.raises(LeaseLost):
        await stale.unclaim("o-1", now=NOW)
    assert await harness.book.get("o-9") is None
    assert await harness.book.claim(POOL, ["a"], "o-2/host/0", now=NOW) == "a"


async def test_what_one_owner_asks_for_at_once_is_one_thing(harness: OrderBookHarness) -> None:
    free = [f"host-{number}" for number in range(8)]
    given = await asyncio.gather(
        *(
            harness.book.claim(POOL, [*free[n:], *free[:n]], "o-1/host/0", now=NOW)
            for n in range(len(free))
        )
    )
    assert len(set(given)) == 1
    assert given[0] is not None
    for number in range(7):
        other = await harness.book.claim(POOL, free, f"o-2/host/{number}", now=NOW)
        assert other not in (None, given[0]), "the others were given back"


async def test_what_is_left_is_there_until_it_is_released(harness: OrderBookHarness) -> None:
    assert await harness.book.get_leftover("o-1") is None
    item = Item(key="host/compute-0", kind="host", state=ItemState.LEAVING)
    leftover = Leftover(
        id="o-1",
        metadata=Metadata(name="o-1", tenant="acme", creator="system", creation_timestamp=NOW),
        spec=LeftoverSpec(order="o-1", cluster_name="web", hub="hub-1"),
        status=LeftoverStatus(items=(item,), message="not released in time"),
    )
    await harness.leave(leftover)
    found = await harness.book.get_leftover("o-1")
    assert found is not None
    assert (found.id, found.spec, found.status) == ("o-1", leftover.spec, leftover.status)

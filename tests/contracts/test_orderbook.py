"""The order book's promises, from the port's docstrings alone, for every driver by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import msgspec
import pytest

from boatyard.ledger.ledger import Ledger
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
from boatyard.orderbook import DRIVERS
from tests.support.control_plane import ControlPlane
from tests.support.desks import LATER, NOW, SPEC, Desk, EmbeddedDesk, KubeDesk
from tests.support.hub_plane import hub_plane

POOL = "hub-1/hosts"


DESKS = {"embedded": "embedded_desk", "kube": "kube_desk"}  # to the fixture that makes it


def test_every_driver_is_tried() -> None:
    assert DESKS.keys() == DRIVERS.keys(), "a new driver brings its desk"


@pytest.fixture
def embedded_desk(ledger: Ledger) -> Desk:
    return EmbeddedDesk(ledger)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with hub_plane() as plane:
        yield plane


@pytest.fixture
async def kube_desk(plane: ControlPlane) -> AsyncIterator[Desk]:
    async with KubeDesk.open(plane) as desk:
        yield desk


@pytest.fixture(params=sorted(DRIVERS))
def desk(request: pytest.FixtureRequest) -> Desk:
    made: Desk = request.getfixturevalue(DESKS[request.param])
    return made


async def test_an_order_that_was_put_is_there_with_its_secrets_readable(desk: Desk) -> None:
    await desk.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    order = await desk.book.get("o-1")
    assert order is not None
    assert order.spec == SPEC
    assert (order.id, order.metadata.tenant) == ("o-1", "acme")
    assert order.metadata.deletion_timestamp is None
    assert await desk.due_orders() == {"o-1"}


async def test_an_unknown_order_is_none(desk: Desk) -> None:
    assert await desk.book.get("nobody") is None


async def test_the_same_spec_again_changes_nothing(desk: Desk) -> None:
    await desk.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    before = await desk.book.get("o-1")
    await desk.book.put("o-1", tenant="acme", spec=SPEC, now=LATER)
    assert await desk.book.get("o-1") == before


async def test_another_spec_replaces_the_wish_and_keeps_the_status(desk: Desk) -> None:
    await desk.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    status = OrderStatus(phase=OrderPhase.READY, observed_generation=1)
    await desk.set_status("o-1", status)
    wish = msgspec.structs.replace(SPEC, generation=2, version="4.18.3")
    await desk.book.put("o-1", tenant="acme", spec=wish, now=LATER)
    order = await desk.book.get("o-1")
    assert order is not None
    assert (order.spec, order.status) == (wish, status)
    assert await desk.due_orders() == {"o-1"}


async def test_two_that_put_at_once_do_not_both_win_unnoticed(desk: Desk) -> None:
    await desk.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    wishes = [msgspec.structs.replace(SPEC, generation=number) for number in range(2, 12)]
    answers = await asyncio.gather(
        *(desk.book.put("o-1", tenant="acme", spec=wish, now=NOW) for wish in wishes),
        return_exceptions=True,
    )
    assert {type(answer) for answer in answers} <= {type(None), Conflict}
    order = await desk.book.get("o-1")
    assert order is not None
    assert order.spec in [w for w, answer in zip(wishes, answers, strict=True) if answer is None]


async def test_a_deletion_is_asked_for_once_with_its_bound(desk: Desk) -> None:
    await desk.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    await desk.book.request_delete("o-1", delete_by=LATER, now=NOW)
    first = await desk.book.get("o-1")
    assert first is not None
    assert (first.metadata.deletion_timestamp, first.spec.delete_by) == (NOW, LATER)
    await desk.book.request_delete("o-1", delete_by=LATER + timedelta(hours=1), now=LATER)
    assert await desk.book.get("o-1") == first


async def test_a_deletion_of_nothing_changes_nothing(desk: Desk) -> None:
    await desk.book.request_delete("nobody", delete_by=LATER, now=NOW)
    assert await desk.book.get("nobody") is None


async def test_an_order_that_is_being_deleted_is_left_alone_by_put(desk: Desk) -> None:
    await desk.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    await desk.book.request_delete("o-1", delete_by=LATER, now=NOW)
    before = await desk.book.get("o-1")
    wish = msgspec.structs.replace(SPEC, generation=2)
    await desk.book.put("o-1", tenant="acme", spec=wish, now=LATER)
    assert await desk.book.get("o-1") == before


async def test_a_finished_order_is_forgotten_and_that_may_be_asked_twice(desk: Desk) -> None:
    await desk.book.put("o-1", tenant="acme", spec=SPEC, now=NOW)
    await desk.book.request_delete("o-1", delete_by=LATER, now=NOW)
    with pytest.raises(Precondition):
        await desk.book.forget("o-1", now=NOW)
    await desk.set_status("o-1", OrderStatus(phase=OrderPhase.DELETED))
    await desk.book.forget("o-1", now=LATER)
    assert await desk.book.get("o-1") is None
    await desk.book.forget("o-1", now=LATER)


async def test_a_claim_takes_the_first_free_candidate(desk: Desk) -> None:
    claim = desk.book.claim
    assert await claim(POOL, ["a", "b"], "o-1/host/0", now=NOW) == "a"
    assert await claim(POOL, ["a", "b"], "o-1/host/1", now=NOW) == "b"
    assert await claim(POOL, ["a", "b"], "o-2/host/0", now=NOW) is None
    assert await claim(POOL, [], "o-2/host/0", now=NOW) is None


async def test_an_owner_holds_one_of_a_pool_whatever_it_asks_for(desk: Desk) -> None:
    claim = desk.book.claim
    assert await claim(POOL, ["a"], "o-1/host/0", now=NOW) == "a"
    assert await claim(POOL, ["b"], "o-1/host/0", now=NOW) == "a"
    assert await claim(POOL, [], "o-1/host/0", now=NOW) == "a"


async def test_pools_do_not_know_each_other(desk: Desk) -> None:
    claim = desk.book.claim
    assert await claim("hub-1/hosts", ["a"], "o-1/host/0", now=NOW) == "a"
    assert await claim("hub-2/hosts", ["a"], "o-2/host/0", now=NOW) == "a"


async def test_what_many_ask_for_at_once_is_handed_out_once(desk: Desk) -> None:
    free = [f"host-{number}" for number in range(5)]
    given = await asyncio.gather(
        *(desk.book.claim(POOL, free, f"o-{n}/host/0", now=NOW) for n in range(12))
    )
    taken = [one for one in given if one is not None]
    assert sorted(taken) == free
    assert given.count(None) == 7


async def test_what_is_given_back_can_be_claimed_again(desk: Desk) -> None:
    await desk.book.claim(POOL, ["a"], "o-1/host/0", now=NOW)
    await desk.book.claim("hub-1/vlans", ["7"], "o-1/host/0", now=NOW)
    await desk.book.unclaim("o-1/host/0", now=NOW)
    assert await desk.book.claim(POOL, ["a"], "o-2/host/0", now=NOW) == "a"
    assert await desk.book.claim("hub-1/vlans", ["7"], "o-2/host/0", now=NOW) == "7"


async def test_giving_back_touches_nobody_elses(desk: Desk) -> None:
    await desk.book.claim(POOL, ["a"], "o-1/host/1", now=NOW)
    await desk.book.claim(POOL, ["b"], "o-1/host/10", now=NOW)
    await desk.book.unclaim("o-1/host/1", now=NOW)
    assert await desk.book.claim(POOL, [], "o-1/host/10", now=NOW) == "b"
    await desk.book.unclaim("nobody", now=NOW)


async def test_a_book_of_a_lost_lease_writes_nothing(desk: Desk) -> None:
    stale = await desk.stale_book()
    with pytest.raises(LeaseLost):
        await stale.claim(POOL, ["a"], "o-1/host/0", now=NOW)
    with pytest.raises(LeaseLost):
        await stale.put("o-9", tenant="acme", spec=SPEC, now=NOW)
    with pytest.raises(LeaseLost):
        await stale.unclaim("o-1", now=NOW)
    assert await desk.book.get("o-9") is None
    assert await desk.book.claim(POOL, ["a"], "o-2/host/0", now=NOW) == "a"


async def test_what_one_owner_asks_for_at_once_is_one_thing(desk: Desk) -> None:
    free = [f"host-{number}" for number in range(8)]
    given = await asyncio.gather(
        *(
            desk.book.claim(POOL, [*free[n:], *free[:n]], "o-1/host/0", now=NOW)
            for n in range(len(free))
        )
    )
    assert len(set(given)) == 1
    assert given[0] is not None
    for number in range(7):
        other = await desk.book.claim(POOL, free, f"o-2/host/{number}", now=NOW)
        assert other not in (None, given[0]), "the others were given back"


async def test_what_is_left_is_there_until_it_is_released(desk: Desk) -> None:
    assert await desk.book.leftover("o-1") is None
    item = Item(key="host/compute-0", kind="host", state=ItemState.LEAVING)
    leftover = Leftover(
        id="o-1",
        metadata=Metadata(name="o-1", tenant="acme", creator="system", creation_timestamp=NOW),
        spec=LeftoverSpec(order="o-1", cluster_name="web", hub="hub-1"),
        status=LeftoverStatus(items=(item,), message="not released in time"),
    )
    await desk.leave(leftover)
    found = await desk.book.leftover("o-1")
    assert found is not None
    assert (found.id, found.spec, found.status) == ("o-1", leftover.spec, leftover.status)

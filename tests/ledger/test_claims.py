"""What the ledger promises about scarce things: handed out once, counted to the last one, never forgotten."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from boatyard.ledger.changes import (
    Archive,
    Due,
    Insert,
    Replace,
    Require,
    Reserve,
    Unclaim,
    Unreferenced,
    Unreserve,
)
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import ClaimRequest
from boatyard.model.errors import Conflict, Exhausted, LeaseLost, Precondition
from boatyard.model.generated.osac import Cluster, ClusterTemplate, Metadata
from tests.ledger.docs import NOW, at, cluster, deleting, read_at

VLANS = [str(number) for number in range(100, 120)]


async def test_twenty_claimers_at_once_get_twenty_different_things(ledger: Ledger) -> None:
    owners = [f"order-{number}" for number in range(22)]

    given = await asyncio.gather(
        *(ledger.claims.claim("vlan", VLANS, owner, now=NOW) for owner in owners)
    )

    assert sorted(filter(None, given)) == VLANS
    assert given.count(None) == 2


async def test_a_claim_repeated_is_the_same_claim(ledger: Ledger) -> None:
    first = await ledger.claims.claim("vlan", VLANS, "a", now=NOW)

    assert await ledger.claims.claim("vlan", VLANS, "a", now=NOW) == first
    assert await ledger.claims.claim("vlan", ["119"], "a", now=NOW) == first
    together = await asyncio.gather(
        *(ledger.claims.claim("vlan", VLANS, "b", now=NOW) for _ in range(10))
    )
    assert set(together) == {"101"}


async def test_the_first_free_candidate_is_given(ledger: Ledger) -> None:
    await ledger.claims.claim("vlan", ["7"], "a", now=NOW)

    assert await ledger.claims.claim("vlan", ["7", "9", "8"], "b", now=NOW) == "9"
    assert await ledger.claims.claim("hosts", ["7"], "b", now=NOW) == "7"
    assert await ledger.claims.claim("vlan", ["7"], "c", now=NOW) is None
    assert await ledger.claims.claim("vlan", [], "c", now=NOW) is None


async def test_many_are_claimed_in_one_go_and_answered_in_the_order_asked(ledger: Ledger) -> None:
    requests = [
        ClaimRequest("vlan", VLANS, "a/net"),
        ClaimRequest("hosts", ["h1", "h2"], "a/node-0"),
        ClaimRequest("hosts", ["h1", "h2"], "a/node-1"),
        ClaimRequest("hosts", ["h1", "h2"], "a/node-2"),
        ClaimRequest("addresses", ["10.0.0.1"], "a/api"),
    ]

    given = await ledger.claims.claim_many(requests, tenant="acme", now=NOW)

    assert given == ["100", "h1", "h2", None, "10.0.0.1"]
    held = await ledger.claims.list_by_owner("a")
    assert {(claim.pool, claim.item, claim.owner, claim.tenant) for claim in held} >= {
        ("hosts", "h2", "a/node-1", "acme")
    }


async def test_claims_asked_for_in_opposite_orders_do_not_stop_each_other(ledger: Ledger) -> None:
    async def both(owner: str, pools: list[str]) -> list[str | None]:
        requests = [ClaimRequest(pool, VLANS, owner) for pool in pools]
        return await ledger.claims.claim_many(requests, now=NOW)

    async with asyncio.timeout(10):
        await asyncio.gather(
            *(both(f"a{number}", ["x", "y"]) for number in range(10)),
            *(both(f"b{number}", ["y", "x"]) for number in range(10)),
        )

    assert (
        len(await ledger.claims.list_by_pool("x"))
        == len(await ledger.claims.list_by_pool("y"))
        == 20
    )


async def test_freeing_reaches_an_owner_and_those_below_it_only(ledger: Ledger) -> None:
    for owner in ("a", "a/node-0", "a/node-1/x", "ab", "a0", "a-b/x"):
        await ledger.claims.claim("hosts", VLANS, owner, now=NOW)

    below = [claim.owner for claim in await ledger.claims.list_by_owner("a")]
    await ledger.commit([Unclaim("a")], now=NOW)

    assert below == ["a", "a/node-0", "a/node-1/x"]
    assert [claim.owner for claim in await ledger.claims.list_by_pool("hosts")] == [
        "ab",
        "a0",
        "a-b/x",
    ]


async def test_a_stale_worker_claims_nothing(ledger: Ledger) -> None:
    await ledger.commit([Due("Order", "o", NOW)], now=NOW)
    take = {"kinds": ["Order"], "limit": 1, "lease_seconds": 30, "worker": "w"}
    (stale,) = await ledger.work.take(**take, now=NOW)  # type: ignore[arg-type]
    (current,) = await ledger.work.take(**take, now=at(31))  # type: ignore[arg-type]

    with pytest.raises(LeaseLost):
        await ledger.claims.claim("vlan", VLANS, "o", lease=stale, now=at(32))

    assert await ledger.claims.list_by_pool("vlan") == []
    assert await ledger.claims.claim("vlan", VLANS, "o", lease=current, now=at(32)) == "100"


# --- counts ----------------------------------------------------------------------------------------


async def test_reservations_never_pass_the_capacity_under_concurrency(
    ledger: Ledger, database_url: str
) -> None:
    async def reserve(number: int) -> bool:
        try:
            await ledger.commit([Reserve("hub", f"c{number}", 3, capacity=20)], now=NOW)
        except Exhausted:
            return False
        return True

    given = await asyncio.gather(*(reserve(number) for number in range(20)))

    assert sum(given) == 6
    assert await ledger.claims.sum_reserved("hub") == 18
    assert await counted(database_url) == [("hub", 18)]


async def test_an_amount_may_shrink_or_stay_even_when_the_pool_is_over_its_capacity(
    ledger: Ledger,
) -> None:
    await ledger.commit([Reserve("hub", "a", 10, capacity=10)], now=NOW)

    await ledger.commit([Reserve("hub", "a", 10, capacity=5)], now=NOW)
    await ledger.commit([Reserve("hub", "a", 8, capacity=5)], now=NOW)
    with pytest.raises(Exhausted):
        await ledger.commit([Reserve("hub", "a", 9, capacity=5)], now=NOW)

    assert await ledger.claims.list_reservations("a") == {"hub": 8}
    await ledger.commit([Reserve("hub", "a", 0, capacity=0)], now=NOW)
    assert (
        await ledger.claims.list_reservations("a"),
        await ledger.claims.sum_reserved("hub"),
    ) == ({}, 0)


async def test_what_is_given_back_can_be_reserved_in_the_same_commit(ledger: Ledger) -> None:
    await ledger.commit(
        [Reserve("x", "a", 5, capacity=5), Reserve("y", "a", 2, capacity=5)], now=NOW
    )

    await ledger.commit([Unreserve("a"), Reserve("x", "b", 5, capacity=5)], now=NOW)

    assert (
        await ledger.claims.list_reservations("a"),
        await ledger.claims.list_reservations("b"),
    ) == (
        {},
        {"x": 5},
    )
    assert (await ledger.claims.sum_reserved("x"), await ledger.claims.sum_reserved("y")) == (5, 0)


async def test_reserving_and_giving_back_at_once_keeps_the_sums_right(
    ledger: Ledger, database_url: str
) -> None:
    async def churn(owner: str) -> None:
        for turn in range(5):
            pools = ["x", "y"] if turn % 2 else ["y", "x"]
            await ledger.commit(
                [Reserve(pool, owner, turn + 1, capacity=999) for pool in pools], now=NOW
            )
            await ledger.commit([Unreserve(owner, pools[0])], now=NOW)

    await asyncio.gather(*(churn(f"c{number}") for number in range(10)))

    assert await counted(database_url) == [
        (pool, amount) for pool in ("x", "y") if (amount := await ledger.claims.sum_reserved(pool))
    ]


async def counted(database_url: str) -> list[tuple[str, int]]:
    connection = await asyncpg.connect(database_url)
    rows = await connection.fetch(
        "select pool, sum(amount)::int from reservations group by pool order by pool"
    )
    await connection.close()
    return [tuple(row) for row in rows]


# --- references ------------------------------------------------------------------------------------

TEMPLATE = ClusterTemplate(id="t", metadata=Metadata(name="t"))
IN_USE = Unreferenced("ClusterTemplate", "t", [("Cluster", "$.spec.template.id")])


async def test_what_is_required_exists_and_is_not_being_deleted(ledger: Ledger) -> None:
    await ledger.commit([Insert(cluster("a"))], now=NOW)
    await ledger.commit([Require("Cluster", "a"), Insert(cluster("b"))], now=NOW)
    await ledger.commit([Replace(deleting(cluster("a")))], now=NOW)

    with pytest.raises(Precondition, match="being deleted"):
        await ledger.commit([Require("Cluster", "a"), Insert(cluster("c"))], now=NOW)
    with pytest.raises(Precondition, match="does not exist"):
        await ledger.commit([Require("Cluster", "x"), Insert(cluster("c"))], now=NOW)

    assert await ledger.documents.get(Cluster, "c") is None


async def test_what_is_required_at_a_version_has_not_changed_since(ledger: Ledger) -> None:
    await ledger.commit([Insert(cluster("a"))], now=NOW)
    await ledger.commit([Require("Cluster", "a", version=0), Insert(cluster("b"))], now=NOW)
    await ledger.commit([Replace(cluster("a"))], now=NOW)

    with pytest.raises(Conflict):
        await ledger.commit([Require("Cluster", "a", version=0), Insert(cluster("c"))], now=NOW)

    await ledger.commit([Require("Cluster", "a", version=1), Insert(cluster("c"))], now=NOW)


@pytest.mark.parametrize(
    "path", ["$.spec.template.id", "$.spec.*.id"], ids=["by an indexed column", "by a path"]
)
async def test_what_is_referred_to_cannot_leave(ledger: Ledger, path: str) -> None:
    await ledger.commit([Insert(TEMPLATE), Insert(cluster("a", template="t"))], now=NOW)
    unreferenced = Unreferenced("ClusterTemplate", "t", [("Hub", "$.spec.x"), ("Cluster", path)])

    with pytest.raises(Precondition, match="'a'"):
        await ledger.commit([unreferenced, Archive(TEMPLATE)], now=NOW)

    await ledger.commit([Archive(cluster("a", template="t"))], now=NOW)
    await ledger.commit([unreferenced, Archive(TEMPLATE)], now=NOW)
    assert await ledger.documents.get(ClusterTemplate, "t") is None


async def test_a_reference_and_a_deletion_racing_leave_no_dangling_reference(
    ledger: Ledger,
) -> None:
    async def refer(name: str) -> str | None:
        try:
            await ledger.commit(
                [Require("ClusterTemplate", "t"), Insert(cluster(name, template="t"))], now=NOW
            )
        except Precondition:
            return None
        return name

    async def remove() -> bool:
        try:
            await ledger.commit([IN_USE, Archive(TEMPLATE)], now=NOW)
        except Precondition:
            return False
        return True

    outcomes = set()
    for turn in range(30):
        await ledger.commit([Insert(TEMPLATE)], now=NOW)
        calls = [refer(f"c{turn}"), remove()] if turn % 2 else [remove(), refer(f"c{turn}")]
        answers = await asyncio.gather(*calls)
        referred, removed = answers if turn % 2 else answers[::-1]
        assert bool(referred) != bool(removed)
        outcomes.add(bool(removed))
        if referred:
            await ledger.commit([Archive(cluster(f"c{turn}", template="t"))], now=NOW)
            await ledger.commit([Archive(TEMPLATE)], now=NOW)
    assert outcomes


async def test_replaces_of_several_documents_in_opposite_orders_do_not_stop_each_other(
    ledger: Ledger,
) -> None:
    await ledger.commit([Insert(cluster("a")), Insert(cluster("b"))], now=NOW)

    async def both(names: str, version: int) -> bool:
        try:
            await ledger.commit(
                [Replace(read_at(cluster(name), version)) for name in names], now=NOW
            )
        except Conflict:
            return False
        return True

    async with asyncio.timeout(5):
        for version in range(10):
            won = await asyncio.gather(
                *(both(names, version) for names in ("ab", "ba", "ab", "ba"))
            )
            assert sum(won) == 1

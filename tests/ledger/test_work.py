"""What the ledger promises about work: leased to one, fair between tenants, no poke and no wake lost."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from boatyard.ledger.changes import Change, Due, Insert, Replace, WakeWaiting
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import Finish, WorkLease
from boatyard.model.errors import Conflict, LeaseLost
from boatyard.model.generated.osac import Cluster
from tests.ledger.docs import NOW, at, cluster


def due(id: str, seconds: float = 0, tenant: str = "acme", kind: str = "Cluster") -> Due:
    return Due(kind, id, at(seconds), tenant=tenant)


async def take(
    ledger: Ledger, seconds: float = 0, limit: int = 10, worker: str = "w"
) -> list[WorkLease]:
    return await ledger.work.take(
        kinds=["Cluster"], limit=limit, lease_seconds=30, worker=worker, now=at(seconds)
    )


async def taken(ledger: Ledger, seconds: float) -> list[str]:
    return [lease.id for lease in await take(ledger, seconds)]


async def test_only_what_is_due_is_taken_the_most_overdue_first(ledger: Ledger) -> None:
    await ledger.commit(
        [due("b", 2), due("a", 1), due("later", 60), due("o", kind="Order")], now=NOW
    )

    assert await taken(ledger, 0.5) == []
    assert await taken(ledger, 5) == ["a", "b"]


async def test_what_is_leased_is_nobody_elses_until_the_lease_ends(ledger: Ledger) -> None:
    await ledger.commit([due("a")], now=NOW)
    (first,) = await take(ledger, 0)

    assert await taken(ledger, 29) == []
    (second,) = await take(ledger, 30)
    assert second.token != first.token


async def test_a_stale_workers_write_is_thrown_away(ledger: Ledger) -> None:
    doc = cluster("a")
    await ledger.commit([Insert(doc), due("a")], now=NOW)
    (stale,) = await take(ledger, 0)
    (current,) = await take(ledger, 30)

    for finish in (None, Finish(due=None), Finish(due=at(99))):
        with pytest.raises(LeaseLost):
            await ledger.commit(
                [Replace(doc), Insert(cluster("b"))], lease=stale, finish=finish, now=at(31)
            )

    assert await ledger.documents.get(Cluster, "a") == doc
    assert await ledger.documents.get(Cluster, "b") is None
    await ledger.commit([Replace(doc)], lease=current, finish=Finish(due=None), now=at(32))
    assert await ledger.work.next_due() is None


async def test_a_finished_lease_is_of_no_more_use(ledger: Ledger) -> None:
    await ledger.commit([due("a")], now=NOW)
    (lease,) = await take(ledger)
    await ledger.commit([], lease=lease, finish=Finish(due=at(5)), now=NOW)

    with pytest.raises(LeaseLost):
        await ledger.commit([], lease=lease, finish=Finish(due=at(9)), now=NOW)


async def test_finishing_says_when_to_look_again_and_remembers_hub_and_attempts(
    ledger: Ledger,
) -> None:
    await ledger.commit([due("a")], now=NOW)
    (lease,) = await take(ledger)

    finish = Finish(due=at(60), hub="boston", waiting_for="hosts", attempts=3)
    await ledger.commit([], lease=lease, finish=finish, now=NOW)

    assert await ledger.work.next_due() == at(60)
    (again,) = await take(ledger, 60)
    assert (again.hub, again.attempts, again.waiting_for) == ("boston", 3 + 1, "hosts")


async def test_workers_that_die_are_counted(ledger: Ledger) -> None:
    await ledger.commit([due("a")], now=NOW)
    (first,) = await take(ledger, 0)
    (second,) = await take(ledger, 30)

    assert (first.attempts, second.attempts) == (1, 2)

    await ledger.work.refund_attempt(first)  # it was only slow
    (third,) = await take(ledger, 60)
    assert third.attempts == 2


@pytest.mark.parametrize("later", [at(60), None], ids=["look again later", "never"])
async def test_a_poke_during_a_lease_is_not_lost(ledger: Ledger, later: object) -> None:
    await ledger.commit([due("a")], now=NOW)
    (lease,) = await take(ledger)
    await ledger.commit([due("a", 2)], now=at(2))

    assert await taken(ledger, 3) == []  # still leased
    await ledger.commit([], lease=lease, finish=Finish(due=later), now=at(4))  # type: ignore[arg-type]

    assert await taken(ledger, 4) == ["a"]


async def test_a_poke_in_the_finishing_commit_itself_counts(ledger: Ledger) -> None:
    await ledger.commit([due("a")], now=NOW)
    (lease,) = await take(ledger)

    await ledger.commit([due("a", 7)], lease=lease, finish=Finish(due=at(60)), now=NOW)

    assert await ledger.work.next_due() == at(7)


async def test_a_poke_for_later_outlives_a_worker_that_died(ledger: Ledger) -> None:
    await ledger.commit([due("a")], now=NOW)
    await take(ledger)
    await ledger.commit([due("a", 50)], now=at(1))
    (second,) = await take(ledger, 30)

    await ledger.commit([], lease=second, finish=Finish(due=None), now=at(31))

    assert await ledger.work.next_due() == at(50)


async def test_a_later_due_does_not_put_off_an_earlier_one(ledger: Ledger) -> None:
    await ledger.commit([due("a", 5)], now=NOW)
    await ledger.commit([due("a", 50)], now=NOW)

    assert await ledger.work.next_due() == at(5)


async def test_leases_are_extended_for_those_who_still_hold_them(ledger: Ledger) -> None:
    await ledger.commit([due("a"), due("b")], now=NOW)
    first, second = await take(ledger)
    await ledger.commit([], lease=second, finish=Finish(due=None), now=NOW)

    assert await ledger.work.extend([first, second], 30, at(20)) == {("Cluster", "a")}
    assert await taken(ledger, 45) == []
    assert await taken(ledger, 50) == ["a"]


async def test_a_crowd_of_one_tenant_does_not_keep_another_waiting(ledger: Ledger) -> None:
    crowd: list[Change] = [due(f"a{number}", number / 1000, tenant="a") for number in range(500)]
    await ledger.commit([*crowd, due("b", 9, tenant="b"), due("c", 9, tenant="c")], now=NOW)

    first = await take(ledger, 10, limit=10)

    assert [lease.tenant for lease in first].count("a") == 8
    assert {"b", "c"} < {lease.id for lease in first}


async def test_six_crowded_tenants_do_not_keep_a_seventh_waiting(ledger: Ledger) -> None:
    crowds: list[Change] = [
        due(f"{tenant}{number}", number / 1000, tenant=tenant)
        for tenant in "abcdef"
        for number in range(60)
    ]
    await ledger.commit([*crowds, due("g", 9, tenant="g")], now=NOW)

    first = await take(ledger, 10, limit=7)
    second = await take(ledger, 10, limit=7)

    assert sorted(lease.tenant for lease in first) == list("abcdefg")
    assert Counter(lease.tenant for lease in second).keys() == set("abcdef")


async def test_tenants_with_nothing_due_take_no_places(ledger: Ledger) -> None:
    later: list[Change] = [due(f"later-{n}", 60, tenant=f"t{n}") for n in range(40)]
    await ledger.commit([*later, *(due(f"now-{n}", n, tenant="a") for n in range(3))], now=NOW)

    leases = await take(ledger, 10, limit=3)

    assert [lease.id for lease in leases] == ["now-0", "now-1", "now-2"]


async def test_two_workers_never_hold_the_same(ledger: Ledger) -> None:
    await ledger.commit(
        [due(str(number), tenant=f"t{number % 7}") for number in range(200)], now=NOW
    )

    async def worker(name: str) -> list[str]:
        mine: list[str] = []
        while leases := await take(ledger, 1, limit=7, worker=name):
            mine += [lease.id for lease in leases]
        return mine

    shares = await asyncio.gather(*(worker(f"w{number}") for number in range(8)))
    while rest := await take(ledger, 1, limit=50):  # skipped while another looked at it
        shares.append([lease.id for lease in rest])

    counts = Counter(id for share in shares for id in share)
    assert len(counts) == 200
    assert set(counts.values()) == {1}


async def test_pokes_in_opposite_directions_do_not_stop_each_other(ledger: Ledger) -> None:
    names = [str(number) for number in range(10)]
    await ledger.commit([due(name) for name in names], now=NOW)

    async def reconcile(lease: WorkLease) -> None:
        pokes = [due(name, 5) for name in names if name != lease.id]
        await ledger.commit(pokes, lease=lease, finish=Finish(due=at(9)), now=NOW)

    for _ in range(10):
        leases = await take(ledger, 10)
        assert len(leases) == 10
        async with asyncio.timeout(5):
            await asyncio.gather(*(reconcile(lease) for lease in leases))


# --- wakes -----------------------------------------------------------------------------------------


async def test_a_wake_reaches_those_who_wait_for_it_and_nobody_else(ledger: Ledger) -> None:
    await ledger.commit([due("a"), due("b"), due("c")], now=NOW)
    for lease, waits in zip(await take(ledger), ("capacity", "capacity", "quota"), strict=True):
        await ledger.commit([], lease=lease, finish=Finish(due=at(600), waiting_for=waits), now=NOW)

    await ledger.commit([WakeWaiting("capacity", at(2))], now=at(2))

    assert await taken(ledger, 2) == ["a", "b"]


async def test_a_wake_between_the_look_and_the_decision_to_wait_is_not_lost(ledger: Ledger) -> None:
    await ledger.commit([due("a")], now=NOW)
    await ledger.commit([WakeWaiting("capacity", NOW)], now=NOW)  # an old one does not count
    (lease,) = await take(ledger)
    await ledger.commit([WakeWaiting("capacity", at(1))], now=at(1))

    finish = Finish(due=at(600), waiting_for="capacity")
    await ledger.commit([], lease=lease, finish=finish, now=at(2))

    assert await ledger.work.next_due() == at(2)
    (again,) = await take(ledger, 2)
    await ledger.commit([], lease=again, finish=finish, now=at(3))
    assert await ledger.work.next_due() == at(600)


async def test_wakes_and_waiters_racing_leave_nobody_asleep(ledger: Ledger) -> None:
    """Whoever decided to wait before a wake was committed is due afterwards."""
    names = [str(number) for number in range(20)]
    await ledger.commit([due(name) for name in names], now=NOW)
    leases = await take(ledger, limit=20)

    async def wait(lease: WorkLease) -> None:
        finish = Finish(due=at(600), waiting_for="capacity")
        await ledger.commit([], lease=lease, finish=finish, now=at(1))

    await asyncio.gather(
        *(wait(lease) for lease in leases[:10]),
        ledger.commit([WakeWaiting("capacity", at(1))], now=at(1)),
        *(wait(lease) for lease in leases[10:]),
    )

    # All were taken before the wake was committed: none may sleep.
    assert sorted(await taken_all(ledger, 1)) == sorted(names)


async def taken_all(ledger: Ledger, seconds: float) -> list[str]:
    return [lease.id for lease in await take(ledger, seconds, limit=100)]


async def test_the_final_write_is_guarded_by_version_and_token_together(ledger: Ledger) -> None:
    doc = cluster("a")
    await ledger.commit([Insert(doc), due("a")], now=NOW)
    (lease,) = await take(ledger)
    await ledger.commit([Replace(doc)], now=NOW)  # the API, meanwhile

    with pytest.raises(Conflict):
        await ledger.commit([Replace(doc)], lease=lease, finish=Finish(due=None), now=NOW)

    assert await ledger.work.extend([lease], 30, at(1)) == {
        ("Cluster", "a")
    }  # the lease is still held

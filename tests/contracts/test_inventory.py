"""The inventory port's promises, for every driver."""

from __future__ import annotations

import asyncio

import pytest

from boatyard.model.errors import Refused
from boatyard.model.outcome import Done, Waiting
from tests.contracts.bench import Bench
from tests.contracts.rules import (
    Rule,
    keys,
    not_confirmed,
    refuses,
    rules_of,
    unavailable,
)

PORT = "inventory"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def free_hosts_are_listed_by_name_up_to_the_limit(bench: Bench) -> None:
    hosts = await bench.inventory.list_free(bench.host_type, 4)
    names = [host.name for host in hosts]
    assert len(names) == 4
    assert names == sorted(names)
    assert {host.host_type for host in hosts} == {bench.host_type}
    assert await bench.inventory.list_free("no-such-type", 4) == []


async def a_seed_turns_the_list_and_keeps_it_whole(bench: Bench) -> None:
    everything = [host.name for host in await bench.inventory.list_free(bench.host_type, 100)]
    starts = set()
    for number in range(20):
        listed = await bench.inventory.list_free(bench.host_type, 100, seed=f"order-{number}")
        names = [host.name for host in listed]
        again = await bench.inventory.list_free(bench.host_type, 100, seed=f"order-{number}")
        assert [host.name for host in again] == names
        turn = everything.index(names[0])
        assert names == everything[turn:] + everything[:turn]
        starts.add(names[0])
    assert len(starts) > 1


async def holding_again_is_holding_once(bench: Bench) -> None:
    order = bench.order()
    (host,) = await bench.free_hosts(1)
    first = await bench.until_done(lambda: bench.inventory.ensure_held(f"{order}/host/a", host))
    again = await bench.inventory.ensure_held(f"{order}/host/a", host)
    assert again == first
    assert keys(await bench.inventory.list_owned(order)) == [f"{order}/host/a"]


async def holding_tells_where_the_host_is_plugged_in(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    held = await bench.until_done(lambda: bench.inventory.ensure_held("order-1/host/a", host))
    assert all(held.facts.get(fact) for fact in ("switch", "port", "mac"))


async def a_held_host_is_not_free_until_it_is_released(bench: Bench) -> None:
    order = bench.order()
    (host,) = await bench.free_hosts(1)
    await bench.inventory.ensure_held(f"{order}/host/a", host)
    assert host not in await _free(bench)
    await bench.until_done(lambda: bench.inventory.release_held(f"{order}/host/a", host))
    assert host in await _free(bench)


async def a_host_held_under_another_key_is_refused_and_stays_held(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    await bench.inventory.ensure_held("order-1/host/a", host)
    await refuses(bench.inventory.ensure_held("order-2/host/a", host), reason="HeldByAnother")
    await refuses(bench.inventory.release_held("order-2/host/a", host))
    assert keys(await bench.inventory.list_owned()) == ["order-1/host/a"]


async def of_many_who_ask_at_once_one_gets_the_host(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    asked = [bench.inventory.ensure_held(f"order-{n}/host/a", host) for n in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    assert len(refused) == 7, answers
    assert len(await bench.inventory.list_owned()) == 1


async def an_unknown_host_is_refused(bench: Bench) -> None:
    asked = bench.inventory.ensure_held("order-1/host/a", "no-such-host")
    await refuses(asked, reason="HostUnusable")


async def a_broken_host_is_refused_and_not_counted(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    before = (await bench.inventory.capacity())[bench.host_type]
    await bench.break_host(host)
    assert (await bench.inventory.capacity())[bench.host_type] == before - 1
    assert host not in await _free(bench)
    asked = bench.inventory.ensure_held("order-1/host/a", host)
    await refuses(asked, reason="HostUnusable")


async def a_host_that_breaks_while_held_stays_held(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    await bench.until_done(lambda: bench.inventory.ensure_held("order-1/host/a", host))
    await bench.break_host(host)
    assert isinstance(await bench.inventory.ensure_held("order-1/host/a", host), Done)


async def capacity_counts_held_hosts_too(bench: Bench) -> None:
    before = await bench.inventory.capacity()
    (host,) = await bench.free_hosts(1)
    await bench.inventory.ensure_held("order-1/host/a", host)
    assert await bench.inventory.capacity() == before


async def releasing_nothing_is_done(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    assert await bench.inventory.release_held("order-1/host/a", host) == Done()
    assert await bench.inventory.release_held("order-1/host/a", "no-such-host") == Done()


async def releasing_again_is_done(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    await bench.inventory.ensure_held("order-1/host/a", host)
    await bench.until_done(lambda: bench.inventory.release_held("order-1/host/a", host))
    assert await bench.inventory.release_held("order-1/host/a", host) == Done()
    assert await bench.inventory.list_owned() == []


async def owned_things_are_listed_by_prefix(bench: Bench) -> None:
    first, second = await bench.free_hosts(2)
    await bench.inventory.ensure_held("order-1/host/a", first)
    await bench.inventory.ensure_held("order-11/host/a", second)
    assert keys(await bench.inventory.list_owned("order-1/")) == ["order-1/host/a"]
    assert keys(await bench.inventory.list_owned("order-1")) == [
        "order-1/host/a",
        "order-11/host/a",
    ]
    assert keys(await bench.inventory.list_owned("order-2/")) == []
    (owned,) = await bench.inventory.list_owned("order-1/host/")
    assert owned.name == first


async def the_agent_is_seen_once_the_port_is_bound(bench: Bench) -> None:
    order = bench.order()
    (host,) = await bench.free_hosts(1)
    await bench.until_done(lambda: bench.inventory.ensure_held(f"{order}/host/a", host))
    assert isinstance(await bench.inventory.agent_address(f"{order}/host/a", host), Waiting)
    (vlan, *_) = await bench.l2.vlans()
    await bench.until_done(lambda: bench.l2.ensure_network(f"{order}/l2", vlan))
    await bench.until_done(lambda: bench.l2.ensure_port(f"{order}/port/a", f"{order}/l2", host))
    seen = await bench.until_done(lambda: bench.inventory.agent_address(f"{order}/host/a", host))
    assert seen.facts["address"]


async def a_service_that_does_not_answer_is_unavailable(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    await bench.inventory.check_ready()
    await bench.misbehave("inventory", "dead")
    await unavailable(bench.inventory.check_ready())
    await unavailable(bench.inventory.ensure_held("order-1/host/a", host))
    await unavailable(bench.inventory.list_owned())
    await bench.misbehave("inventory", "none")
    assert await bench.inventory.list_owned() == []


async def done_means_it_is_so(bench: Bench) -> None:
    held, free = await bench.free_hosts(2)
    await bench.until_done(lambda: bench.inventory.ensure_held("order-1/host/a", held))
    await bench.misbehave("inventory", "lies")
    await not_confirmed(bench.inventory.ensure_held("order-1/host/b", free))
    await not_confirmed(bench.inventory.release_held("order-1/host/a", held))


async def closing_twice_is_fine(bench: Bench) -> None:
    await bench.inventory.close()
    await bench.inventory.close()


async def _free(bench: Bench) -> list[str]:
    return [host.name for host in await bench.inventory.list_free(bench.host_type, 1000)]


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_inventory(rule: Rule, bench: Bench) -> None:
    await rule(bench)

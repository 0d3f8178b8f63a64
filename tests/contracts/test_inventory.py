"""The inventory port's promises, for every driver."""

from __future__ import annotations

import asyncio

import pytest

from boatyard.model.errors import Refused
from boatyard.model.outcome import Done, Waiting
from tests.contracts.harness import InventoryHarness
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


async def free_hosts_are_listed_by_name_up_to_the_limit(harness: InventoryHarness) -> None:
    hosts = await harness.inventory.list_free(harness.host_type, 4)
    names = [host.name for host in hosts]
    assert len(names) == 4
    assert names == sorted(names)
    assert {host.host_type for host in hosts} == {harness.host_type}
    assert await harness.inventory.list_free("no-such-type", 4) == []


async def a_seed_turns_the_list_and_keeps_it_whole(harness: InventoryHarness) -> None:
    everything = [host.name for host in await harness.inventory.list_free(harness.host_type, 100)]
    starts = set()
    for number in range(20):
        listed = await harness.inventory.list_free(harness.host_type, 100, seed=f"order-{number}")
        names = [host.name for host in listed]
        again = await harness.inventory.list_free(harness.host_type, 100, seed=f"order-{number}")
        assert [host.name for host in again] == names
        turn = everything.index(names[0])
        assert names == everything[turn:] + everything[:turn]
        starts.add(names[0])
    assert len(starts) > 1


async def holding_again_is_holding_once(harness: InventoryHarness) -> None:
    order = harness.order()
    (host,) = await harness.free_hosts(1)
    first = await harness.until_done(lambda: harness.inventory.ensure_held(f"{order}/host/a", host))
    again = await harness.inventory.ensure_held(f"{order}/host/a", host)
    assert again == first
    assert keys(await harness.inventory.list_owned(order)) == [f"{order}/host/a"]


async def holding_tells_where_the_host_is_plugged_in(harness: InventoryHarness) -> None:
    (host,) = await harness.free_hosts(1)
    held = await harness.until_done(lambda: harness.inventory.ensure_held("order-1/host/a", host))
    assert all(held.facts.get(fact) for fact in ("switch", "port", "mac"))


async def a_held_host_is_not_free_until_it_is_released(harness: InventoryHarness) -> None:
    order = harness.order()
    (host,) = await harness.free_hosts(1)
    await harness.inventory.ensure_held(f"{order}/host/a", host)
    assert host not in await _free(harness)
    await harness.until_done(lambda: harness.inventory.release_held(f"{order}/host/a", host))
    assert host in await _free(harness)


async def a_host_held_under_another_key_is_refused_and_stays_held(
    harness: InventoryHarness,
) -> None:
    (host,) = await harness.free_hosts(1)
    await harness.inventory.ensure_held("order-1/host/a", host)
    await refuses(harness.inventory.ensure_held("order-2/host/a", host), reason="HeldByAnother")
    await refuses(harness.inventory.release_held("order-2/host/a", host))
    assert keys(await harness.inventory.list_owned()) == ["order-1/host/a"]


async def of_many_who_ask_at_once_one_gets_the_host(harness: InventoryHarness) -> None:
    (host,) = await harness.free_hosts(1)
    asked = [harness.inventory.ensure_held(f"order-{n}/host/a", host) for n in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    assert len(refused) == 7, answers
    assert len(await harness.inventory.list_owned()) == 1


async def an_unknown_host_is_refused(harness: InventoryHarness) -> None:
    asked = harness.inventory.ensure_held("order-1/host/a", "no-such-host")
    await refuses(asked, reason="HostUnusable")


async def a_broken_host_is_refused_and_not_counted(harness: InventoryHarness) -> None:
    (host,) = await harness.free_hosts(1)
    before = (await harness.inventory.capacity())[harness.host_type]
    await harness.break_host(host)
    assert (await harness.inventory.capacity())[harness.host_type] == before - 1
    assert host not in await _free(harness)
    asked = harness.inventory.ensure_held("order-1/host/a", host)
    await refuses(asked, reason="HostUnusable")


async def a_host_that_breaks_while_held_stays_held(harness: InventoryHarness) -> None:
    (host,) = await harness.free_hosts(1)
    await harness.until_done(lambda: harness.inventory.ensure_held("order-1/host/a", host))
    await harness.break_host(host)
    assert isinstance(await harness.inventory.ensure_held("order-1/host/a", host), Done)


async def capacity_counts_held_hosts_too(harness: InventoryHarness) -> None:
    before = await harness.inventory.capacity()
    (host,) = await harness.free_hosts(1)
    await harness.inventory.ensure_held("order-1/host/a", host)
    assert await harness.inventory.capacity() == before


async def releasing_nothing_is_done(harness: InventoryHarness) -> None:
    (host,) = await harness.free_hosts(1)
    assert await harness.inventory.release_held("order-1/host/a", host) == Done()
    assert await harness.inventory.release_held("order-1/host/a", "no-such-host") == Done()


async def releasing_again_is_done(harness: InventoryHarness) -> None:
    (host,) = await harness.free_hosts(1)
    await harness.inventory.ensure_held("order-1/host/a", host)
    await harness.until_done(lambda: harness.inventory.release_held("order-1/host/a", host))
    assert await harness.inventory.release_held("order-1/host/a", host) == Done()
    assert await harness.inventory.list_owned() == []


async def owned_things_are_listed_by_prefix(harness: InventoryHarness) -> None:
    first, second = await harness.free_hosts(2)
    await harness.inventory.ensure_held("order-1/host/a", first)
    await harness.inventory.ensure_held("order-11/host/a", second)
    assert keys(await harness.inventory.list_owned("order-1/")) == ["order-1/host/a"]
    assert keys(await harness.inventory.list_owned("order-1")) == [
        "order-1/host/a",
        "order-11/host/a",
    ]
    assert keys(await harness.inventory.list_owned("order-2/")) == []
    (owned,) = await harness.inventory.list_owned("order-1/host/")
    assert owned.name == first


async def the_agent_is_seen_once_the_port_is_bound(harness: InventoryHarness) -> None:
    order = harness.order()
    (host,) = await harness.free_hosts(1)
    await harness.until_done(lambda: harness.inventory.ensure_held(f"{order}/host/a", host))
    assert isinstance(await harness.inventory.agent_address(f"{order}/host/a", host), Waiting)
    await harness.connect_host(host)
    seen = await harness.until_done(
        lambda: harness.inventory.agent_address(f"{order}/host/a", host)
    )
    assert seen.facts["address"]


async def a_service_that_does_not_answer_is_unavailable(harness: InventoryHarness) -> None:
    (host,) = await harness.free_hosts(1)
    await harness.inventory.check_ready()
    await harness.misbehave("dead")
    await unavailable(harness.inventory.check_ready())
    await unavailable(harness.inventory.ensure_held("order-1/host/a", host))
    await unavailable(harness.inventory.list_owned())
    await harness.misbehave("none")
    assert await harness.inventory.list_owned() == []


async def done_means_it_is_so(harness: InventoryHarness) -> None:
    held, free = await harness.free_hosts(2)
    await harness.until_done(lambda: harness.inventory.ensure_held("order-1/host/a", held))
    await harness.misbehave("lies")
    await not_confirmed(harness.inventory.ensure_held("order-1/host/b", free))
    await not_confirmed(harness.inventory.release_held("order-1/host/a", held))


async def closing_twice_is_fine(harness: InventoryHarness) -> None:
    await harness.inventory.close()
    await harness.inventory.close()


async def _free(harness: InventoryHarness) -> list[str]:
    return [host.name for host in await harness.inventory.list_free(harness.host_type, 1000)]


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_inventory(rule: Rule, harness: InventoryHarness) -> None:
    await rule(harness)

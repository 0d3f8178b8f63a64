"""The layer-2 port's promises, for every driver."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from boatyard.model.errors import Refused
from boatyard.model.outcome import Done, Waiting
from tests.contracts.bench import Bench
from tests.contracts.rules import Rule, keys, not_confirmed, refuses, rules_of, unavailable

PORT = "l2"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def vlans_are_stable_and_usable(bench: Bench) -> None:
    vlans = list(await bench.l2.vlans())
    assert vlans == list(await bench.l2.vlans())
    assert all(1 <= vlan <= 4094 for vlan in vlans)
    assert len(set(vlans)) == len(vlans) > 0


async def a_network_made_again_is_one_network(bench: Bench) -> None:
    vlan = (await bench.l2.vlans())[0]
    first = await bench.until_done(lambda: bench.l2.ensure_network("order-1/l2", vlan))
    assert first.facts["network"]
    assert await bench.l2.ensure_network("order-1/l2", vlan) == first
    assert keys(await bench.l2.list_owned("order-1/")) == ["order-1/l2"]


async def a_vlan_in_use_under_another_key_is_refused(bench: Bench) -> None:
    vlan, other = (await bench.l2.vlans())[:2]
    await bench.l2.ensure_network("order-1/l2", vlan)
    await refuses(bench.l2.ensure_network("order-2/l2", vlan))
    await bench.l2.ensure_network("order-2/l2", other)
    assert keys(await bench.l2.list_owned()) == ["order-1/l2", "order-2/l2"]


async def a_key_has_one_vlan(bench: Bench) -> None:
    vlan, other = (await bench.l2.vlans())[:2]
    await bench.l2.ensure_network("order-1/l2", vlan)
    await refuses(bench.l2.ensure_network("order-1/l2", other))


async def of_many_who_ask_at_once_one_gets_the_vlan(bench: Bench) -> None:
    vlan = (await bench.l2.vlans())[0]
    asked = [bench.l2.ensure_network(f"order-{n}/l2", vlan) for n in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, Refused) for answer in answers) == 7, answers
    assert len(await bench.l2.list_owned()) == 1


async def a_released_vlan_can_be_had_again(bench: Bench) -> None:
    vlan = (await bench.l2.vlans())[0]
    await bench.l2.ensure_network("order-1/l2", vlan)
    await bench.until_done(lambda: bench.l2.release_network("order-1/l2"))
    assert await bench.l2.release_network("order-1/l2") == Done()
    await bench.until_done(lambda: bench.l2.ensure_network("order-2/l2", vlan))


async def releasing_nothing_is_done(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    assert await bench.l2.release_network("order-1/l2") == Done()
    assert await bench.l2.release_port("order-1/port/a", host) == Done()
    assert await bench.l2.release_port("order-1/port/a", "no-such-host") == Done()


async def a_network_with_ports_stays_until_they_are_gone(bench: Bench) -> None:
    (host,) = await _bound(bench, "order-1", 0, 1)
    assert isinstance(await bench.l2.release_network("order-1/l2"), Waiting)
    assert "order-1/l2" in keys(await bench.l2.list_owned())
    await bench.until_done(lambda: bench.l2.release_port("order-1/port/0", host))
    await bench.until_done(lambda: bench.l2.release_network("order-1/l2"))
    assert await bench.l2.list_owned() == []


async def a_port_bound_again_is_bound_once(bench: Bench) -> None:
    (host,) = await _bound(bench, "order-1", 0, 1)
    again = await bench.l2.ensure_port("order-1/port/0", "order-1/l2", host)
    assert isinstance(again, Done)
    assert again.facts["port"]
    assert keys(await bench.l2.list_owned("order-1/port/")) == ["order-1/port/0"]


async def a_port_bound_under_another_key_is_refused_and_left_alone(bench: Bench) -> None:
    (host,) = await _bound(bench, "order-1", 0, 1)
    other = (await bench.l2.vlans())[1]
    await bench.until_done(lambda: bench.l2.ensure_network("order-2/l2", other))
    await refuses(bench.l2.ensure_port("order-2/port/0", "order-2/l2", host))
    assert await bench.l2.release_port("order-2/port/0", host) == Done()
    assert keys(await bench.l2.list_owned("order-1/port/")) == ["order-1/port/0"]


async def a_port_of_the_same_key_is_moved(bench: Bench) -> None:
    (host,) = await _bound(bench, "order-1", 0, 1)
    other = (await bench.l2.vlans())[1]
    await bench.until_done(lambda: bench.l2.ensure_network("order-1/l2-b", other))
    move = ("order-1/port/0", "order-1/l2-b", host)
    await bench.until_done(lambda: bench.l2.ensure_port(*move))
    await bench.until_done(lambda: bench.l2.release_network("order-1/l2"))
    assert isinstance(await bench.l2.release_network("order-1/l2-b"), Waiting)


async def a_port_cannot_be_bound_to_no_network(bench: Bench) -> None:
    (host,) = await bench.free_hosts(1)
    await unavailable(bench.l2.ensure_port("order-1/port/0", "order-1/l2", host))
    assert await bench.l2.list_owned() == []


async def a_service_that_does_not_answer_is_unavailable(bench: Bench) -> None:
    vlan = (await bench.l2.vlans())[0]
    await bench.l2.check_ready()
    await bench.misbehave("l2", "dead")
    await unavailable(bench.l2.check_ready())
    await unavailable(bench.l2.ensure_network("order-1/l2", vlan))
    await unavailable(bench.l2.release_network("order-1/l2"))
    await bench.misbehave("l2", "none")
    assert await bench.l2.list_owned() == []


async def done_means_it_is_so(bench: Bench) -> None:
    (host,) = await _bound(bench, "order-1", 0, 1)
    (other,) = await bench.free_hosts(1)
    vlan = (await bench.l2.vlans())[1]
    await bench.misbehave("l2", "lies")
    await not_confirmed(bench.l2.ensure_network("order-2/l2", vlan))
    await not_confirmed(bench.l2.ensure_port("order-1/port/1", "order-1/l2", other))
    await not_confirmed(bench.l2.release_port("order-1/port/0", host))
    await not_confirmed(bench.l2.release_network("order-1/l2"))


async def closing_twice_is_fine(bench: Bench) -> None:
    await bench.l2.close()
    await bench.l2.close()


async def _bound(bench: Bench, order: str, vlan_number: int, count: int) -> list[str]:
    """A network of the order with that many ports bound to it; answers their hosts."""
    vlan = (await bench.l2.vlans())[vlan_number]
    await bench.until_done(lambda: bench.l2.ensure_network(f"{order}/l2", vlan))
    hosts = await bench.free_hosts(count)
    for number, host in enumerate(hosts):
        await bench.until_done(partial(bench.inventory.ensure_held, f"{order}/host/{number}", host))
        bind = partial(bench.l2.ensure_port, f"{order}/port/{number}", f"{order}/l2", host)
        await bench.until_done(bind)
    return hosts


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_l2(rule: Rule, bench: Bench) -> None:
    await rule(bench)

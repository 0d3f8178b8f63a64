"""The layer-2 port's promises, for every driver."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from boatyard.model.errors import Refused
from boatyard.model.outcome import Done, Waiting
from tests.contracts.harness import L2Harness
from tests.contracts.rules import Rule, keys, not_confirmed, refuses, rules_of, unavailable

PORT = "l2"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def vlans_are_stable_and_usable(harness: L2Harness) -> None:
    vlans = list(await harness.l2.vlans())
    assert vlans == list(await harness.l2.vlans())
    assert all(1 <= vlan <= 4094 for vlan in vlans)
    assert len(set(vlans)) == len(vlans) > 0


async def a_network_made_again_is_one_network(harness: L2Harness) -> None:
    vlan = (await harness.l2.vlans())[0]
    first = await harness.until_done(lambda: harness.l2.ensure_network("order-1/l2", vlan))
    assert first.facts["network"]
    assert await harness.l2.ensure_network("order-1/l2", vlan) == first
    assert keys(await harness.l2.list_owned("order-1/")) == ["order-1/l2"]


async def a_vlan_in_use_under_another_key_is_refused(harness: L2Harness) -> None:
    vlan, other = (await harness.l2.vlans())[:2]
    await harness.l2.ensure_network("order-1/l2", vlan)
    await refuses(harness.l2.ensure_network("order-2/l2", vlan))
    await harness.l2.ensure_network("order-2/l2", other)
    assert keys(await harness.l2.list_owned()) == ["order-1/l2", "order-2/l2"]


async def a_key_has_one_vlan(harness: L2Harness) -> None:
    vlan, other = (await harness.l2.vlans())[:2]
    await harness.l2.ensure_network("order-1/l2", vlan)
    await refuses(harness.l2.ensure_network("order-1/l2", other))


async def of_many_who_ask_at_once_one_gets_the_vlan(harness: L2Harness) -> None:
    vlan = (await harness.l2.vlans())[0]
    asked = [harness.l2.ensure_network(f"order-{n}/l2", vlan) for n in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, Refused) for answer in answers) == 7, answers
    assert len(await harness.l2.list_owned()) == 1


async def a_released_vlan_can_be_had_again(harness: L2Harness) -> None:
    vlan = (await harness.l2.vlans())[0]
    await harness.l2.ensure_network("order-1/l2", vlan)
    await harness.until_done(lambda: harness.l2.release_network("order-1/l2"))
    assert await harness.l2.release_network("order-1/l2") == Done()
    await harness.until_done(lambda: harness.l2.ensure_network("order-2/l2", vlan))


async def releasing_nothing_is_done(harness: L2Harness) -> None:
    (host,) = await harness.hosts(1)
    assert await harness.l2.release_network("order-1/l2") == Done()
    assert await harness.l2.release_port("order-1/port/a", host) == Done()
    assert await harness.l2.release_port("order-1/port/a", "no-such-host") == Done()


async def a_network_with_ports_stays_until_they_are_gone(harness: L2Harness) -> None:
    (host,) = await _bound(harness, "order-1", 0, 1)
    assert isinstance(await harness.l2.release_network("order-1/l2"), Waiting)
    assert "order-1/l2" in keys(await harness.l2.list_owned())
    await harness.until_done(lambda: harness.l2.release_port("order-1/port/0", host))
    await harness.until_done(lambda: harness.l2.release_network("order-1/l2"))
    assert await harness.l2.list_owned() == []


async def a_port_bound_again_is_bound_once(harness: L2Harness) -> None:
    (host,) = await _bound(harness, "order-1", 0, 1)
    again = await harness.l2.ensure_port("order-1/port/0", "order-1/l2", host)
    assert isinstance(again, Done)
    assert again.facts["port"]
    assert keys(await harness.l2.list_owned("order-1/port/")) == ["order-1/port/0"]


async def a_port_bound_under_another_key_is_refused_and_left_alone(harness: L2Harness) -> None:
    (host,) = await _bound(harness, "order-1", 0, 1)
    other = (await harness.l2.vlans())[1]
    await harness.until_done(lambda: harness.l2.ensure_network("order-2/l2", other))
    await refuses(harness.l2.ensure_port("order-2/port/0", "order-2/l2", host))
    assert await harness.l2.release_port("order-2/port/0", host) == Done()
    assert keys(await harness.l2.list_owned("order-1/port/")) == ["order-1/port/0"]


async def a_port_of_the_same_key_is_moved(harness: L2Harness) -> None:
    (host,) = await _bound(harness, "order-1", 0, 1)
    other = (await harness.l2.vlans())[1]
    await harness.until_done(lambda: harness.l2.ensure_network("order-1/l2-b", other))
    move = ("order-1/port/0", "order-1/l2-b", host)
    await harness.until_done(lambda: harness.l2.ensure_port(*move))
    await harness.until_done(lambda: harness.l2.release_network("order-1/l2"))
    assert isinstance(await harness.l2.release_network("order-1/l2-b"), Waiting)


async def a_port_cannot_be_bound_to_no_network(harness: L2Harness) -> None:
    (host,) = await harness.hosts(1)
    await unavailable(harness.l2.ensure_port("order-1/port/0", "order-1/l2", host))
    assert await harness.l2.list_owned() == []


async def a_service_that_does_not_answer_is_unavailable(harness: L2Harness) -> None:
    vlan = (await harness.l2.vlans())[0]
    await harness.l2.check_ready()
    await harness.misbehave("dead")
    await unavailable(harness.l2.check_ready())
    await unavailable(harness.l2.ensure_network("order-1/l2", vlan))
    await unavailable(harness.l2.release_network("order-1/l2"))
    await harness.misbehave("none")
    assert await harness.l2.list_owned() == []


async def done_means_it_is_so(harness: L2Harness) -> None:
    (host,) = await _bound(harness, "order-1", 0, 1)
    (other,) = await harness.hosts(1)
    vlan = (await harness.l2.vlans())[1]
    await harness.misbehave("lies")
    await not_confirmed(harness.l2.ensure_network("order-2/l2", vlan))
    await not_confirmed(harness.l2.ensure_port("order-1/port/1", "order-1/l2", other))
    await not_confirmed(harness.l2.release_port("order-1/port/0", host))
    await not_confirmed(harness.l2.release_network("order-1/l2"))


async def closing_twice_is_fine(harness: L2Harness) -> None:
    await harness.l2.close()
    await harness.l2.close()


async def _bound(harness: L2Harness, order: str, vlan_number: int, count: int) -> Sequence[str]:
    """A network of the order with that many ports bound to it; answers their hosts."""
    vlan = (await harness.l2.vlans())[vlan_number]
    await harness.until_done(lambda: harness.l2.ensure_network(f"{order}/l2", vlan))
    hosts = await harness.hosts(count)
    for number, host in enumerate(hosts):
        bind = partial(harness.l2.ensure_port, f"{order}/port/{number}", f"{order}/l2", host)
        await harness.until_done(bind)
    return hosts


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_l2(rule: Rule, harness: L2Harness) -> None:
    await rule(harness)

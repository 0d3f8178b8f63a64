"""The layer-3 port's promises, for every driver."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools

import pytest

from boatyard.model.errors import Refused
from boatyard.model.outcome import Done, Waiting
from tests.contracts.harness import L3Harness
from tests.contracts.rules import Rule, keys, not_confirmed, refuses, rules_of, unavailable

PORT = "l3"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def ranges_are_stable_and_without_doubles(harness: L3Harness) -> None:
    for ask in (harness.l3.subnets, harness.l3.floating_addresses):
        found = list(await ask())
        assert found == list(await ask())
        assert len(set(found)) == len(found) > 1
    subnets = [ipaddress.ip_network(cidr) for cidr in await harness.l3.subnets()]
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(sorted(subnets)))


async def a_network_made_again_is_one_network(harness: L3Harness) -> None:
    cidr = (await harness.l3.subnets())[0]
    first = await harness.until_done(lambda: harness.l3.ensure_network("order-1/l3", cidr))
    assert ipaddress.ip_address(first.facts["gateway"]) in ipaddress.ip_network(cidr)
    assert await harness.l3.ensure_network("order-1/l3", cidr) == first
    assert keys(await harness.l3.list_owned()) == ["order-1/l3"]


async def a_subnet_in_use_under_another_key_is_refused(harness: L3Harness) -> None:
    cidr = (await harness.l3.subnets())[0]
    await harness.l3.ensure_network("order-1/l3", cidr)
    await refuses(harness.l3.ensure_network("order-2/l3", cidr))
    assert keys(await harness.l3.list_owned()) == ["order-1/l3"]


async def a_key_has_one_subnet(harness: L3Harness) -> None:
    cidr, other = (await harness.l3.subnets())[:2]
    await harness.l3.ensure_network("order-1/l3", cidr)
    await refuses(harness.l3.ensure_network("order-1/l3", other))


async def what_is_not_the_hubs_is_refused(harness: L3Harness) -> None:
    await refuses(harness.l3.ensure_network("order-1/l3", "203.0.113.0/24"))
    await _network(harness, "order-2")
    ask = ("order-2/api-address", "203.0.113.7", "order-2/l3", "api")
    await refuses(harness.l3.ensure_floating(*ask))
    assert await harness.l3.list_owned("order-1/") == []


async def of_many_who_ask_at_once_one_gets_the_subnet(harness: L3Harness) -> None:
    cidr = (await harness.l3.subnets())[0]
    asked = [harness.l3.ensure_network(f"order-{n}/l3", cidr) for n in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, Refused) for answer in answers) == 7, answers
    assert len(await harness.l3.list_owned()) == 1


async def releasing_nothing_is_done(harness: L3Harness) -> None:
    assert await harness.l3.release_network("order-1/l3") == Done()
    assert await harness.l3.release_binding("order-1/binding") == Done()
    assert await harness.l3.release_floating("order-1/api-address") == Done()


async def a_released_subnet_can_be_had_again(harness: L3Harness) -> None:
    cidr = (await harness.l3.subnets())[0]
    await harness.l3.ensure_network("order-1/l3", cidr)
    await harness.until_done(lambda: harness.l3.release_network("order-1/l3"))
    assert await harness.l3.release_network("order-1/l3") == Done()
    await harness.until_done(lambda: harness.l3.ensure_network("order-2/l3", cidr))


async def networks_tied_again_are_tied_once(harness: L3Harness) -> None:
    await _network(harness, "order-1")
    again = await harness.l3.ensure_binding("order-1/binding", "order-1/l3", "order-1/l2")
    assert isinstance(again, Done)
    assert keys(await harness.l3.list_owned()) == ["order-1/binding", "order-1/l3"]
    await harness.until_done(lambda: harness.l3.release_binding("order-1/binding"))
    assert await harness.l3.release_binding("order-1/binding") == Done()
    assert keys(await harness.l3.list_owned()) == ["order-1/l3"]


async def nothing_can_be_tied_to_a_network_that_is_missing(harness: L3Harness) -> None:
    await unavailable(harness.l3.ensure_binding("order-1/binding", "order-1/l3", "order-1/l2"))
    cidr = (await harness.l3.subnets())[0]
    await harness.until_done(lambda: harness.l3.ensure_network("order-1/l3", cidr))
    await unavailable(harness.l3.ensure_binding("order-1/binding", "order-1/l3", "order-1/l2"))
    assert keys(await harness.l3.list_owned()) == ["order-1/l3"]


async def an_address_routed_again_is_routed_once(harness: L3Harness) -> None:
    await _network(harness, "order-1")
    address = (await harness.l3.floating_addresses())[0]
    route = ("order-1/api-address", address, "order-1/l3", "api")
    await harness.until_done(lambda: harness.l3.ensure_floating(*route))
    assert isinstance(await harness.l3.ensure_floating(*route), Done)
    assert keys(await harness.l3.list_owned("order-1/api")) == ["order-1/api-address"]
    await harness.until_done(lambda: harness.l3.release_floating("order-1/api-address"))
    assert await harness.l3.release_floating("order-1/api-address") == Done()
    assert await harness.l3.list_owned("order-1/api") == []


async def an_address_in_use_under_another_key_is_refused(harness: L3Harness) -> None:
    await _network(harness, "order-1")
    address = (await harness.l3.floating_addresses())[0]
    await harness.l3.ensure_floating("order-1/api-address", address, "order-1/l3", "api")
    other = ("order-1/ingress-address", address, "order-1/l3", "ingress")
    await refuses(harness.l3.ensure_floating(*other))
    assert await harness.l3.release_floating("order-1/ingress-address") == Done()
    assert keys(await harness.l3.list_owned("order-1/api")) == ["order-1/api-address"]


async def an_address_cannot_be_routed_to_no_network(harness: L3Harness) -> None:
    address = (await harness.l3.floating_addresses())[0]
    await unavailable(harness.l3.ensure_floating("order-1/a", address, "order-1/l3", "api"))
    assert await harness.l3.list_owned() == []


async def a_network_stays_while_addresses_stand_in_front_of_it(harness: L3Harness) -> None:
    await _network(harness, "order-1")
    address = (await harness.l3.floating_addresses())[0]
    route = ("order-1/api-address", address, "order-1/l3", "api")
    await harness.until_done(lambda: harness.l3.ensure_floating(*route))
    assert isinstance(await harness.l3.release_network("order-1/l3"), Waiting)
    await harness.until_done(lambda: harness.l3.release_floating("order-1/api-address"))
    await harness.until_done(lambda: harness.l3.release_network("order-1/l3"))


async def a_service_that_does_not_answer_is_unavailable(harness: L3Harness) -> None:
    cidr = (await harness.l3.subnets())[0]
    await harness.l3.check_ready()
    await harness.misbehave("dead")
    await unavailable(harness.l3.check_ready())
    await unavailable(harness.l3.ensure_network("order-1/l3", cidr))
    await unavailable(harness.l3.release_network("order-1/l3"))
    await harness.misbehave("none")
    assert await harness.l3.list_owned() == []


async def done_means_it_is_so(harness: L3Harness) -> None:
    await _network(harness, "order-1")
    cidr = (await harness.l3.subnets())[1]
    address, other = (await harness.l3.floating_addresses())[:2]
    route = ("order-1/api-address", address, "order-1/l3", "api")
    await harness.until_done(lambda: harness.l3.ensure_floating(*route))
    await harness.misbehave("lies")
    await not_confirmed(harness.l3.ensure_network("order-2/l3", cidr))
    await not_confirmed(harness.l3.ensure_binding("order-1/other", "order-1/l3", "order-1/l2"))
    await not_confirmed(harness.l3.ensure_floating("order-1/x", other, "order-1/l3", "ingress"))
    await not_confirmed(harness.l3.release_floating("order-1/api-address"))
    await not_confirmed(harness.l3.release_binding("order-1/binding"))
    await not_confirmed(harness.l3.release_network("order-1/l3"))


async def closing_twice_is_fine(harness: L3Harness) -> None:
    await harness.l3.close()
    await harness.l3.close()


async def _network(harness: L3Harness, order: str) -> None:
    """Layer 2 and layer 3 of the order, tied together."""
    cidr = (await harness.l3.subnets())[0]
    await harness.make_l2_network(f"{order}/l2")
    await harness.until_done(lambda: harness.l3.ensure_network(f"{order}/l3", cidr))
    tie = (f"{order}/binding", f"{order}/l3", f"{order}/l2")
    await harness.until_done(lambda: harness.l3.ensure_binding(*tie))


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_l3(rule: Rule, harness: L3Harness) -> None:
    await rule(harness)

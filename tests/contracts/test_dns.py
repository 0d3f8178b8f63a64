"""The dns port's promises, for every driver."""

from __future__ import annotations

import asyncio

import pytest

from boatyard.model.errors import Refused
from boatyard.model.outcome import Done
from tests.contracts.harness import DnsHarness
from tests.contracts.rules import Rule, keys, not_confirmed, refuses, rules_of, unavailable

PORT = "dns"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def the_zone_has_no_trailing_dot(harness: DnsHarness) -> None:
    zone = await harness.dns.zone()
    assert zone
    assert not zone.endswith(".")


async def a_record_made_again_is_one_record(harness: DnsHarness) -> None:
    name = await _name(harness, "api.one")
    await harness.until_done(lambda: harness.dns.ensure_record("order-1/api", name, "192.0.2.1"))
    assert isinstance(await harness.dns.ensure_record("order-1/api", name, "192.0.2.1"), Done)
    (owned,) = await harness.dns.list_owned("order-1/")
    assert (owned.key, owned.name) == ("order-1/api", name)


async def a_record_of_the_same_key_is_corrected(harness: DnsHarness) -> None:
    name, other = await _name(harness, "api.one"), await _name(harness, "api.two")
    await harness.until_done(lambda: harness.dns.ensure_record("order-1/api", name, "192.0.2.1"))
    await harness.until_done(lambda: harness.dns.ensure_record("order-1/api", name, "192.0.2.2"))
    await harness.until_done(lambda: harness.dns.ensure_record("order-1/api", other, "192.0.2.2"))
    (owned,) = await harness.dns.list_owned()
    assert owned.name == other
    await harness.until_done(lambda: harness.dns.ensure_record("order-2/api", name, "192.0.2.3"))


async def the_zone_answers_what_records_say(harness: DnsHarness) -> None:
    name, other = await _name(harness, "*.apps.one"), await _name(harness, "api.one")
    assert await harness.dns.resolve(name) is None
    await harness.until_done(lambda: harness.dns.ensure_record("order-1/apps", name, "192.0.2.1"))
    assert await harness.dns.resolve(name) == "192.0.2.1"
    assert await harness.dns.resolve(other) is None
    await harness.until_done(lambda: harness.dns.ensure_record("order-1/apps", name, "192.0.2.2"))
    assert await harness.dns.resolve(name) == "192.0.2.2"
    await harness.until_done(lambda: harness.dns.release_record("order-1/apps"))
    assert await harness.dns.resolve(name) is None


async def a_record_of_another_key_is_refused(harness: DnsHarness) -> None:
    name = await _name(harness, "api.one")
    await harness.dns.ensure_record("order-1/api", name, "192.0.2.1")
    await refuses(harness.dns.ensure_record("order-2/api", name, "192.0.2.2"))
    assert await harness.dns.release_record("order-2/api") == Done()
    assert keys(await harness.dns.list_owned()) == ["order-1/api"]


async def of_many_who_ask_at_once_one_gets_the_name(harness: DnsHarness) -> None:
    name = await _name(harness, "api.one")
    asked = [harness.dns.ensure_record(f"order-{n}/api", name, "192.0.2.1") for n in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, Refused) for answer in answers) == 7, answers
    assert len(await harness.dns.list_owned()) == 1


async def a_name_outside_the_zone_is_refused(harness: DnsHarness) -> None:
    await refuses(harness.dns.ensure_record("order-1/api", "api.elsewhere.invalid", "192.0.2.1"))
    assert await harness.dns.list_owned() == []


async def releasing_nothing_is_done(harness: DnsHarness) -> None:
    assert await harness.dns.release_record("order-1/api") == Done()


async def a_released_name_can_be_had_again(harness: DnsHarness) -> None:
    name = await _name(harness, "api.one")
    await harness.dns.ensure_record("order-1/api", name, "192.0.2.1")
    await harness.until_done(lambda: harness.dns.release_record("order-1/api"))
    assert await harness.dns.release_record("order-1/api") == Done()
    await harness.until_done(lambda: harness.dns.ensure_record("order-2/api", name, "192.0.2.1"))


async def owned_things_are_listed_by_prefix(harness: DnsHarness) -> None:
    for order in ("order-1", "order-11"):
        name = await _name(harness, f"api.{order}")
        await harness.dns.ensure_record(f"{order}/api", name, "192.0.2.1")
    assert keys(await harness.dns.list_owned("order-1/")) == ["order-1/api"]
    assert keys(await harness.dns.list_owned("order-1")) == ["order-1/api", "order-11/api"]
    assert keys(await harness.dns.list_owned("order-2")) == []


async def a_service_that_does_not_answer_is_unavailable(harness: DnsHarness) -> None:
    name = await _name(harness, "api.one")
    await harness.dns.check_ready()
    await harness.misbehave("dead")
    await unavailable(harness.dns.check_ready())
    await unavailable(harness.dns.ensure_record("order-1/api", name, "192.0.2.1"))
    await unavailable(harness.dns.release_record("order-1/api"))
    await unavailable(harness.dns.resolve(name))
    await harness.misbehave("none")
    assert await harness.dns.list_owned() == []


async def done_means_it_is_so(harness: DnsHarness) -> None:
    name, other = await _name(harness, "api.one"), await _name(harness, "api.two")
    await harness.until_done(lambda: harness.dns.ensure_record("order-1/api", name, "192.0.2.1"))
    await harness.misbehave("lies")
    await not_confirmed(harness.dns.ensure_record("order-2/api", other, "192.0.2.1"))
    await not_confirmed(harness.dns.ensure_record("order-1/api", name, "192.0.2.2"))
    await not_confirmed(harness.dns.release_record("order-1/api"))


async def closing_twice_is_fine(harness: DnsHarness) -> None:
    await harness.dns.close()
    await harness.dns.close()


async def _name(harness: DnsHarness, start: str) -> str:
    return f"{start}.{await harness.dns.zone()}"


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_dns(rule: Rule, harness: DnsHarness) -> None:
    await rule(harness)

"""The dns port's promises, for every driver."""

from __future__ import annotations

import asyncio

import pytest

from boatyard.model.errors import Refused
from boatyard.model.outcome import Done
from tests.contracts.bench import Bench
from tests.contracts.rules import Rule, keys, not_confirmed, refuses, rules_of, unavailable

PORT = "dns"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def the_zone_has_no_trailing_dot(bench: Bench) -> None:
    zone = await bench.dns.zone()
    assert zone
    assert not zone.endswith(".")


async def a_record_made_again_is_one_record(bench: Bench) -> None:
    name = await _name(bench, "api.one")
    await bench.until_done(lambda: bench.dns.ensure_record("order-1/api", name, "192.0.2.1"))
    assert isinstance(await bench.dns.ensure_record("order-1/api", name, "192.0.2.1"), Done)
    (owned,) = await bench.dns.list_owned("order-1/")
    assert (owned.key, owned.name) == ("order-1/api", name)


async def a_record_of_the_same_key_is_corrected(bench: Bench) -> None:
    name, other = await _name(bench, "api.one"), await _name(bench, "api.two")
    await bench.until_done(lambda: bench.dns.ensure_record("order-1/api", name, "192.0.2.1"))
    await bench.until_done(lambda: bench.dns.ensure_record("order-1/api", name, "192.0.2.2"))
    await bench.until_done(lambda: bench.dns.ensure_record("order-1/api", other, "192.0.2.2"))
    (owned,) = await bench.dns.list_owned()
    assert owned.name == other
    await bench.until_done(lambda: bench.dns.ensure_record("order-2/api", name, "192.0.2.3"))


async def the_zone_answers_what_records_say(bench: Bench) -> None:
    name, other = await _name(bench, "*.apps.one"), await _name(bench, "api.one")
    assert await bench.dns.resolve(name) is None
    await bench.until_done(lambda: bench.dns.ensure_record("order-1/apps", name, "192.0.2.1"))
    assert await bench.dns.resolve(name) == "192.0.2.1"
    assert await bench.dns.resolve(other) is None
    await bench.until_done(lambda: bench.dns.ensure_record("order-1/apps", name, "192.0.2.2"))
    assert await bench.dns.resolve(name) == "192.0.2.2"
    await bench.until_done(lambda: bench.dns.release_record("order-1/apps"))
    assert await bench.dns.resolve(name) is None


async def a_record_of_another_key_is_refused(bench: Bench) -> None:
    name = await _name(bench, "api.one")
    await bench.dns.ensure_record("order-1/api", name, "192.0.2.1")
    await refuses(bench.dns.ensure_record("order-2/api", name, "192.0.2.2"))
    assert await bench.dns.release_record("order-2/api") == Done()
    assert keys(await bench.dns.list_owned()) == ["order-1/api"]


async def of_many_who_ask_at_once_one_gets_the_name(bench: Bench) -> None:
    name = await _name(bench, "api.one")
    asked = [bench.dns.ensure_record(f"order-{n}/api", name, "192.0.2.1") for n in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, Refused) for answer in answers) == 7, answers
    assert len(await bench.dns.list_owned()) == 1


async def a_name_outside_the_zone_is_refused(bench: Bench) -> None:
    await refuses(bench.dns.ensure_record("order-1/api", "api.elsewhere.invalid", "192.0.2.1"))
    assert await bench.dns.list_owned() == []


async def releasing_nothing_is_done(bench: Bench) -> None:
    assert await bench.dns.release_record("order-1/api") == Done()


async def a_released_name_can_be_had_again(bench: Bench) -> None:
    name = await _name(bench, "api.one")
    await bench.dns.ensure_record("order-1/api", name, "192.0.2.1")
    await bench.until_done(lambda: bench.dns.release_record("order-1/api"))
    assert await bench.dns.release_record("order-1/api") == Done()
    await bench.until_done(lambda: bench.dns.ensure_record("order-2/api", name, "192.0.2.1"))


async def owned_things_are_listed_by_prefix(bench: Bench) -> None:
    for order in ("order-1", "order-11"):
        name = await _name(bench, f"api.{order}")
        await bench.dns.ensure_record(f"{order}/api", name, "192.0.2.1")
    assert keys(await bench.dns.list_owned("order-1/")) == ["order-1/api"]
    assert keys(await bench.dns.list_owned("order-1")) == ["order-1/api", "order-11/api"]
    assert keys(await bench.dns.list_owned("order-2")) == []


async def a_service_that_does_not_answer_is_unavailable(bench: Bench) -> None:
    name = await _name(bench, "api.one")
    await bench.dns.check_ready()
    await bench.misbehave("dns", "dead")
    await unavailable(bench.dns.check_ready())
    await unavailable(bench.dns.ensure_record("order-1/api", name, "192.0.2.1"))
    await unavailable(bench.dns.release_record("order-1/api"))
    await unavailable(bench.dns.resolve(name))
    await bench.misbehave("dns", "none")
    assert await bench.dns.list_owned() == []


async def done_means_it_is_so(bench: Bench) -> None:
    name, other = await _name(bench, "api.one"), await _name(bench, "api.two")
    await bench.until_done(lambda: bench.dns.ensure_record("order-1/api", name, "192.0.2.1"))
    await bench.misbehave("dns", "lies")
    await not_confirmed(bench.dns.ensure_record("order-2/api", other, "192.0.2.1"))
    await not_confirmed(bench.dns.ensure_record("order-1/api", name, "192.0.2.2"))
    await not_confirmed(bench.dns.release_record("order-1/api"))


async def closing_twice_is_fine(bench: Bench) -> None:
    await bench.dns.close()
    await bench.dns.close()


async def _name(bench: Bench, start: str) -> str:
    return f"{start}.{await bench.dns.zone()}"


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_dns(rule: Rule, bench: Bench) -> None:
    await rule(bench)

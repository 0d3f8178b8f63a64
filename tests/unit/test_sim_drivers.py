"""What the simulated drivers make of the twin's answers, and what the twin's zone shows when."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.infra.dns.drivers.sim import SimDns
from boatyard.infra.l2.drivers.sim import SimL2
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Done, Waiting
from boatyard.twin.layout import demo_layout
from boatyard.twin.world import TwinWorld

HUB = "boston-1"


class Answers:
    """A twin that answers each verb as told."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    async def call(self, verb: str, /, **arguments: Any) -> Any:
        return self._answers[verb.partition(".")[2]]


def seen(**fields: Any) -> dict[str, Any]:
    return {"key": "o/port", "leaving": False, "ready": True, **fields}


async def test_all_vlans_of_the_range_are_handed_out() -> None:
    driver = SimL2(Answers(vlans=[100, 103]), HUB)

    assert list(await driver.vlans()) == [100, 101, 102, 103]


@pytest.mark.parametrize(
    "looks, believed",
    [
        pytest.param(seen(ref="o/l2"), True, id="as it should be"),
        pytest.param(seen(ref="o/old"), False, id="on another network"),
        pytest.param(seen(ref="o/l2", ready=False), False, id="not ready"),
        pytest.param(seen(ref="o/l2", key="p/port"), False, id="another's"),
        pytest.param(None, False, id="not there"),
    ],
)
async def test_a_port_that_is_said_to_be_bound_is_looked_at(looks: Any, believed: bool) -> None:
    driver = SimL2(Answers(ensure_port=Done(), look=looks), HUB)

    if believed:
        assert await driver.ensure_port("o/port", "o/l2", "r1-n1") == Done()
    else:
        with pytest.raises(Unavailable):
            await driver.ensure_port("o/port", "o/l2", "r1-n1")


async def test_a_record_with_another_address_is_not_believed() -> None:
    looks = {**seen(name="api.x", extra=["10.0.0.9"]), "key": "o/name"}
    driver = SimDns(Answers(ensure_record=Done(), look=looks), HUB)

    with pytest.raises(Unavailable):
        await driver.ensure_record("o/name", "api.x", "10.0.0.1")


def test_a_name_is_answered_once_the_zone_shows_it() -> None:
    world, moment = TwinWorld(demo_layout()), 1_000_000.0
    world.call("twin.set_delays", {"profile": "instant", "overrides": {"record": 5.0}}, moment)

    def do(verb: str, **arguments: Any) -> Any:
        reply = world.call(f"dns.{verb}", {"hub": HUB, **arguments}, moment)
        assert reply.error is None
        return reply.value

    name = f"api.one.{do('zone')}"
    made = do("ensure_record", key="o/name", name=name, address="10.0.0.1")
    assert isinstance(made, Waiting)
    assert do("resolve", name=name) == ""

    moment += 6
    assert do("resolve", name=name) == "10.0.0.1"

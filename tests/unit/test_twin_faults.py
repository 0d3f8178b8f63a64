"""Faults by name, as callers of the twin in this process meet them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Done
from boatyard.twin.calls import LocalTwin, ObservedTwin
from boatyard.twin.layout import demo_layout
from boatyard.twin.world import VERBS, TwinWorld

HUB = "boston-1"


class FaultClock:
    def __init__(self) -> None:
        self.slept = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds


@pytest.fixture
def clock() -> FaultClock:
    return FaultClock()


@pytest.fixture
def twin(clock: FaultClock) -> LocalTwin:
    return LocalTwin(TwinWorld(demo_layout()), clock)


async def fault(twin: LocalTwin, service: str, profile: str, **args: Any) -> None:
    args.setdefault("hub", HUB)
    await twin.call("twin.set_fault", service=service, profile=profile, **args)


async def record(twin: LocalTwin, number: int = 0, hub: str = HUB) -> Any:
    name = f"n{number}.{'boston' if hub == HUB else 'lyon'}.example"
    key = f"o/{number}"
    return await twin.call("dns.ensure_record", hub=hub, key=key, name=name, address="192.0.2.1")


async def test_slow_answers_later_and_does_its_work(twin: LocalTwin, clock: FaultClock) -> None:
    await fault(twin, "dns", "slow", seconds=2.5)

    assert isinstance(await record(twin), Done)
    assert clock.slept == 2.5


async def test_dead_does_nothing_until_it_is_switched_off(twin: LocalTwin) -> None:
    await fault(twin, "dns", "dead")
    with pytest.raises(Unavailable):
        await record(twin)
    assert await twin.call("twin.truth") == {}

    await fault(twin, "dns", "none")
    assert isinstance(await record(twin), Done)


async def test_flaky_fails_every_nth_call_half_of_them_after_the_work(twin: LocalTwin) -> None:
    await fault(twin, "dns", "flaky", every=3)

    failed = []
    for number in range(12):
        try:
            await record(twin, number)
        except Unavailable:
            failed.append(number)
    made = {effect["key"] for effect in await twin.call("twin.effects") if effect["applied"]}

    assert failed == [2, 5, 8, 11]
    assert [number for number in failed if f"o/{number}" in made] == [5, 11]


async def test_lies_says_done_and_does_nothing(twin: LocalTwin) -> None:
    await fault(twin, "dns", "lies")

    assert await record(twin) == Done()
    assert await twin.call("twin.truth") == {}
    assert await twin.call("dns.look", hub=HUB, kind="record", id="o/0") is None


def test_every_effect_can_lie_and_no_question_can() -> None:
    lying = {verb for verb, signature in VERBS.items() if signature.can_lie}

    assert len(lying) == 20
    assert all(verb.partition(".")[2].startswith(("ensure_", "release_")) for verb in lying)


@pytest.mark.parametrize(
    "place, target, hit, missed",
    [
        pytest.param(HUB, "dns", ["dns@boston"], ["dns@lyon", "l2@boston"], id="one service"),
        pytest.param("*", "dns", ["dns@boston", "dns@lyon"], ["l2@boston"], id="on every hub"),
        pytest.param(HUB, "*", ["dns@boston", "l2@boston"], ["dns@lyon"], id="a whole hub"),
        pytest.param(HUB, "dns.ensure_record", ["dns@boston"], ["zone@boston"], id="one verb"),
    ],
)
async def test_a_fault_stays_in_its_place(
    place: str, target: str, hit: list[str], missed: list[str], twin: LocalTwin
) -> None:
    calls = {
        "dns@boston": lambda: record(twin),
        "dns@lyon": lambda: record(twin, hub="lyon-1"),
        "l2@boston": lambda: twin.call("l2.ping", hub=HUB),
        "zone@boston": lambda: twin.call("dns.zone", hub=HUB),
    }
    await fault(twin, target, "dead", hub=place)

    for name in hit:
        with pytest.raises(Unavailable):
            await calls[name]()
    for name in missed:
        await calls[name]()


async def test_the_nearer_fault_wins_and_all_can_be_cleared(twin: LocalTwin) -> None:
    await fault(twin, "*", "dead", hub="*")
    await fault(twin, "dns", "lies")
    assert await record(twin) == Done()
    assert {entry["profile"] for entry in await twin.call("twin.faults")} == {"dead", "lies"}

    await twin.call("twin.clear_faults")

    assert await twin.call("twin.faults") == []
    assert isinstance(await record(twin, hub="lyon-1"), Done)


async def test_effects_are_announced_before_and_after_and_questions_are_not(
    twin: LocalTwin,
) -> None:
    points: list[str] = []
    observed = ObservedTwin(twin, points.append)

    await observed.call("dns.zone", hub=HUB)
    await observed.call("dns.release_record", hub=HUB, key="o/0")
    await observed.close()

    assert points == ["before:dns.release_record", "after:dns.release_record"]

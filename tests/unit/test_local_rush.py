"""Many clusters at once: everybody has an API before the first has its controllers, but nobody waits for ever."""

from __future__ import annotations

from boatyard.platforms.drivers.local.rush import LONGEST, Rush


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_who_has_arrived_waits_for_those_who_are_coming() -> None:
    rush = Rush(Clock())
    rush.begin("a")
    rush.begin("b")
    rush.arrive("a")
    assert rush.is_on("a")
    rush.arrive("b")
    assert not rush.is_on("a")


def test_one_alone_waits_for_nobody() -> None:
    rush = Rush(Clock())
    rush.begin("a")
    rush.arrive("a")
    assert not rush.is_on("a")


def test_who_comes_no_more_is_not_waited_for() -> None:
    rush = Rush(Clock())
    rush.begin("a")
    rush.begin("b")
    rush.arrive("a")
    rush.leave("b")
    assert not rush.is_on("a")


def test_one_that_never_arrives_holds_up_nobody_for_long() -> None:
    clock = Clock()
    rush = Rush(clock)
    rush.begin("stuck")
    clock.now += LONGEST
    rush.begin("a")
    rush.arrive("a")
    assert not rush.is_on("a")


def test_nobody_waits_for_ever_while_more_and_more_come() -> None:
    clock = Clock()
    rush = Rush(clock)
    rush.begin("a")
    rush.arrive("a")
    for number in range(20):
        rush.begin(f"other-{number}")
        clock.now += 1
    assert not rush.is_on("a")


def test_what_was_said_twice_counts_from_the_first_time() -> None:
    clock = Clock()
    rush = Rush(clock)
    rush.begin("b")
    clock.now += LONGEST - 1
    rush.begin("b")
    rush.begin("a")
    rush.arrive("a")
    assert rush.is_on("a")
    clock.now += 2
    assert not rush.is_on("a")

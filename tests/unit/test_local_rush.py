"""Many clusters at once: everybody has an API before the first has its controllers, but nobody waits for ever."""

from __future__ import annotations

from boatyard.platforms.drivers.local.startup_throttle import MAX_WAIT_SECONDS, StartupThrottle


class RushClock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_who_has_arrived_waits_for_those_who_are_coming() -> None:
    rush = StartupThrottle(RushClock())
    rush.mark_starting("a")
    rush.mark_starting("b")
    rush.mark_started("a")
    assert rush.should_wait("a")
    rush.mark_started("b")
    assert not rush.should_wait("a")


def test_one_alone_waits_for_nobody() -> None:
    rush = StartupThrottle(RushClock())
    rush.mark_starting("a")
    rush.mark_started("a")
    assert not rush.should_wait("a")


def test_who_comes_no_more_is_not_waited_for() -> None:
    rush = StartupThrottle(RushClock())
    rush.mark_starting("a")
    rush.mark_starting("b")
    rush.mark_started("a")
    rush.remove("b")
    assert not rush.should_wait("a")


def test_one_that_never_arrives_holds_up_nobody_for_long() -> None:
    clock = RushClock()
    rush = StartupThrottle(clock)
    rush.mark_starting("stuck")
    clock.now += MAX_WAIT_SECONDS
    rush.mark_starting("a")
    rush.mark_started("a")
    assert not rush.should_wait("a")


def test_nobody_waits_for_ever_while_more_and_more_come() -> None:
    clock = RushClock()
    rush = StartupThrottle(clock)
    rush.mark_starting("a")
    rush.mark_started("a")
    for number in range(20):
        rush.mark_starting(f"other-{number}")
        clock.now += 1
    assert not rush.should_wait("a")


def test_what_was_said_twice_counts_from_the_first_time() -> None:
    clock = RushClock()
    rush = StartupThrottle(clock)
    rush.mark_starting("b")
    clock.now += MAX_WAIT_SECONDS - 1
    rush.mark_starting("b")
    rush.mark_starting("a")
    rush.mark_started("a")
    assert rush.should_wait("a")
    clock.now += 2
    assert not rush.should_wait("a")

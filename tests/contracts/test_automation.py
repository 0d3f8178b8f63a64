"""The automation port's promises, for every driver.

Drivers that need a real API server or real programs run these rules where those are; here they run against a driver
in memory, and are seen to fail against one with a fault.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import pytest

from boatyard.automation.port import RUN_FAILED, Automation, RunEvent, RunSpec
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, OwnedObject, Waiting
from tests.contracts.rules import keys, refuses, rules_of, unavailable
from tests.support.memory_automation import MemoryAutomation, Started

PORT = "automation"
MAX_LOOKS = 200
pytestmark = pytest.mark.asyncio(loop_scope="module")

Rule = Callable[["AutomationHarness"], Awaitable[None]]


class AutomationHarness(Protocol):
    """What the rules work on: a driver, and whoever carries out its runs."""

    automation: Automation

    def order(self) -> str:
        """An order id that nothing carries yet."""

    def started(self) -> Sequence[Started]:
        """Every run that was started, also when it was started again."""

    async def finish(self, *, message: str = "", **facts: str) -> None:
        """What is under way comes to its end: content, with these facts; with a message, not."""

    async def misbehave(self, mood: str) -> None:
        """ "dead" or "none"."""

    async def wait(self, seconds: float) -> None: ...


async def a_run_is_started_once_and_found_by_its_key(harness: AutomationHarness) -> None:
    key = f"{harness.order()}/run"
    for _ in range(3):
        assert isinstance(await harness.automation.ensure_run(key, _wanted()), Waiting)
    assert len(harness.started()) == 1
    await harness.finish(url="https://one.example")
    done = await _until_done(harness, key, _wanted())
    assert done.facts == {"url": "https://one.example"}
    assert len(harness.started()) == 1


async def the_same_attempt_is_never_run_again(harness: AutomationHarness) -> None:
    key = f"{harness.order()}/run"
    await _carry_out(harness, key, _wanted(), state="first")
    for _ in range(3):
        assert await harness.automation.ensure_run(key, _wanted()) == Done({"state": "first"})
    assert len(harness.started()) == 1


async def another_attempt_is_run_again(harness: AutomationHarness) -> None:
    key = f"{harness.order()}/run"
    await _carry_out(harness, key, _wanted(1), state="first")
    done = await _carry_out(harness, key, _wanted(2), state="second")
    assert done.facts == {"state": "second"}
    assert [one.attempt for one in harness.started()] == [1, 2]


async def a_run_that_failed_is_refused_in_its_own_words_and_stays_so(
    harness: AutomationHarness,
) -> None:
    key = f"{harness.order()}/run"
    await _start(harness, key, _wanted())
    await harness.finish(message="Create the thing: no room left")
    for _ in range(2):
        with pytest.raises(Refused) as caught:
            await _until_done(harness, key, _wanted())
        assert caught.value.reason == RUN_FAILED
        assert "no room left" in str(caught.value)
    assert len(harness.started()) == 1


async def a_failed_run_can_be_tried_again(harness: AutomationHarness) -> None:
    key = f"{harness.order()}/run"
    await _start(harness, key, _wanted(1))
    await harness.finish(message="no")
    await refuses(_until_done(harness, key, _wanted(1)), RUN_FAILED)
    assert await _carry_out(harness, key, _wanted(2)) == Done()


async def what_is_given_arrives_as_it_is(harness: AutomationHarness) -> None:
    values = {"text": "{{ 1 + 1 }}\n$(touch x) 'é' \u2028", "list": [1, None, {"a": True}]}
    await _carry_out(harness, f"{harness.order()}/run", RunSpec("act", "", values=values))
    (started,) = harness.started()
    assert started.action == "act"
    assert started.values == values


async def releasing_nothing_is_done(harness: AutomationHarness) -> None:
    assert await harness.automation.release_run(f"{harness.order()}/run") == Done()


async def a_released_run_is_forgotten(harness: AutomationHarness) -> None:
    order = harness.order()
    await _carry_out(harness, f"{order}/run", _wanted(), state="first")
    assert await harness.automation.release_run(f"{order}/run") == Done()
    assert await harness.automation.list_owned(f"{order}/") == []
    assert await harness.automation.events(f"{order}/run") == ()
    assert await _carry_out(harness, f"{order}/run", _wanted()) == Done()
    assert len(harness.started()) == 2


async def a_run_under_way_can_be_released(harness: AutomationHarness) -> None:
    order = harness.order()
    await _start(harness, f"{order}/run", _wanted())
    assert await harness.automation.release_run(f"{order}/run") == Done()
    await harness.finish(state="late")
    assert isinstance(await harness.automation.ensure_run(f"{order}/run", _wanted()), Waiting)


async def owned_things_are_listed_by_prefix(harness: AutomationHarness) -> None:
    first, second = harness.order(), harness.order()
    for order in (first, second):
        await harness.automation.ensure_run(f"{order}/run", _wanted())
    assert keys(await harness.automation.list_owned(f"{first}/")) == [f"{first}/run"]
    listed = keys(await harness.automation.list_owned())
    assert {f"{first}/run", f"{second}/run"} <= set(listed)
    assert await harness.automation.list_owned("nobody/") == []


async def a_story_is_told_in_order_and_without_gaps(harness: AutomationHarness) -> None:
    key = f"{harness.order()}/run"
    assert list(await harness.automation.events(key)) == []
    await _carry_out(harness, key, _wanted())
    events = await harness.automation.events(key)
    assert [one.number for one in events] == list(range(1, len(events) + 1))
    assert events[-1].kind == "end"
    assert list(await harness.automation.events(key, after=1)) == list(events[1:])


async def who_does_not_answer_is_unavailable(harness: AutomationHarness) -> None:
    key = f"{harness.order()}/run"
    await harness.automation.check_ready()
    await harness.misbehave("dead")
    await unavailable(harness.automation.check_ready())
    await unavailable(harness.automation.ensure_run(key, _wanted()))
    await harness.misbehave("none")
    assert await _carry_out(harness, key, _wanted()) == Done()
    assert len(harness.started()) == 1


async def closing_twice_is_fine(harness: AutomationHarness) -> None:
    await harness.automation.close()
    await harness.automation.close()


def _wanted(attempt: int = 1) -> RunSpec:
    return RunSpec("act", "", attempt=attempt)


async def _start(harness: AutomationHarness, key: str, wanted: RunSpec) -> None:
    there = len(harness.started())
    for _ in range(MAX_LOOKS):
        outcome = await harness.automation.ensure_run(key, wanted)
        if len(harness.started()) > there:
            return
        assert isinstance(outcome, Waiting)
        assert outcome.why, "Waiting says why"
        await harness.wait(outcome.look_again)
    raise AssertionError("it is not started")


async def _until_done(harness: AutomationHarness, key: str, wanted: RunSpec) -> Done:
    for _ in range(MAX_LOOKS):
        outcome = await harness.automation.ensure_run(key, wanted)
        if isinstance(outcome, Done):
            return outcome
        await harness.wait(outcome.look_again)
    raise AssertionError(f"still waiting: {outcome}")


async def _carry_out(harness: AutomationHarness, key: str, wanted: RunSpec, **facts: str) -> Done:
    await _start(harness, key, wanted)
    await harness.finish(**facts)
    return await _until_done(harness, key, wanted)


RULES: Sequence[Rule] = [
    rule for rule in rules_of(globals()) if rule.__name__.islower() and not isinstance(rule, type)
]


# --- a driver in memory, to see the rules hold and fail ------------------------------------------


class _RunsAgain(MemoryAutomation):
    """Starts whatever it is asked for, as often as it is asked."""

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        self.begun.append(Started(wanted.action, wanted.attempt, wanted.values))
        self.runs.setdefault(key, (wanted, Waiting("it runs")))
        return await super().ensure_run(key, wanted)


class _RunsOnce(MemoryAutomation):
    """Takes another attempt for the same."""

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        known = self.runs.get(key, (wanted,))[0]
        return await super().ensure_run(key, known)


class _HidesFailure(MemoryAutomation):
    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        try:
            return await super().ensure_run(key, wanted)
        except Refused:
            return Waiting("a little patience")


class _HidesOutages(MemoryAutomation):
    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        try:
            return await super().ensure_run(key, wanted)
        except Unavailable:
            return Waiting("a little patience")


class _Templates(MemoryAutomation):
    """Takes what it is given for something else."""

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        text = {"text": "2"} if "text" in wanted.values else wanted.values
        changed = RunSpec(wanted.action, "", attempt=wanted.attempt, values=text)
        return await super().ensure_run(key, changed)


class _KeepsEverything(MemoryAutomation):
    async def release_run(self, key: str) -> Outcome:
        return Done()


class _ListsLoosely(MemoryAutomation):
    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        return await super().list_owned()


class _MindsNothing(MemoryAutomation):
    async def release_run(self, key: str) -> Outcome:
        if key not in self.runs:
            raise Unavailable("there is nothing")
        return await super().release_run(key)


class _CountsFromZero(MemoryAutomation):
    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return [RunEvent(0, "now", "task"), RunEvent(1, "now", "end")][after:]


PLANTED = [
    (_RunsAgain, a_run_is_started_once_and_found_by_its_key),
    (_RunsAgain, the_same_attempt_is_never_run_again),
    (_RunsOnce, another_attempt_is_run_again),
    (_RunsOnce, a_failed_run_can_be_tried_again),
    (_HidesFailure, a_run_that_failed_is_refused_in_its_own_words_and_stays_so),
    (_HidesOutages, who_does_not_answer_is_unavailable),
    (_Templates, what_is_given_arrives_as_it_is),
    (_KeepsEverything, a_released_run_is_forgotten),
    (_KeepsEverything, a_run_under_way_can_be_released),
    (_ListsLoosely, owned_things_are_listed_by_prefix),
    (_MindsNothing, releasing_nothing_is_done),
    (_CountsFromZero, a_story_is_told_in_order_and_without_gaps),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
async def test_automation(rule: Rule, harness: AutomationHarness) -> None:
    await rule(harness)


@pytest.mark.parametrize("broken, rule", PLANTED, ids=lambda one: one.__name__.strip("_"))
async def test_a_planted_fault_is_found(broken: type[MemoryAutomation], rule: Rule) -> None:
    with pytest.raises((AssertionError, Refused, Unavailable)):
        await rule(broken())

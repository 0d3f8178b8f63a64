"""Runs wait their turn: so many at once, so many starts a minute, per machine, hub and template."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from boatyard.automation.drivers.local.limits import RunRateLimits
from boatyard.automation.drivers.local.run_slots import RunSlot, RunSlots
from boatyard.automation.port import RunSpec
from boatyard.model.errors import NotFound
from boatyard.model.outcome import Waiting
from tests.support.role_runs import RoleEnvironment, again, at_task, ended, facts, released, shell

A, B = RunSlot("hub-a", "t1"), RunSlot("hub-b", "t2")


def never(_: str) -> bool:
    return False


@pytest.mark.parametrize(
    "rate_limits, third",
    [
        pytest.param(RunRateLimits(max_runs=2), B, id="machine"),
        pytest.param(RunRateLimits(max_runs_per_hub=2), RunSlot("hub-a", "t9"), id="hub"),
        pytest.param(RunRateLimits(max_runs_per_template=2), RunSlot("hub-z", "t1"), id="template"),
    ],
)
def test_who_comes_third_waits_until_one_has_ended(
    tmp_path: Path, rate_limits: RunRateLimits, third: RunSlot
) -> None:
    turns = RunSlots(tmp_path, rate_limits)
    assert turns.take("one", A, never) == ""
    assert turns.take("two", A, never) == ""
    assert turns.take("two", A, never) == "", "it has its turn already"

    assert "under way" in turns.take("three", third, never)
    turns.release("one")
    assert turns.take("three", third, never) == ""


def test_others_do_not_wait_for_a_busy_hub(tmp_path: Path) -> None:
    turns = RunSlots(tmp_path, RunRateLimits(max_runs_per_hub=1))
    assert turns.take("one", A, never) == ""
    assert turns.take("two", A, never) != ""
    assert turns.take("other", B, never) == ""


def test_a_run_nobody_has_looked_at_since_it_ended_holds_no_turn(tmp_path: Path) -> None:
    turns = RunSlots(tmp_path, RunRateLimits(max_runs=1))
    assert turns.take("one", A, never) == ""
    assert turns.take("two", A, lambda slug: slug == "one") == ""


def test_turns_are_counted_together_by_all_processes(tmp_path: Path) -> None:
    assert RunSlots(tmp_path, RunRateLimits(max_runs=1)).take("one", A, never) == ""
    assert RunSlots(tmp_path, RunRateLimits(max_runs=1)).take("two", A, never) != ""


@pytest.mark.parametrize(
    "rate_limits",
    [RunRateLimits(starts_per_minute_per_hub=2), RunRateLimits(starts_per_minute_per_template=2)],
)
def test_no_more_than_so_many_are_started_in_a_minute(
    tmp_path: Path, rate_limits: RunRateLimits
) -> None:
    now = [100.0]
    turns = RunSlots(tmp_path, rate_limits, clock=lambda: now[0])
    for slug in ("one", "two"):
        assert turns.take(slug, A, never) == ""
        turns.release(slug)
    assert "no faster" in turns.take("three", A, never)
    assert turns.take("other", B, never) == ""

    now[0] += 61
    assert turns.take("three", A, never) == ""


def test_a_turn_with_which_nothing_was_started_counts_as_no_start(tmp_path: Path) -> None:
    turns = RunSlots(tmp_path, RunRateLimits(starts_per_minute_per_hub=1))
    assert turns.take("one", A, never) == ""
    turns.return_unused("one", A)
    assert turns.take("two", A, never) == ""
    assert "no faster" in turns.take("three", A, never)


def test_what_a_run_waits_for_has_a_part_in_its_turn(tmp_path: Path) -> None:
    turns = RunSlots(tmp_path, RunRateLimits(max_runs=1))
    part = RunSlot("hub-a", "t1", within="deciding")
    assert turns.take("deciding", A, never) == ""
    assert "under way" in turns.take("stranger", RunSlot("hub-a", "t1", within="another"), never)

    assert turns.take("part", part, never) == ""

    assert "under way" in turns.take("other", B, never)
    turns.release("deciding")
    assert "under way" in turns.take("other", B, never), "now the part is what is under way"
    turns.release("part")
    assert turns.take("other", B, never) == ""


def test_a_run_that_is_over_gives_no_part(tmp_path: Path) -> None:
    turns = RunSlots(tmp_path, RunRateLimits(max_runs=2))
    assert turns.take("deciding", A, never) == ""
    for slug in ("one", "two"):
        assert turns.take(slug, B, lambda slug: slug == "deciding") == ""
    part = RunSlot("hub-a", "t1", within="deciding")
    assert "under way" in turns.take("part", part, never)


async def test_a_run_that_decides_does_not_keep_its_own_parts_waiting(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role(
        "deciding",
        install=[shell("sleep 1000", "hold")],
        pre_install=[facts(done="yes")],
    )
    driver = role_environment.driver(rate_limits=RunRateLimits(max_runs=1))
    await at_task(driver, "one/role", wanted, "hold")
    part = again(wanted, action="pre_install", parent_run="one/role")

    assert (await ended(driver, "one/pre_install", part)).facts == {"done": "yes"}
    queued = await driver.ensure_run("two/pre_install", again(part, parent_run="two/role"))

    assert isinstance(queued, Waiting)
    assert queued.reason == "Queued"


async def test_who_waits_for_a_turn_costs_nothing_else(role_environment: RoleEnvironment) -> None:
    """Content is looked at file by file: not for a run that cannot start."""
    wanted = role_environment.role("quick", post_install=[shell("sleep 1000", "hold")])
    asked: list[str] = []

    def find(digest: str) -> Path:
        asked.append(digest)
        return role_environment.find(digest)

    driver = role_environment.driver(rate_limits=RunRateLimits(max_runs=1))
    role_environment.shops[-1].content = find
    await driver.ensure_run("one", wanted)

    for _ in range(3):
        waiting = await driver.ensure_run("two", wanted)
        assert isinstance(waiting, Waiting)
        assert waiting.reason == "Queued"

    assert asked == ["quick"]


async def test_a_start_that_waits_for_its_content_keeps_its_turn(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role("quick", post_install=[facts(done="yes")])
    there, asked = threading.Event(), threading.Event()
    driver = role_environment.driver(rate_limits=RunRateLimits(max_runs=1))

    def slow(digest: str) -> Path:
        asked.set()
        assert there.wait(30)
        return role_environment.find(digest)

    role_environment.shops[-1].content = slow
    first = asyncio.ensure_future(driver.ensure_run("one", wanted))
    assert await asyncio.to_thread(asked.wait, 30)
    waiting = await driver.ensure_run("two", wanted)
    there.set()
    await first

    assert isinstance(waiting, Waiting)
    assert waiting.reason == "Queued"


async def test_a_start_without_content_gives_its_turn_back(
    role_environment: RoleEnvironment,
) -> None:
    driver = role_environment.driver(rate_limits=RunRateLimits(max_runs=1))
    with pytest.raises(NotFound):
        await driver.ensure_run("one", RunSpec("post_install", "gone", digest="gone"))
    wanted = role_environment.role("quick", post_install=[facts(done="yes")])
    assert (await ended(driver, "two", wanted)).facts == {"done": "yes"}


async def test_a_run_that_waits_its_turn_says_so_and_gets_it(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role("quick", post_install=[facts(done="yes")])
    driver = role_environment.driver(rate_limits=RunRateLimits(max_runs=1))
    await driver.ensure_run("one", wanted)

    waiting = await driver.ensure_run("two", wanted)

    assert isinstance(waiting, Waiting)
    assert waiting.reason == "Queued"
    assert [owned.key for owned in await driver.list_owned()] == ["one"]
    await released(driver, "one")
    assert (await ended(driver, "two", wanted)).facts == {"done": "yes"}

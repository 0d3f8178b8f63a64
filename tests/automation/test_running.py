"""A role runs, once, and tells its story; a Boatyard started anew finds it by its key."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from boatyard.automation.port import RUN_FAILED, RunSpec
from boatyard.model.errors import Conflict, NotFound, Refused
from boatyard.model.outcome import Done, Waiting
from tests.support.role_runs import (
    RoleEnvironment,
    again,
    at_task,
    debug,
    ended,
    event_texts,
    facts,
    processes_with,
    released,
    shell,
)

KEY = "order-1/post_install"


async def test_facts_that_were_reported_are_the_answer(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role(
        "greeter",
        post_install=[
            facts(endpoint="https://{{ name }}", replicas=3),
            {"ansible.builtin.set_stats": {"data": {"zone": "b"}}},
        ],
    )
    driver = role_environment.driver()
    await driver.check_ready()

    done = await ended(driver, KEY, again(wanted, values={"name": "shop"}))

    assert done == Done({"endpoint": "https://shop", "replicas": "3", "zone": "b"})
    assert await driver.ensure_run(KEY, wanted) == done, "asked again it is not run again"


@pytest.mark.parametrize("warm", [False, True], ids=["plain", "warm"])
async def test_what_is_no_text_arrives_as_text(
    role_environment: RoleEnvironment, warm: bool
) -> None:
    """Nothing that reads a story or keeps a fact takes NUL or bytes that are no text."""
    odd = "{{ 'gA==' | b64decode }}"
    wanted = role_environment.role("odd", post_install=[debug(odd), facts(nul="a\0b", half=odd)])
    driver = role_environment.warm_driver() if warm else role_environment.driver()

    done = await ended(driver, KEY, wanted)

    assert done.facts == {"nul": "a\ufffdb", "half": "\ufffd"}
    assert ("ok", "\ufffd") in {(one.kind, one.text) for one in await driver.events(KEY)}


async def test_only_the_phase_that_was_asked_for_runs(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role(
        "two", post_install=[facts(ran="post")], delete=[facts(ran="delete")]
    )

    done = await ended(role_environment.driver(), KEY, again(wanted, action="delete"))

    assert done.facts == {"ran": "delete"}


async def test_a_task_that_fails_is_told_in_its_own_words(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role(
        "failing",
        post_install=[
            debug("fine"),
            {"name": "look for the pool", "ansible.builtin.fail": {"msg": "there is no pool"}},
            debug("never"),
        ],
    )
    driver = role_environment.driver()

    with pytest.raises(Refused) as refused:
        await ended(driver, KEY, wanted)

    assert refused.value.reason == RUN_FAILED
    assert "'look for the pool': there is no pool" in str(refused.value)
    with pytest.raises(Refused):
        await driver.ensure_run(KEY, wanted)
    assert event_texts(list(await driver.events(KEY)), "task") == ["say", "look for the pool"]


async def test_a_later_attempt_runs_again_and_its_story_goes_on(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role(
        "second_time",
        post_install=[
            {"ansible.builtin.fail": {"msg": "not yet"}, "when": "boatyard_run.attempt == 1"},
            facts(attempt="{{ boatyard_run.attempt }}"),
        ],
    )
    driver = role_environment.driver()
    with pytest.raises(Refused):
        await ended(driver, KEY, wanted)

    done = await ended(driver, KEY, again(wanted, attempt=2))

    assert done.facts == {"attempt": "2"}
    numbers = [event.number for event in await driver.events(KEY)]
    assert numbers == list(range(1, len(numbers) + 1))
    with pytest.raises(Conflict):
        await driver.ensure_run(KEY, wanted)


async def test_a_later_attempt_ends_the_one_under_way(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role(
        "patient",
        post_install=[
            shell("sleep 1000", "wait", when="boatyard_run.attempt == 1"),
            facts(attempt="{{ boatyard_run.attempt }}"),
        ],
    )
    driver = role_environment.driver()
    await at_task(driver, KEY, wanted, "wait")

    done = await ended(driver, KEY, again(wanted, attempt=2))

    assert done.facts == {"attempt": "2"}


async def test_the_story_is_told_while_it_happens(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role(
        "slow",
        post_install=[debug("hello"), shell("sleep 1000", "wait for ever")],
    )
    driver = role_environment.driver()

    await at_task(driver, KEY, wanted, "wait for ever")

    events = await driver.events(KEY)
    assert [(event.kind, event.task) for event in events] == [
        ("task", "say"),
        ("ok", "say"),
        ("task", "wait for ever"),
    ]
    assert events[1].text == "hello"
    assert await driver.events(KEY, after=2) == events[2:]
    assert all(one.at <= other.at for one, other in pairwise(events))


async def test_another_boatyard_finds_the_run_by_its_key(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role(
        "finding",
        post_install=[
            shell(f"until test -e {role_environment.content}/go; do sleep 0.1; done", "wait")
        ],
    )
    await at_task(role_environment.driver(), KEY, wanted, "wait")
    before = processes_with(str(role_environment.place(KEY)))
    other = role_environment.driver()

    outcome = await other.ensure_run(KEY, wanted)

    assert isinstance(outcome, Waiting)
    assert outcome.reason == "Running"
    assert processes_with(str(role_environment.place(KEY))) == before, "no second one was started"
    assert [owned.key for owned in await other.list_owned("order-1/")] == [KEY]
    assert await other.list_owned("order-2/") == []


async def test_asked_by_many_at_once_it_runs_once(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role("once", post_install=[debug("hello"), facts(done="yes")])
    drivers = [role_environment.driver() for _ in range(4)]

    await asyncio.gather(*(driver.ensure_run(KEY, wanted) for driver in drivers))
    await ended(drivers[0], KEY, wanted)

    assert event_texts(list(await drivers[1].events(KEY)), "task") == ["say", "report"]


async def test_releasing_ends_it_and_leaves_nothing(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role(
        "endless", post_install=[shell("sleep 1000 & sleep 1000", "wait")]
    )
    driver = role_environment.driver()
    await at_task(driver, KEY, wanted, "wait")

    await released(driver, KEY)

    assert processes_with(str(role_environment.data)) == {}
    assert list((role_environment.data / "runs").iterdir()) == []
    assert await driver.events(KEY) == ()
    assert await driver.list_owned() == []
    assert await driver.release_run(KEY) == Done()


async def test_what_is_no_run_is_refused_before_anything_is_made(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role("good", post_install=[debug("hello")])
    role_environment.write("empty/readme", "nothing here")
    driver = role_environment.driver()

    for bad, kind in (
        (again(wanted, action="../../etc"), Refused),
        (again(wanted, template="a: b"), Refused),
        (again(wanted, files={"../escape": ""}), Refused),
        (again(wanted, values={"a": object()}), Refused),
        (again(wanted, digest="unknown"), NotFound),
        (RunSpec(action="post_install", template="empty", digest="empty"), Refused),
    ):
        with pytest.raises(kind):
            await driver.ensure_run(KEY, bad)
    assert await driver.list_owned() == []


async def test_a_phase_the_role_has_not_is_said(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role("one_phase", post_install=[debug("hello")])

    with pytest.raises(Refused) as refused:
        await ended(role_environment.driver(), KEY, again(wanted, action="scale"))

    assert "scale" in str(refused.value)
    assert refused.value.reason == RUN_FAILED


async def test_an_argument_specification_is_checked_by_ansible_too(
    role_environment: RoleEnvironment,
) -> None:
    spec = """
        argument_specs:
          post_install:
            options:
              size: {type: int, required: true}
    """
    wanted = role_environment.role(
        "checked", {"meta/argument_specs.yml": spec}, post_install=[debug("{{ size }}")]
    )

    with pytest.raises(Refused, match="missing required arguments: size"):
        await ended(role_environment.driver(), KEY, wanted)
    await ended(role_environment.driver(), KEY, again(wanted, attempt=2, values={"size": 3}))

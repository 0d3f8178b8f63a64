"""The checks port's promises, for every driver."""

from __future__ import annotations

from dataclasses import replace

import pytest

from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Waiting
from tests.contracts.harness import ChecksHarness
from tests.contracts.rules import Rule, refuses, rules_of, unavailable

PORT = "checks"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def questions_are_always_the_same(harness: ChecksHarness) -> None:
    names = list(harness.checks.list_names())
    assert names == list(harness.checks.list_names())
    assert len(set(names)) == len(names) > 0


async def a_finished_cluster_answers_every_question(harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    for name in harness.checks.list_names():
        assert await harness.checks.run_check(name, subject) == Done(), name


async def asking_changes_nothing_that_stays(harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    before = await harness.everything()
    for name in harness.checks.list_names():
        await harness.checks.run_check(name, subject)
        await harness.checks.run_check(name, subject)
    assert await harness.everything() == before


async def a_cluster_that_is_not_there_is_waited_for(harness: ChecksHarness) -> None:
    subject = replace(await harness.make_cluster(), cluster_key="order-9/cluster")
    assert await _unanswered(harness, subject)


async def a_missing_node_is_found(harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    assert await _unanswered(harness, replace(subject, slots=(*subject.slots, "compute-7")))


async def a_lost_node_is_found(harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    await harness.lose_node()
    assert await _unanswered(harness, subject)


async def a_wrong_version_is_found(harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    assert await _unanswered(harness, replace(subject, version="4.99.0"))


async def a_missing_name_is_found(harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    await harness.remove_name("api")
    assert await _unanswered(harness, subject)


async def a_name_that_points_elsewhere_is_found(harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    await harness.misdirect_api_name()
    assert await _unanswered(harness, subject)


@pytest.mark.parametrize("purpose", ["api", "ingress"])
async def test_a_missing_route_is_found(purpose: str, harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    await harness.remove_route(purpose)
    assert await _unanswered(harness, subject)


async def test_every_question_says_no_to_some_fault(harness: ChecksHarness) -> None:
    """A question that says yes to a cluster of which nothing is right asks nothing."""
    subject = await harness.make_cluster()
    for purpose in ("api", "ingress"):
        await harness.remove_name(purpose)
        await harness.remove_route(purpose)
    wrong = replace(subject, slots=(*subject.slots, "compute-7"), version="4.99.0")
    assert await _unanswered(harness, wrong) == list(harness.checks.list_names())


async def what_cannot_be_asked_is_unavailable(harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    await harness.checks.check_ready()
    await harness.misbehave("dead")
    await unavailable(harness.checks.check_ready())
    for name in harness.checks.list_names():
        await unavailable(harness.checks.run_check(name, subject))


async def an_unknown_question_is_refused(harness: ChecksHarness) -> None:
    subject = await harness.make_cluster()
    await refuses(harness.checks.run_check("no-such-question", subject))


async def closing_twice_is_fine(harness: ChecksHarness) -> None:
    await harness.checks.close()
    await harness.checks.close()


async def _unanswered(harness: ChecksHarness, subject: Subject) -> list[str]:
    """The questions that are answered with no, each with a reason in words."""
    answers = {
        name: await harness.checks.run_check(name, subject) for name in harness.checks.list_names()
    }
    waiting = {name: answer for name, answer in answers.items() if isinstance(answer, Waiting)}
    assert all(answer.why for answer in waiting.values())
    return list(waiting)


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_checks(rule: Rule, harness: ChecksHarness) -> None:
    await rule(harness)

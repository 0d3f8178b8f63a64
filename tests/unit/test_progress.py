"""How a step's state follows from its items and from what was tried."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.model.generated.boatyard import Actor, Item, ItemState, Step, StepState
from boatyard.model.outcome import Done, Waiting
from boatyard.resources.orders import progress
from boatyard.resources.orders.attempts import Attempt, AttemptFailure, AttemptFault
from tests.support.orders import NOW

LATER = NOW + timedelta(seconds=30)
HOST = Item(key="host/c-0", kind="host", step="hosts", slot="c-0", state=ItemState.PLANNED)
HELD = Item(key="host/c-0", kind="host", step="hosts", slot="c-0", state=ItemState.PRESENT)
LEAVING = Item(key="host/c-0", kind="host", step="hosts", slot="c-0", state=ItemState.LEAVING)

NO_ANSWER = AttemptFailure(AttemptFault.UNAVAILABLE, "Unavailable", "the inventory does not answer")
REFUSAL = AttemptFailure(AttemptFault.REFUSED, "NoSuchThing", "there is no such thing")
BUG = AttemptFailure(AttemptFault.BUG, "InternalError", "internal error 1234")


def step_after(
    old: Step | None,
    items: list[Item],
    *answers: Done | Waiting | AttemptFailure,
    deleting: bool = False,
    released: bool = False,
) -> Step:
    steps = progress.advance(
        [old] if old else [],
        items=items,
        attempts=[Attempt(item=HOST, released=released, result=answer) for answer in answers],
        deleting=deleting,
        order_id="o-1",
        now=NOW,
    )
    return steps[0]


def a_step(state: StepState, **fields: object) -> Step:
    return Step(name="hosts", state=state, **fields)  # type: ignore[arg-type]


S = StepState


@pytest.mark.parametrize(
    "old, items, answers, deleting, expected",
    [
        pytest.param(None, [HOST], (), False, S.QUEUED, id="nothing tried yet: queued"),
        pytest.param(None, [], (), False, S.DONE, id="nothing to do is done"),
        pytest.param(S.QUEUED, [HOST], (), False, S.QUEUED, id="still waiting for its turn"),
        pytest.param(S.QUEUED, [HELD], (Done(),), False, S.DONE, id="all present"),
        pytest.param(S.QUEUED, [HOST], (Waiting("x"),), False, S.WAITING, id="not yet"),
        pytest.param(S.QUEUED, [HOST, HELD], (Done(),), False, S.RUNNING, id="some of them"),
        pytest.param(S.QUEUED, [HOST], (NO_ANSWER,), False, S.WAITING, id="no answer: again"),
        pytest.param(S.QUEUED, [HOST], (REFUSAL,), False, S.FAILED, id="refused: a person"),
        pytest.param(S.QUEUED, [HOST], (BUG,), False, S.WAITING, id="a first bug: again"),
        pytest.param(
            S.WAITING, [HOST], (NO_ANSWER, REFUSAL), False, S.FAILED, id="the worst counts"
        ),
        pytest.param(S.WAITING, [HOST], (Done(), NO_ANSWER), False, S.WAITING, id="half good"),
        pytest.param(S.DONE, [HOST], (), False, S.QUEUED, id="new items after it was done"),
        pytest.param(S.FAILED, [HOST], (), False, S.FAILED, id="failed stays failed"),
        pytest.param(S.QUARANTINED, [HOST], (), False, S.QUARANTINED, id="so does quarantine"),
        pytest.param(S.DONE, [LEAVING], (), True, S.RELEASING, id="a deletion begins"),
        pytest.param(S.RELEASING, [LEAVING], (Waiting("x"),), True, S.WAITING, id="being wiped"),
        pytest.param(S.RELEASING, [], (Done(),), True, S.RELEASED, id="nothing left: released"),
        pytest.param(None, [], (), True, S.RELEASED, id="there never was anything"),
        pytest.param(
            S.RELEASING, [LEAVING, LEAVING], (Done(),), True, S.RELEASING, id="one of two gone"
        ),
        pytest.param(S.DONE, [HELD, LEAVING], (), False, S.QUEUED, id="a scale down begins"),
    ],
)
def test_transitions(
    old: StepState | None,
    items: list[Item],
    answers: tuple[Done | Waiting | AttemptFailure, ...],
    deleting: bool,
    expected: StepState,
) -> None:
    before = None if old is None else a_step(old)
    assert step_after(before, items, *answers, deleting=deleting).state == expected


def test_three_bugs_in_a_row_are_quarantined() -> None:
    step = None
    states = []
    for _ in range(3):
        step = step_after(step, [HOST], BUG)
        states.append(step.state)
    assert states == [S.WAITING, S.WAITING, S.QUARANTINED]
    assert step is not None
    assert (step.next_look, step.actor, bool(step.remedy)) == (None, Actor.OPERATOR, True)


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(NO_ANSWER, id="no answer in between"),
        pytest.param(Waiting("x"), id="a proper answer in between"),
    ],
)
def test_bugs_must_be_in_a_row(between: Waiting | AttemptFailure) -> None:
    step = None
    for answer in (BUG, BUG, between, BUG, BUG):
        step = step_after(step, [HOST], answer)
    assert step is not None
    assert step.state == S.WAITING


@pytest.mark.parametrize(
    "answer, actor, remedy",
    [
        pytest.param(Waiting("x"), Actor.NOBODY, False, id="it goes on by itself"),
        pytest.param(NO_ANSWER, Actor.OPERATOR, True, id="the provider can look"),
        pytest.param(REFUSAL, Actor.TENANT, True, id="the tenant can change the wish"),
    ],
)
def test_who_can_act(answer: Waiting | AttemptFailure, actor: Actor, remedy: bool) -> None:
    step = step_after(None, [HOST], answer)
    assert (step.actor, bool(step.remedy)) == (actor, remedy)


def test_the_first_to_look_again_decides_and_its_words_are_shown() -> None:
    step = step_after(None, [HOST], Waiting("slow", 9), Waiting("soon", 2, reason="Soon"))
    assert (step.message, step.reason) == ("soon", "Soon")
    assert step.next_look == NOW + timedelta(seconds=2)


def test_since_stays_while_the_trouble_is_the_same() -> None:
    first = a_step(S.WAITING, reason="Unavailable", since=NOW - timedelta(hours=1), tries=7)
    assert step_after(first, [HOST], NO_ANSWER).since == first.since
    assert step_after(first, [HOST], Waiting("x", reason="Other")).since == NOW


def test_tries_count_what_did_not_succeed_in_a_row() -> None:
    step = a_step(S.WAITING, tries=4)
    assert step_after(step, [HOST], NO_ANSWER).tries == 5
    assert step_after(step, [HOST], Waiting("x")).tries == 5
    assert step_after(step, [HOST, HELD], Done(), Waiting("x")).tries == 0
    assert step_after(step, [HELD], Done()).tries == 0


def test_back_off_grows_is_bounded_and_is_the_same_for_the_same_order() -> None:
    delays = [progress.compute_retry_delay("o-1", "hosts", tries) for tries in range(1, 40)]
    assert 0.75 <= delays[0] <= 1.25
    assert all(45 <= delay <= 75 for delay in delays[8:])
    assert delays == [progress.compute_retry_delay("o-1", "hosts", tries) for tries in range(1, 40)]
    assert len({progress.compute_retry_delay(f"o-{n}", "hosts", 9) for n in range(20)}) > 10, (
        "spread"
    )


@pytest.mark.parametrize(
    "step, expected",
    [
        pytest.param(None, True, id="never tried"),
        pytest.param(a_step(S.QUEUED), True, id="no moment named"),
        pytest.param(a_step(S.WAITING, next_look=NOW), True, id="its moment has come"),
        pytest.param(a_step(S.WAITING, next_look=LATER), False, id="not yet"),
        pytest.param(a_step(S.FAILED), False, id="waits for a person"),
        pytest.param(a_step(S.QUARANTINED), False, id="is quarantined"),
    ],
)
def test_is_open(step: Step | None, expected: bool) -> None:
    assert progress.can_try_step(step, NOW) is expected


@pytest.mark.parametrize("state", [S.FAILED, S.QUARANTINED])
def test_reset_releases_what_was_stuck(state: StepState) -> None:
    stuck = a_step(state, tries=9, bugs=3, reason="X", message="x", actor=Actor.TENANT, remedy="x")
    (fresh,) = progress.reset([stuck], NOW)
    assert progress.can_try_step(fresh, NOW)
    assert (fresh.tries, fresh.bugs, fresh.reason, fresh.message) == (0, 0, "", "")
    assert (fresh.actor, fresh.remedy, fresh.since) == (Actor.UNSPECIFIED, "", NOW)


def test_reset_keeps_what_is_done() -> None:
    done = a_step(S.DONE, since=NOW - timedelta(hours=1))
    assert progress.reset([done], NOW) == (done,)


def test_every_step_is_shown_in_the_order_of_the_road() -> None:
    steps = progress.advance([], items=[HOST], attempts=[], deleting=False, order_id="o-1", now=NOW)
    names = [step.name for step in steps]
    assert names == ["hosts", "network", "addresses", "names", "install", "validate"]
    assert steps[1].needs == ("hosts",)


def test_the_detail_counts_and_never_names_a_host() -> None:
    items = [HELD, HOST]
    held = Item(
        key="host/c-1",
        kind="host",
        step="hosts",
        slot="c-1",
        state=ItemState.PRESENT,
        facts={"host": "r1-n7"},
    )
    assert step_after(None, [*items, held], Done()).detail == "2/3 hosts"


def test_times_say_when_it_began_and_when_it_ended() -> None:
    running = step_after(a_step(S.QUEUED), [HOST], Waiting("x"))
    assert (running.started_at, running.finished_at) == (NOW, None)
    done = step_after(a_step(S.WAITING, started_at=LATER), [HELD], Done())
    assert (done.started_at, done.finished_at) == (LATER, NOW)


RUN = Item(key="post_install", kind="post_install", step="post_install", state=ItemState.PLANNED)


def run_after(old: Step | None, item: Item, answer: Done | Waiting) -> Step:
    steps = progress.advance(
        [old] if old else [],
        items=[item],
        attempts=[Attempt(item=item, released=False, result=answer)],
        deleting=False,
        order_id="o-1",
        now=NOW,
    )
    return next(step for step in steps if step.name == "post_install")


def test_a_step_that_runs_a_role_says_at_which_task_it_is_and_counts_no_looks_as_tries() -> None:
    step = run_after(None, RUN, Waiting("post_install of web is at task 'one'"))
    step = run_after(step, RUN, Waiting("post_install of web is at task 'two'"))
    assert step.message.endswith("'two'")
    assert step.tries == 0


@pytest.mark.parametrize(
    "tasks, changed, words",
    [
        pytest.param("12", "3", "12 tasks, 3 changed", id="several"),
        pytest.param("1", "1", "1 task, 1 changed", id="one"),
        pytest.param("4", "0", "4 tasks, nothing changed", id="nothing to do"),
        pytest.param("", "", "", id="nobody counted"),
    ],
)
def test_a_role_that_has_run_says_how_it_went(tasks: str, changed: str, words: str) -> None:
    facts = {"attempt": "1"} | ({"run.tasks": tasks, "run.changed": changed} if tasks else {})
    ended = Item(
        key="post_install",
        kind="post_install",
        step="post_install",
        state=ItemState.PRESENT,
        facts=facts,
    )
    step = run_after(None, ended, Done())
    assert (step.state, step.detail) == (S.DONE, words)

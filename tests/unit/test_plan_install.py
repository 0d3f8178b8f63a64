"""While a role decides what is done, only what it has asked for is; and what it may ask for."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import pytest

from boatyard.model.caller import OrderRun
from boatyard.model.generated.boatyard import Item, ItemState, Order, Step, StepState
from boatyard.orderbook.port import REQUESTED_STEPS_ANNOTATION, list_requested_steps
from boatyard.resources.orders import plan, role_requests
from boatyard.resources.orders.role_requests import (
    STEPS_BY_REQUEST_NAME,
    is_run_active,
    needed_steps,
    request_step,
)
from tests.support.orders import an_order, being_deleted, keys, planned, present, with_sizes

RUN = OrderRun(order="o-1", item="role", attempt=1)


def decided(*more: str) -> Order:
    """An order, planned, whose role decides."""
    order = an_order()
    spec = msgspec.structs.replace(order.spec, template_phases=("install", *more))
    return planned(msgspec.structs.replace(order, spec=spec))


def made(items: Collection[Item], asked: Collection[str]) -> tuple[Item, ...]:
    """The items when all that may be made was made, the role itself left out."""
    items = tuple(items)
    while ready := keys([i for i in plan.ready_to_add(items, asked) if i.kind != "role"]):
        items = tuple(present(item) if item.key in ready else item for item in items)
    return items


def steps_made(items: Collection[Item], asked: Collection[str]) -> set[str]:
    return {item.step for item in made(items, asked) if item.state == ItemState.PRESENT}


def test_before_it_asks_only_the_role_itself_is_begun() -> None:
    assert keys(plan.ready_to_add(decided().status.items)) == {"role"}


@pytest.mark.parametrize("word", STEPS_BY_REQUEST_NAME)
def test_what_is_asked_for_is_made_with_all_it_needs_and_nothing_else(word: str) -> None:
    order, _ = request_step(decided(), word)
    asked = list_requested_steps(order)

    found = made(order.status.items, asked)

    assert {i.step for i in found if i.state == ItemState.PRESENT} == set(
        needed_steps(STEPS_BY_REQUEST_NAME[word])
    )
    assert all(
        i.state == ItemState.PRESENT for i in found if i.step == STEPS_BY_REQUEST_NAME[word]
    ), "all of it"


@pytest.mark.parametrize("word", [word for word in STEPS_BY_REQUEST_NAME if word != "hosts"])
def test_a_step_without_what_it_needs_would_wait_for_ever(word: str) -> None:
    """Why needs are asked for too: alone, the step does not come to its end."""
    found = made(decided().status.items, {STEPS_BY_REQUEST_NAME[word]})
    assert any(i.state != ItemState.PRESENT for i in found if i.step == STEPS_BY_REQUEST_NAME[word])


def test_what_it_has_not_asked_for_is_made_when_it_has_come_to_its_end() -> None:
    order = decided()
    over = [present(item) if item.kind == "role" else item for item in order.status.items]
    assert steps_made(order.status.items, ()) == set()
    assert steps_made(over, ()) == {item.step for item in order.status.items}


def test_other_parts_of_the_role_are_run_when_they_are_due_without_being_asked_for() -> None:
    order = decided("pre_install", "post_install")
    found = made(order.status.items, needed_steps("install"))
    assert {i.kind for i in found if i.state == ItemState.PRESENT} >= {
        "pre_install",
        "post_install",
    }


def test_checks_wait_for_the_role() -> None:
    found = made(decided().status.items, needed_steps("install"))
    assert all(item.state == ItemState.PLANNED for item in found if item.kind == "check")


def test_what_leaves_is_not_the_roles_to_decide() -> None:
    order = decided()
    settled = tuple(present(i) if i.kind != "role" else i for i in order.status.items)
    status = msgspec.structs.replace(order.status, items=settled)
    smaller = with_sizes(msgspec.structs.replace(order, status=status), compute=0)
    items = plan.replan(smaller, {"compute": ["compute-0"]}, ())
    assert plan.ready_to_remove(items)


def test_steps_are_kept_in_the_order_of_the_road_and_asking_again_changes_nothing() -> None:
    order, new = request_step(decided(), "addresses")
    assert new == ("hosts", "network", "addresses")
    assert request_step(order, "network") == (order, ())
    order, new = request_step(order, "platform")
    assert new == ("names", "platform")
    assert (
        order.metadata.annotations[REQUESTED_STEPS_ANNOTATION]
        == "hosts,network,addresses,names,install"
    )


def test_other_annotations_and_what_else_was_asked_for_are_kept() -> None:
    order = decided()
    marks = {"boatyard.io/retry": "2", REQUESTED_STEPS_ANNOTATION: "validate"}
    metadata = msgspec.structs.replace(order.metadata, annotations=marks)
    order, new = request_step(msgspec.structs.replace(order, metadata=metadata), "hosts")
    assert new == ("hosts",)
    assert order.metadata.annotations == {
        "boatyard.io/retry": "2",
        REQUESTED_STEPS_ANNOTATION: "hosts,validate",
    }


def test_a_run_is_under_way_from_its_plan_to_its_end() -> None:
    order = decided()
    assert is_run_active(order, RUN)
    assert not is_run_active(order, OrderRun(order="o-2", item="role", attempt=1))
    assert not is_run_active(order, OrderRun(order="o-1", item="role", attempt=2))
    assert not is_run_active(order, OrderRun(order="o-1", item="cluster", attempt=1)), "no run"
    assert not is_run_active(being_deleted(order), RUN)
    assert not is_run_active(planned(being_deleted(order)), RUN)


@pytest.mark.parametrize(
    "state, good",
    [
        pytest.param(StepState.WAITING, True, id="it runs"),
        pytest.param(StepState.QUARANTINED, True, id="nobody looks at it, but it may run"),
        pytest.param(StepState.FAILED, False, id="it has failed"),
    ],
)
def test_a_run_that_failed_is_over_until_somebody_asks_for_another(
    state: StepState, good: bool
) -> None:
    order = decided()
    status = msgspec.structs.replace(order.status, steps=(Step(name="role", state=state),))
    assert is_run_active(msgspec.structs.replace(order, status=status), RUN) is good


def test_a_kubeconfig_is_told_only_when_asked_for_and_the_platform_is_there() -> None:
    order = decided()
    credentials = msgspec.structs.replace(order.status.credentials, kubeconfig="secret")
    for state, wanted, told in (
        (StepState.RUNNING, True, ""),
        (StepState.DONE, False, ""),
        (StepState.DONE, True, "secret"),
    ):
        steps = (Step(name="install", state=state),)
        status = msgspec.structs.replace(order.status, steps=steps, credentials=credentials)
        run = role_requests.to_role_run(
            msgspec.structs.replace(order, status=status), kubeconfig=wanted
        )
        assert (run.kubeconfig, run.has_kubeconfig) == (told, state == StepState.DONE)

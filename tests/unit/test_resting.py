"""What rest, settings and a restore make of a plan and of an order's status."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from boatyard.model.generated.boatyard import (
    ItemState,
    Order,
    OrderPhase,
    OrderRestore,
    StepState,
)
from boatyard.model.generated.osac import ClusterRest
from boatyard.platforms.port import ObservedCluster, ObservedNode, RestMode
from boatyard.resources.orders import hibernation, plan, rules
from boatyard.resources.orders.attempts import Attempt, AttemptFailure, AttemptFault
from tests.support.orders import CHECKS, NOW, an_order, planned, present, settled

HOUR = timedelta(hours=1)
NODES = (ObservedNode("compute-0", "compute", ready=True),)
AWAKE = ObservedCluster(exists=True, available=True, nodes=NODES, version="4.17.9")
FROZEN = ObservedCluster(exists=True, rest=RestMode.FROZEN, version="4.17.9")


def asking(order: Order, **spec: Any) -> Order:
    """The same order with another wish."""
    wish = msgspec.structs.replace(order.spec, generation=order.spec.generation + 1, **spec)
    return msgspec.structs.replace(order, spec=wish)


def resting_order(rest: ClusterRest = ClusterRest.FROZEN) -> Order:
    """An order that rests since NOW, as its own rules have it."""
    wish = asking(settled(an_order(phase=OrderPhase.READY)), rest=rest)
    status = rules.make_planned_status(wish, plan.replan(wish, {}, CHECKS), NOW)
    items = tuple(present(item) for item in status.items if item.state != ItemState.LEAVING)
    seen = FROZEN if rest == ClusterRest.FROZEN else seen_at(RestMode.STOPPED)
    made = msgspec.structs.replace(status, items=items)
    return absorbed(msgspec.structs.replace(wish, status=made), seen)


def seen_at(rest: RestMode) -> ObservedCluster:
    return ObservedCluster(exists=True, rest=rest, version="4.17.9")


def absorbed(order: Order, seen: ObservedCluster | None, *attempts: Attempt) -> Order:
    found = rules.absorb(
        order,
        items=order.status.items,
        attempts=attempts,
        observation=seen,
        access=None,
        unfinished=False,
        now=NOW,
    )
    return msgspec.structs.replace(order, status=found.status)


def wanted(order: Order) -> str:
    (cluster,) = [i for i in plan.replan(order, {}, CHECKS) if i.kind == "cluster"]
    return cluster.want


@pytest.mark.parametrize("spec", [
    pytest.param({"platform_settings": {"nodes": "real"}}, id="what the template tells"),
    pytest.param({"rest": ClusterRest.FROZEN}, id="a rest"),
    pytest.param({"restore": OrderRestore(request="1", backup="b")}, id="a restore"),
])  # fmt: skip
def test_the_control_plane_is_corrected_for(spec: dict[str, Any]) -> None:
    order = an_order()
    assert wanted(asking(order, **spec)) != wanted(order)
    other = {
        "platform_settings": {"nodes": "none"},
        "rest": ClusterRest.STOPPED,
        "restore": OrderRestore(request="2", backup="b"),
    }
    different = {name: other[name] for name in spec}
    assert wanted(asking(order, **different)) != wanted(asking(order, **spec))


def test_orders_from_before_keep_their_digest() -> None:
    """What is wanted of a cluster that uses none of this is what it was."""
    assert wanted(an_order()) == "1aa809888bf3"


def test_nothing_is_asked_of_a_cluster_that_rests() -> None:
    order = resting_order()
    assert [item for item in order.status.items if item.kind == "check"] == []
    assert order.status.phase == OrderPhase.RESTING
    steps = {step.name: step.state for step in order.status.steps}
    assert set(steps.values()) == {StepState.DONE}
    woken = asking(order, rest=ClusterRest.AWAKE)
    checks = [i for i in plan.replan(woken, {}, CHECKS) if i.kind == "check"]
    assert len(checks) == len(CHECKS)


def test_the_conditions_of_a_cluster_that_rests() -> None:
    order = resting_order()
    told = {one.type: (one.status, one.reason) for one in order.status.conditions}
    assert told["ClusterAvailable"] == (False, "Hibernated")
    assert told["NodesReady"] == (False, "Hibernated")
    assert told["Ready"] == (False, "Hibernated")
    assert told["InfrastructureReady"][0]
    for wrong in ("Failed", "Degraded", "Progressing"):
        assert not told[wrong][0]


@pytest.mark.parametrize(
    "minutes, freezes, stops",
    [
        pytest.param(59, ClusterRest.FROZEN, False, id="not yet"),
        pytest.param(60, ClusterRest.FROZEN, True, id="long enough"),
        pytest.param(600, ClusterRest.STOPPED, False, id="stopped already"),
    ],
)
def test_when_a_frozen_cluster_is_stopped(minutes: int, freezes: ClusterRest, stops: bool) -> None:
    order = resting_order(freezes)
    assert order.status.resting_since == NOW
    assert hibernation.should_stop(order, HOUR, NOW + timedelta(minutes=minutes)) is stops


def test_one_that_is_stopped_by_us_rests_all_the_while() -> None:
    order = resting_order()
    stopping = msgspec.structs.replace(order, status=hibernation.plan_stop(order, NOW + HOUR))
    assert plan.get_desired_rest(stopping) == ClusterRest.STOPPED
    assert hibernation.get_platform_rest(stopping) == RestMode.STOPPED
    assert stopping.status.phase == OrderPhase.RESTING
    (opened,) = plan.ready_to_add(stopping.status.items)
    assert opened.kind == "cluster"
    late = Attempt(
        opened, released=False, result=AttemptFailure(AttemptFault.UNAVAILABLE, "X", "no answer")
    )
    assert absorbed(stopping, FROZEN, late).status.phase == OrderPhase.RESTING
    assert not hibernation.should_stop(stopping, HOUR, NOW + 2 * HOUR)


def test_a_rest_that_ended_behind_our_back_is_asked_for_again() -> None:
    woken = absorbed(resting_order(), AWAKE)
    assert [item.kind for item in plan.ready_to_add(woken.status.items)] == ["cluster"]
    asleep = absorbed(settled(an_order(phase=OrderPhase.READY)), FROZEN)
    assert [item.kind for item in plan.ready_to_add(asleep.status.items)] == ["cluster"]
    assert asleep.status.phase == OrderPhase.PROGRESSING


def test_access_is_not_asked_of_a_cluster_that_rests() -> None:
    order = resting_order()
    progressing = msgspec.structs.replace(
        order, status=msgspec.structs.replace(order.status, phase=OrderPhase.PROGRESSING)
    )
    assert not plan.needs_credentials(progressing, order.status.items)


def test_a_restore_is_on_record_once_it_is_done() -> None:
    wish = asking(settled(an_order()), restore=OrderRestore(request="first", backup="b"))
    before = planned(wish)
    assert absorbed(before, AWAKE).status.restored == ""
    done = msgspec.structs.replace(
        before,
        status=msgspec.structs.replace(
            before.status, items=tuple(present(item) for item in before.status.items)
        ),
    )
    assert absorbed(done, AWAKE).status.restored == "first"


def test_a_failed_upgrade_says_what_can_be_done() -> None:
    order = planned(an_order())
    (cluster,) = [item for item in order.status.items if item.kind == "cluster"]
    refusal = AttemptFailure(AttemptFault.REFUSED, "UpgradeFailed", "4.18.3 did not come up")
    status = absorbed(order, AWAKE, Attempt(cluster, released=False, result=refusal)).status
    (failed,) = [step for step in status.steps if step.state == StepState.FAILED]
    assert (failed.name, failed.reason) == ("install", "UpgradeFailed")
    assert failed.remedy.endswith("retry, or set the version back to it")
    assert status.version == "4.17.9"


def test_a_rest_lasts_from_its_beginning_and_not_from_the_last_look() -> None:
    order = resting_order()

    assert (
        hibernation.get_hibernating_since(order, OrderPhase.RESTING, NOW + HOUR)
        == order.status.resting_since
        == NOW
    )

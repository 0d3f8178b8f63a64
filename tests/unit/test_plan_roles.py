"""The parts of a template's role in the plan of its order: when each is due, and what waits for it."""

from __future__ import annotations

import msgspec
import pytest

from boatyard.model.generated.boatyard import Credentials, Item, ItemState, Order, OrderPhase
from boatyard.model.generated.osac import ClusterRest
from boatyard.resources.orders import plan
from boatyard.resources.orders.item_graph import ATTEMPT_FACT
from tests.support.orders import (
    an_order,
    being_deleted,
    keys,
    planned,
    present,
    settled,
    with_sizes,
    with_version,
)
from tests.support.orders import waves_of_making as making
from tests.support.orders import waves_of_releasing as releasing

HOOKS = ("pre_install", "post_install", "validate", "scale", "delete")
REACHED = Credentials(kubeconfig="a way in")


def with_role(order: Order, *phases: str) -> Order:
    spec = msgspec.structs.replace(order.spec, template_digest="d", template_phases=phases)
    return msgspec.structs.replace(order, spec=spec)


def with_status(order: Order, **changes: object) -> Order:
    return msgspec.structs.replace(order, status=msgspec.structs.replace(order.status, **changes))


def wave(waves: list[set[str]], key: str) -> int:
    return next(number for number, keys in enumerate(waves) if key in keys)


def test_each_part_has_its_place_around_what_the_platform_does() -> None:
    waves = making(planned(with_role(an_order(), *HOOKS)).status.items)
    road = ["api-name", "pre_install", "cluster", "node/compute-0", "post_install", "check/api@1"]
    places = [wave(waves, key) for key in [*road, "acceptance/1"]]
    assert places == sorted(set(places))
    assert not {key for keys in waves for key in keys if key.startswith("scale")}
    assert "farewell" not in set().union(*waves)


def test_a_role_without_parts_changes_nothing() -> None:
    assert keys(planned(with_role(an_order())).status.items) == keys(
        planned(an_order()).status.items
    )


@pytest.mark.parametrize("size, due", [(2, True), (1, False), (0, True)])
def test_scale_is_run_when_nodes_come_or_go(size: int, due: bool) -> None:
    order = settled(with_role(an_order(sizes={"compute": 1}), "scale"))
    changed = with_sizes(order, compute=size)
    leaving = {"compute": ["compute-0"]} if size == 0 else {}
    items = plan.replan(changed, leaving, ())
    assert ("scale/2" in keys(items)) is due


def test_scale_waits_for_nodes_that_leave_and_checks_wait_for_it() -> None:
    order = settled(with_role(an_order(sizes={"compute": 2}), "scale"))
    items = plan.replan(with_sizes(order, compute=1), {"compute": ["compute-1"]}, ("api",))
    assert "scale/2" not in keys(plan.ready_to_add(items))
    gone = tuple(item for item in items if item.state != ItemState.LEAVING)
    assert keys(plan.ready_to_add(gone)) == {"scale/2"}
    done = tuple(present(item) if item.key == "scale/2" else item for item in gone)
    assert keys(plan.ready_to_add(done)) == {"check/api@2"}


def test_a_scale_that_was_not_run_is_run_after_the_next_change_whatever_that_is() -> None:
    order = settled(with_role(an_order(sizes={"compute": 1}), "scale"))
    grown = planned(with_sizes(order, compute=2))
    assert "scale/2" in keys(grown.status.items)
    items = plan.replan(with_version(grown, "4.17.10"), {}, ())
    assert "scale/3" in keys(items, ItemState.PLANNED)
    assert "scale/2" in keys(items, ItemState.LEAVING)


def test_a_part_is_run_once_for_an_order_and_validation_after_each_change() -> None:
    order = settled(with_role(an_order(), *HOOKS))
    items = plan.replan(with_version(order, "4.17.10"), {}, ())
    assert keys(items, ItemState.PLANNED) == {"acceptance/2"}
    assert keys(items, ItemState.LEAVING) & {"pre_install", "post_install"} == set()


def test_nothing_is_run_in_a_cluster_that_rests() -> None:
    order = with_role(an_order(), "post_install", "validate")
    resting = msgspec.structs.replace(
        order, spec=msgspec.structs.replace(order.spec, rest=ClusterRest.STOPPED)
    )
    assert not keys(plan.replan(resting, {}, ())) & {"post_install", "acceptance/1"}
    done = settled(order)
    resting = msgspec.structs.replace(
        done, spec=msgspec.structs.replace(done.spec, rest=ClusterRest.STOPPED, generation=2)
    )
    items = plan.replan(resting, {}, ())
    assert "post_install" in keys(items, ItemState.PRESENT), "it was done and is not done again"


def test_the_last_word_comes_after_what_runs_and_before_all_else() -> None:
    order = with_status(settled(with_role(an_order(), *HOOKS)), credentials=REACHED)
    waves = releasing(planned(being_deleted(order)).status.items)
    assert waves[0] >= {"acceptance/1", "post_install"}
    said = wave(waves, "farewell")
    runs = {"acceptance/1", "pre_install", "post_install"}
    assert set().union(*waves[:said]) == runs
    assert waves[said] == {"farewell"}
    assert wave(waves, "node/compute-0") > said


@pytest.mark.parametrize(
    "phases, credentials, due",
    [
        pytest.param(("delete",), Credentials(), False, id="nothing of it was ever there"),
        pytest.param(("delete",), REACHED, True, id="there was a cluster"),
        pytest.param(("delete", "pre_install"), Credentials(), True, id="it may have begun"),
        pytest.param(("delete", "install"), Credentials(), True, id="it has decided"),
        pytest.param(("pre_install",), REACHED, False, id="it has no last word"),
    ],
)
def test_a_last_word_is_said_where_something_may_be_left(
    phases: tuple[str, ...], credentials: Credentials, due: bool
) -> None:
    order = with_status(planned(with_role(an_order(), *phases)), credentials=credentials)
    items = planned(being_deleted(order)).status.items
    assert ("farewell" in keys(items, ItemState.LEAVING)) is due


def test_while_a_role_decides_only_what_it_asked_for_is_done() -> None:
    items = planned(with_role(an_order(), "install")).status.items
    assert keys(plan.ready_to_add(items)) == {"role"}
    assert keys(plan.ready_to_add(items, {"hosts"})) == {"role", "host/compute-0"}
    decided = tuple(present(item) if item.kind == "role" else item for item in items)
    assert keys(plan.ready_to_add(decided)) == {"host/compute-0", "l2"}


def test_a_retry_begins_the_runs_of_stuck_steps_anew() -> None:
    items = planned(with_role(an_order(), "pre_install", "post_install")).status.items
    again = {
        item.key: item.facts
        for item in plan.start_new_run_attempts(items, {"post_install", "install"})
    }
    assert again["post_install"][ATTEMPT_FACT] == "2"
    assert again["pre_install"][ATTEMPT_FACT] == "1"
    assert again["cluster"] == {}


def test_a_run_that_came_to_a_good_end_is_not_begun_anew() -> None:
    items = settled(with_role(an_order(), "post_install")).status.items
    assert plan.start_new_run_attempts(items, {"post_install"}) == items


def _kinds(items: tuple[Item, ...]) -> set[str]:
    return {item.kind for item in items}


def test_parts_are_planned_for_machines_of_the_platforms_own_too() -> None:
    order = with_role(an_order(), *HOOKS)
    items = plan.replan(order, {}, ("api",), on_hosts=False)
    assert _kinds(items) >= {"pre_install", "post_install", "acceptance"}
    assert set().union(*making(items)) == keys(items)
    assert order.status.phase == OrderPhase.UNSPECIFIED

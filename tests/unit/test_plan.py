"""The plan of an order: what should exist, what may be made now, what may go now."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from boatyard.model.generated.boatyard import Credentials, Item, ItemState, Order, OrderPhase
from boatyard.resources.orders import item_graph, plan
from tests.support.orders import (
    CHECKS,
    an_order,
    being_deleted,
    keys,
    planned,
    present,
    settled,
    waves_of_making,
    waves_of_releasing,
    with_sizes,
    with_version,
)

PLANNED, PRESENT, LEAVING = ItemState.PLANNED, ItemState.PRESENT, ItemState.LEAVING


def test_the_road_is_walked_in_waves_and_what_needs_nobody_goes_together() -> None:
    order = planned(an_order(sizes={"compute": 2}))
    assert waves_of_making(order.status.items) == [
        {"host/compute-0", "host/compute-1", "l2"},
        {"port/compute-0", "port/compute-1"},
        {"agent/compute-0", "agent/compute-1"},
        {"l3"},
        {"binding"},
        {"api-address", "ingress-address"},
        {"api-name", "ingress-name"},
        {"cluster"},
        {"node/compute-0", "node/compute-1"},
        {"check/names@1", "check/api@1"},
    ]


def test_the_way_back_is_the_road_in_reverse() -> None:
    order = planned(being_deleted(settled(an_order(sizes={"compute": 1}))))
    waves = waves_of_releasing(order.status.items)
    place = {key: number for number, wave in enumerate(waves) for key in wave}
    for kind in item_graph.ITEM_KINDS.values():
        for need in kind.needs:
            if item_graph.ITEM_KINDS[need].per_node and not kind.per_node:
                continue  # a thing of the whole cluster does not hold the hosts
            for key, needed in itertools.product(place, place):
                if key.split("/")[0] == kind.name and needed.split("/")[0] == need:
                    assert place[key] < place[needed], (key, needed)


def test_a_slow_host_holds_only_what_stands_on_it() -> None:
    items = planned(an_order(sizes={"compute": 2})).status.items
    items = tuple(present(i) if i.key in ("host/compute-0", "l2") else i for i in items)
    assert keys(plan.ready_to_add(items)) == {"host/compute-1", "port/compute-0"}


def _machines(order: Order) -> Order:
    """The order with its plan made, on a platform that makes machines itself."""
    items = plan.replan(order, {}, CHECKS, on_hosts=False)
    status = msgspec.structs.replace(order.status, items=tuple(present(item) for item in items))
    return msgspec.structs.replace(order, status=status)


def test_machines_of_the_platforms_own_need_no_hosts() -> None:
    order = an_order(sizes={"compute": 1})
    items = plan.replan(order, {}, CHECKS, on_hosts=False)
    assert not {item.kind for item in items} & item_graph.HOST_ITEM_KINDS
    waves = waves_of_making(items)
    assert waves[0] == {"l2"}
    assert {"node/compute-0"} in waves
    assert set().union(*waves) == keys(items), "something can never be made"
    waves_of_releasing(planned(being_deleted(_machines(order))).status.items)


@pytest.mark.parametrize("now_said", [True, False])
def test_later_nodes_stand_on_what_the_first_stand_on(now_said: bool) -> None:
    """Whatever the hub's settings say by now: nobody takes hosts from under nodes, or gives machines hosts."""
    grown = with_sizes(_machines(an_order(sizes={"compute": 1})), compute=2)
    items = plan.replan(grown, {}, CHECKS, on_hosts=now_said)
    assert not {item.kind for item in items} & item_graph.HOST_ITEM_KINDS
    grown = with_sizes(settled(an_order(sizes={"compute": 1})), compute=2)
    items = plan.replan(grown, {}, CHECKS, on_hosts=now_said)
    assert "host/compute-1" in keys(items, PLANNED)
    assert not keys(items, LEAVING) & {"host/compute-0"}


def test_the_steps_are_in_the_order_of_the_road_and_know_what_they_wait_for() -> None:
    usual = [step for step in item_graph.STEPS if step not in item_graph.ROLE_STEPS]
    assert usual == ["hosts", "network", "addresses", "names", "install", "validate"]
    assert item_graph.list_direct_dependencies("hosts") == ()
    assert item_graph.list_direct_dependencies("network") == ("hosts",)
    assert item_graph.list_direct_dependencies("install") == ("network", "names", "pre_install")


@pytest.mark.parametrize(
    "order, expected",
    [
        pytest.param(an_order(), True, id="a new order has no plan yet"),
        pytest.param(settled(an_order()), False, id="a plan of this generation stands"),
        pytest.param(with_sizes(settled(an_order()), compute=2), True, id="a new wish"),
        pytest.param(being_deleted(settled(an_order())), True, id="a deletion not yet planned"),
        pytest.param(
            planned(being_deleted(settled(an_order()))), False, id="a deletion that is planned"
        ),
        pytest.param(being_deleted(an_order()), False, id="nothing recorded, nothing to plan"),
    ],
)
def test_needs_planning(order: Order, expected: bool) -> None:
    assert plan.needs_planning(order) is expected


@pytest.mark.parametrize(
    "sizes, wish, expected",
    [
        pytest.param({"compute": 3}, {"compute": 3}, [], id="nothing changed"),
        pytest.param({"compute": 1}, {"compute": 3}, [], id="growing asks nobody"),
        pytest.param({"compute": 3}, {"compute": 1}, [("compute", 2)], id="two too many"),
        pytest.param({"compute": 2}, {"compute": 0}, [("compute", 2)], id="down to nothing"),
        pytest.param(
            {"compute": 2, "gpu": 1}, {"compute": 2}, [("gpu", 1)], id="a node set that is gone"
        ),
        pytest.param(
            {"compute": 2, "gpu": 2},
            {"compute": 1, "gpu": 3},
            [("compute", 1)],
            id="one shrinks while the other grows",
        ),
    ],
)
def test_shrinking(
    sizes: dict[str, int], wish: dict[str, int], expected: list[tuple[str, int]]
) -> None:
    order = with_sizes(settled(an_order(sizes=sizes)), **wish)
    assert [(one.node_set, one.count) for one in plan.list_node_set_reductions(order)] == expected


def test_nobody_is_asked_who_leaves_when_all_leave() -> None:
    assert (
        plan.list_node_set_reductions(being_deleted(with_sizes(settled(an_order()), compute=0)))
        == ()
    )


def test_who_was_named_leaves_with_all_that_is_theirs_and_nothing_else() -> None:
    order = with_sizes(settled(an_order(sizes={"compute": 3})), compute=2)
    items = plan.replan(order, {"compute": ["compute-1"]}, CHECKS)
    leaving = {key for key in keys(items, LEAVING) if not key.startswith("check/")}
    assert leaving == {f"{kind}/compute-1" for kind in ("host", "port", "agent", "node")}
    assert not {key for key in keys(items, PLANNED) if not key.startswith("check/")}


def test_a_leaving_node_is_gone_before_its_host_is_released() -> None:
    order = with_sizes(settled(an_order(sizes={"compute": 2})), compute=1)
    items = plan.replan(order, {"compute": ["compute-1"]}, ())
    seen = []
    while ready := plan.ready_to_remove(items):
        seen.append({key for key in keys(ready) if not key.startswith("check/")})
        items = tuple(item for item in items if item not in ready)
    assert seen == [
        {"node/compute-1"},
        {"agent/compute-1"},
        {"port/compute-1"},
        {"host/compute-1"},
    ]


def test_growing_again_takes_fresh_slots_and_lets_the_leaving_leave() -> None:
    shrunk = with_sizes(settled(an_order(sizes={"compute": 3})), compute=1)
    shrunk = planned(shrunk, {"compute": ["compute-1", "compute-2"]})
    grown = planned(with_sizes(shrunk, compute=2))
    hosts = {i.slot: i.state for i in grown.status.items if i.kind == "host"}
    assert hosts == {
        "compute-0": PRESENT,
        "compute-1": LEAVING,
        "compute-2": LEAVING,
        "compute-3": PLANNED,
    }


def test_a_number_is_never_given_twice_even_when_its_node_is_really_gone() -> None:
    grown = settled(an_order(sizes={"compute": 2}))
    kept = tuple(item for item in grown.status.items if item.slot != "compute-1")
    shrunk = msgspec.structs.replace(
        grown, status=msgspec.structs.replace(grown.status, items=kept)
    )
    again = planned(with_sizes(shrunk, compute=2))
    assert plan.staying_slots(again.status.items) == {"compute": ("compute-0", "compute-2")}


@pytest.mark.parametrize(
    "slots, wish, expected",
    [
        pytest.param(["compute-7"], 2, ("compute-7", "compute-8"), id="the next number"),
        pytest.param(
            ["compute-2", "compute-10"], 2, ("compute-2", "compute-10"), id="numbers, not letters"
        ),
    ],
)
def test_slots(slots: list[str], wish: int, expected: tuple[str, ...]) -> None:
    items = [
        Item(key=f"host/{s}", kind="host", step="hosts", node_set="compute", slot=s, state=PRESENT)
        for s in slots
    ]
    order = an_order(sizes={"compute": wish}, items=items)
    assert plan.staying_slots(planned(order).status.items)["compute"] == expected


@pytest.mark.parametrize(
    "states", list(itertools.product((PLANNED, PRESENT, LEAVING), repeat=2)), ids=str
)
def test_deleting_releases_every_item_in_whatever_state_it_was(
    states: tuple[ItemState, ItemState],
) -> None:
    """Also those that never finished: they may exist outside."""
    order = planned(an_order(sizes={"compute": 1}))
    turned = tuple(
        msgspec.structs.replace(item, state=states[number % 2])
        for number, item in enumerate(order.status.items)
    )
    status = msgspec.structs.replace(order.status, items=turned)
    gone = planned(being_deleted(msgspec.structs.replace(order, status=status)))
    assert {item.state for item in gone.status.items} == {LEAVING}
    assert keys(gone.status.items) == keys(turned)
    assert plan.ready_to_add(gone.status.items) == ()
    waves_of_releasing(gone.status.items)


def test_nothing_recorded_disappears_by_planning() -> None:
    order = settled(an_order(sizes={"compute": 2}))
    for wish in (with_sizes(order, compute=0), with_sizes(order, gpu=1), being_deleted(order)):
        leaving = {
            one.node_set: one.slots[: one.count] for one in plan.list_node_set_reductions(wish)
        }
        assert keys(order.status.items) <= keys(plan.replan(wish, leaving, ()))


def test_the_same_plan_again_changes_nothing() -> None:
    order = settled(an_order(sizes={"compute": 2}))
    assert plan.replan(order, {}, CHECKS) == order.status.items


def test_a_new_version_is_a_correction_of_the_control_plane_and_new_questions() -> None:
    order = planned(with_version(settled(an_order()), "4.18.3"))
    assert keys(plan.ready_to_add(order.status.items)) == {"cluster"}
    assert keys(order.status.items, PLANNED) == {"check/names@2", "check/api@2"}
    assert not plan.is_settled(order.status.items)


def test_a_correction_taken_back_half_way_is_made_again() -> None:
    """The old state was confirmed once, but who knows what the half-made correction has left."""
    order = planned(with_version(settled(an_order()), "4.18.3"))
    back = planned(with_version(order, "4.17.9"))
    assert "cluster" in keys(plan.ready_to_add(back.status.items))


def test_questions_are_asked_when_nothing_else_is_coming_or_going() -> None:
    order = with_sizes(settled(an_order(sizes={"compute": 2})), compute=1)
    items = plan.replan(order, {"compute": ["compute-1"]}, CHECKS)
    assert plan.ready_to_add(items) == ()
    items = tuple(item for item in items if item.state != LEAVING)
    assert keys(plan.ready_to_add(items)) == {"check/names@2", "check/api@2"}


@pytest.mark.parametrize(
    "dead, stays",
    [
        pytest.param({"api-name", "ingress-name"}, "names", id="a dead name server"),
        pytest.param({"cluster"}, "control plane", id="a control plane that does not go"),
    ],
)
def test_what_cannot_be_released_keeps_no_hosts(dead: set[str], stays: str) -> None:
    items = planned(being_deleted(settled(an_order(sizes={"compute": 1})))).status.items
    while ready := [i for i in plan.ready_to_remove(items) if i.key not in dead]:
        items = tuple(item for item in items if item not in ready)
    assert not {key for key in keys(items) if key.startswith(("host/", "port/", "node/"))}
    assert dead <= keys(items)


def _accessed(order: Order, phase: OrderPhase, kubeconfig: str) -> Order:
    credentials = Credentials(kubeconfig=kubeconfig)
    status = msgspec.structs.replace(order.status, phase=phase, credentials=credentials)
    return msgspec.structs.replace(order, status=status)


def _with_api(order: Order) -> Order:
    """Planned, and of all that only the control plane there."""
    items = tuple(present(i) if i.kind == "cluster" else i for i in planned(order).status.items)
    return msgspec.structs.replace(order, status=msgspec.structs.replace(order.status, items=items))


MADE = settled(an_order()).status.items


@pytest.mark.parametrize("order, phase, kubeconfig, expected", [
    pytest.param(planned(an_order()), OrderPhase.PROGRESSING, "", False, id="nothing there"),
    pytest.param(_with_api(an_order()), OrderPhase.PROGRESSING, "", True, id="as soon as the API answers"),
    pytest.param(_with_api(an_order()), OrderPhase.PROGRESSING, "known", False, id="not on every pass"),
    pytest.param(settled(an_order()), OrderPhase.PROGRESSING, "known", True, id="once more at the end"),
    pytest.param(settled(an_order()), OrderPhase.READY, "known", False, id="not while it stays ready"),
    pytest.param(settled(an_order()), OrderPhase.DEGRADED, "known", False, id="nor while it is ill"),
    pytest.param(settled(an_order()), OrderPhase.DEGRADED, "", True, id="until it is known"),
    pytest.param(planned(an_order(version="9", items=MADE)), OrderPhase.PROGRESSING, "", False, id="amid a correction"),
])  # fmt: skip
def test_when_the_platform_is_asked_how_the_cluster_is_reached(
    order: Order, phase: OrderPhase, kubeconfig: str, expected: bool
) -> None:
    asking = _accessed(order, phase, kubeconfig)
    assert plan.needs_credentials(asking, asking.status.items) is expected

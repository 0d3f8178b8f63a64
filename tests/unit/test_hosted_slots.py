"""Which nodes a pool has, which machine each is, and who leaves."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model import hub_names
from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.drivers.hosted import slots
from boatyard.platforms.drivers.hosted.kinds import DELETE_FIRST_ANNOTATION, NODE_POOL_ANNOTATION
from boatyard.platforms.drivers.hosted.machines import PoolMachine, exclude_leaving, read_machine
from boatyard.platforms.drivers.hosted.slots import Slot
from boatyard.platforms.port import DesiredNode
from tests.support.kube_hub.hosted_values import PLACE, condition, pool


def slot(number: int, **more: Any) -> Slot:
    name = f"compute-{number}"
    values = {"host": f"host-{number}", "address": "", "agent": f"hosts/host-{number}", **more}
    return Slot(name, "compute", f"{PLACE.cluster_id}/node/{name}", **values)


def pool_of(*there: Slot, replicas: int | None = None) -> dict[str, Any]:
    found = pool("Agent")
    count = sum(not one.leaving for one in there) if replicas is None else replicas
    written = slots.render_slots(found, there, count)
    found["metadata"]["annotations"] |= written["metadata"]["annotations"]
    found["spec"]["replicas"] = count
    return found


def machine(
    name: str,
    *,
    agent: str = "",
    node: bool = True,
    ready: bool = True,
    created: int = 0,
    **more: Any,
) -> PoolMachine:
    annotations = {NODE_POOL_ANNOTATION: f"ns/{pool()['metadata']['name']}"}
    about: dict[str, Any] = {
        "name": name,
        "annotations": annotations,
        "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
    }
    if more.get("leaving"):
        about["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    if more.get("marked"):
        annotations[DELETE_FIRST_ANNOTATION] = "true"
    if more.get("slot"):
        annotations[hub_names.SLOT] = more["slot"]
    told: dict[str, Any] = {"conditions": [condition("NodeHealthy", str(ready))]}
    if node:
        told["nodeRef"] = {"name": f"node-{name}"}
    spec = {"providerID": f"agent://{agent}"} if agent else {}
    return read_machine({"metadata": about, "spec": spec, "status": told})


# --- the book ----------------------------------------------------------------------------------


def test_what_is_written_is_read_again() -> None:
    there = [slot(0), slot(1, leaving=True), slot(2, agent="", address="10.0.0.7")]
    assert list(slots.read_slots(pool_of(*there)).values()) == there


def test_a_book_that_cannot_be_read_is_not_an_empty_one() -> None:
    found = pool_of(slot(0))
    found["metadata"]["annotations"][f"{slots.SLOT_ANNOTATION_PREFIX}compute-1"] = "scribble"
    with pytest.raises(Unavailable, match="compute-1"):
        slots.read_slots(found)


@pytest.mark.parametrize(
    "there, replicas, expected",
    [
        pytest.param((), None, 1, id="the first"),
        pytest.param((slot(1), slot(2)), None, 3, id="one more"),
        pytest.param((slot(0),), None, 1, id="itself again"),
        pytest.param((slot(1, leaving=True),), 0, 1, id="beside one that leaves"),
        pytest.param((), 3, 3, id="never fewer than there are, though the book is lost"),
    ],
)
def test_a_slot_more(there: tuple[Slot, ...], replicas: int | None, expected: int) -> None:
    book = slots.with_slot(pool_of(*there, replicas=replicas), slot(0))
    assert book.replicas == expected
    assert book.slots["compute-0"] == slot(0)


@pytest.mark.parametrize(
    "there, replicas, expected",
    [
        pytest.param((slot(0),), None, 0, id="the last"),
        pytest.param((slot(0), slot(1)), None, 1, id="one of two"),
        pytest.param((slot(0), slot(1), slot(2)), 2, 2, id="never fewer than are to stay"),
        pytest.param((slot(0),), 5, 4, id="one fewer, though the rest of the book is lost"),
        pytest.param((slot(0, leaving=True), slot(1)), None, 1, id="it is leaving already"),
        pytest.param((slot(1),), None, 1, id="it is not in the book"),
    ],
)
def test_a_slot_that_leaves(there: tuple[Slot, ...], replicas: int | None, expected: int) -> None:
    book = slots.with_leaving(pool_of(*there, replicas=replicas), "compute-0")
    assert book.replicas == expected
    assert all(one.leaving for name, one in book.slots.items() if name == "compute-0")


def test_a_slot_that_leaves_where_no_machines_are_made_changes_no_number() -> None:
    assert (
        slots.with_leaving(pool_of(slot(0), replicas=0), "compute-0", counted=False).replicas == 0
    )
    again = pool_of(slot(0, leaving=True), replicas=5)
    assert slots.with_leaving(again, "compute-0").replicas == 5, "it was counted before"


def test_a_pool_that_was_just_made_has_no_number() -> None:
    assert slots.replicas_of(pool()) == 0


def test_a_slot_is_found_with_its_pool() -> None:
    other = pool_of(slot(1))
    assert slots.find_slot([pool_of(slot(0)), other], "compute-1") == (other, slot(1))
    assert slots.find_slot([other], "compute-0") is None


def test_a_slot_that_has_left_changes_no_number() -> None:
    book = slots.without_slot(pool_of(slot(0, leaving=True), slot(1)), "compute-0")
    assert (list(book.slots), book.replicas) == (["compute-1"], 1)


def test_where_hypershift_makes_no_machines_none_are_asked_for() -> None:
    assert slots.with_slot(pool_of(), slot(0), counted=False).replicas == 0


@pytest.mark.parametrize(
    "key, node",
    [
        pytest.param(
            "other/node/compute-0", DesiredNode("compute-0", "compute", "host-9", ""), id="the slot"
        ),
        pytest.param("k", DesiredNode("compute-1", "compute", "host-0", ""), id="the host"),
    ],
)
def test_what_is_in_use_under_another_key_is_refused(key: str, node: DesiredNode) -> None:
    with pytest.raises(Refused) as caught:
        slots.check_free([pool_of(slot(0))], key, node)
    assert caught.value.reason == "HeldByAnother"


@pytest.mark.parametrize(
    "key, node",
    [
        pytest.param(
            slot(0).key, DesiredNode("compute-0", "compute", "host-0", ""), id="the same again"
        ),
        pytest.param("k", DesiredNode("compute-7", "compute", "host-7", ""), id="another"),
    ],
)
def test_what_is_free_is_not(key: str, node: DesiredNode) -> None:
    slots.check_free([pool_of(slot(0))], key, node)


# --- machines ----------------------------------------------------------------------------------


def test_an_agent_tells_which_machine_a_slot_is() -> None:
    there = [machine("a", agent="host-1"), machine("b", agent="host-0"), machine("c")]
    found = slots.match_machines(pool_of(slot(0), slot(1), slot(2)), there, agents=True)
    assert {name: one.name for name, one in found.items()} == {"compute-0": "b", "compute-1": "a"}


def test_of_two_machines_with_one_agent_the_one_that_stays_tells() -> None:
    there = [machine("new", agent="host-0"), machine("old", agent="host-0", leaving=True)]
    found = slots.match_machines(pool_of(slot(0)), there, agents=True)
    assert found["compute-0"].name == "new"


def test_a_virtual_machine_carries_its_slot_and_others_go_to_who_has_none() -> None:
    there = [
        machine("old", created=1),
        machine("mine", slot="compute-1", created=2),
        machine("gone", leaving=True),
    ]
    found = slots.match_machines(pool_of(slot(0), slot(1), slot(2)), there, agents=False)
    assert {name: one.name for name, one in found.items()} == {
        "compute-1": "mine",
        "compute-0": "old",
    }


def test_a_slot_that_leaves_gets_no_machine_any_more() -> None:
    found = slots.match_machines(pool_of(slot(0, leaving=True)), [machine("free")], agents=False)
    assert found == {}


def test_machines_of_other_pools_are_others() -> None:
    found = slots.match_machines(pool_of(slot(0)), [machine("a", agent="host-0")], agents=True)
    assert found
    elsewhere = pool_of(slot(0))
    elsewhere["metadata"]["name"] = "another"
    assert slots.match_machines(elsewhere, [machine("a", agent="host-0")], agents=True) == {}


@pytest.mark.parametrize(
    "there, ready",
    [
        pytest.param(machine("a"), True, id="healthy"),
        pytest.param(machine("a", ready=False), False, id="not healthy"),
        pytest.param(machine("a", node=False), False, id="no node"),
        pytest.param(machine("a", leaving=True), False, id="leaving"),
        pytest.param(None, False, id="no machine"),
    ],
)
def test_a_node_is_ready(there: PoolMachine | None, ready: bool) -> None:
    found = {"compute-0": there} if there else {}
    (seen,) = slots.to_observed_nodes(pool_of(slot(0)), found)
    assert (seen.slot, seen.node_set, seen.ready) == ("compute-0", "compute", ready)
    assert bool(seen.message) is not ready


@pytest.mark.parametrize("phase, ready", [("Running", True), ("Provisioned", False)])
def test_a_machine_without_that_condition_is_judged_by_its_phase(phase: str, ready: bool) -> None:
    told = {"phase": phase, "nodeRef": {"name": "n"}}
    assert read_machine({"metadata": {"name": "a"}, "status": told}).ready is ready


def test_who_stays() -> None:
    assert exclude_leaving([machine("a"), machine("b", leaving=True)]) == [machine("a")]


# --- who leaves --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "machines, expected",
    [
        pytest.param({}, ["compute-2", "compute-1", "compute-0"], id="nobody joined: the last"),
        pytest.param(
            {
                0: machine("a", node=False),
                1: machine("b", ready=False),
                2: machine("c", created=9),
            },
            ["compute-0", "compute-1", "compute-2"],
            id="who never joined, who is not ready, then the rest",
        ),
        pytest.param(
            {0: machine("a", created=5), 1: machine("b", created=9), 2: machine("c", created=1)},
            ["compute-1", "compute-0", "compute-2"],
            id="the youngest first",
        ),
        pytest.param(
            {0: machine("a"), 1: machine("b"), 2: machine("c")},
            ["compute-2", "compute-1", "compute-0"],
            id="of the same age the last",
        ),
        pytest.param(
            {0: machine("a", created=1, leaving=True), 1: machine("b", created=9)},
            ["compute-0", "compute-2", "compute-1"],
            id="first whom HyperShift has named",
        ),
        pytest.param(
            {0: machine("a", created=1, marked=True), 1: machine("b"), 2: machine("c")},
            ["compute-0", "compute-2", "compute-1"],
            id="or who was marked before",
        ),
    ],
)
def test_who_leaves(machines: dict[int, PoolMachine], expected: list[str]) -> None:
    names = [f"compute-{number}" for number in range(3)]
    found = {f"compute-{number}": one for number, one in machines.items()}
    assert list(slots.choose_leaving(names, 3, found)) == expected
    assert list(slots.choose_leaving(names, 1, found)) == expected[:1]
    assert list(slots.choose_leaving(names, 0, found)) == []


def test_what_is_written_holds_only_for_the_pool_that_was_read() -> None:
    seen = pool("Agent")
    seen["metadata"] |= {"uid": "u-1", "resourceVersion": "7"}

    about = slots.render_slots(seen, [slot(0)], 1)["metadata"]

    assert (about["uid"], about["resourceVersion"]) == ("u-1", "7")

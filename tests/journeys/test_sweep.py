"""What a late effect leaves on a hub after its order has ended is found by looking outside, and taken back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.automation.port import RunWanted
from boatyard.model.generated.osac import ClusterState
from boatyard.resources.hubs.reconciler import SWEEP_EVERY
from boatyard.twin.hub import Thing
from tests.support.yard import Yard

A_LITTLE_LATER = SWEEP_EVERY + timedelta(minutes=2)
TWICE_AS_LATE = 3 * A_LITTLE_LATER  # on a Kubernetes hub only what is found twice is nobody's


def make_behind(yard: Yard, kind: str, key: str, name: str) -> None:
    thing = Thing(kind, "hub-1", key, name)
    yard.world.state.make(thing, yard.clock.now().timestamp())


async def test_what_an_ended_order_left_is_released(yard: Yard) -> None:
    cluster_id = await yard.order("late")
    await yard.run_to(cluster_id, ClusterState.READY)
    await yard.delete(cluster_id)
    await yard.run_until_gone(cluster_id)
    for kind, item, name in (
        ("host", "host/compute-0", "r1-n1"),
        ("network", "l2", "1234"),
        ("record", "api-name", "api.late.example"),
    ):
        make_behind(yard, kind, f"{cluster_id}/{item}", name)

    await yard.run(within=TWICE_AS_LATE)

    assert await yard.held(cluster_id) == {}
    assert await yard.leftover_of(cluster_id) is None


async def test_what_a_living_order_holds_is_left_alone(yard: Yard) -> None:
    cluster_id = await yard.order("alive")
    await yard.run_to(cluster_id, ClusterState.READY)
    before = await yard.held(cluster_id)

    await yard.run(within=TWICE_AS_LATE)

    assert await yard.held(cluster_id) == before


@pytest.mark.forms("embedded")
@pytest.mark.parametrize("item", ["scale/3", "farewell"])
async def test_a_run_that_began_after_its_order_had_ended_is_ended(item: str, yard: Yard) -> None:
    cluster_id = await yard.order("late", sizes={"compute": 1})
    await yard.run_to(cluster_id, ClusterState.READY)
    await yard.delete(cluster_id)
    await yard.run_until_gone(cluster_id)
    key = f"{cluster_id}/{item}"
    yard.roles.hang.add("act")
    await yard.roles.ensure_run(key, RunWanted("act", ""))

    await yard.run(within=A_LITTLE_LATER)

    assert await yard.roles.list_owned() == []
    assert [one.action for one in yard.roles.started()] == ["act"], "nothing more was run"

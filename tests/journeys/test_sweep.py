"""What a late effect leaves on a hub after its order has ended is found by looking outside, and taken back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.automation.port import RunSpec
from boatyard.model.generated.osac import ClusterState
from boatyard.resources.hubs.reconciler import SWEEP_INTERVAL
from boatyard.twin.hub import Thing
from tests.support.simulated.environment import SimulatedEnvironment

A_LITTLE_LATER = SWEEP_INTERVAL + timedelta(minutes=2)
TWICE_AS_LATE = 3 * A_LITTLE_LATER  # on a Kubernetes hub only what is found twice is nobody's


def make_behind(environment: SimulatedEnvironment, kind: str, key: str, name: str) -> None:
    thing = Thing(kind, "hub-1", key, name)
    environment.world.state.make(thing, environment.clock.now().timestamp())


async def test_what_an_ended_order_left_is_released(environment: SimulatedEnvironment) -> None:
    cluster_id = await environment.order("late")
    await environment.run_to(cluster_id, ClusterState.READY)
    await environment.delete(cluster_id)
    await environment.run_until_gone(cluster_id)
    for kind, item, name in (
        ("host", "host/compute-0", "r1-n1"),
        ("network", "l2", "1234"),
        ("record", "api-name", "api.late.example"),
    ):
        make_behind(environment, kind, f"{cluster_id}/{item}", name)

    await environment.run(within=TWICE_AS_LATE)

    assert await environment.held(cluster_id) == {}
    assert await environment.leftover_of(cluster_id) is None


async def test_what_a_living_order_holds_is_left_alone(environment: SimulatedEnvironment) -> None:
    cluster_id = await environment.order("alive")
    await environment.run_to(cluster_id, ClusterState.READY)
    before = await environment.held(cluster_id)

    await environment.run(within=TWICE_AS_LATE)

    assert await environment.held(cluster_id) == before


@pytest.mark.forms("embedded")
@pytest.mark.parametrize("item", ["scale/3", "farewell"])
async def test_a_run_that_began_after_its_order_had_ended_is_ended(
    item: str, environment: SimulatedEnvironment
) -> None:
    cluster_id = await environment.order("late", sizes={"compute": 1})
    await environment.run_to(cluster_id, ClusterState.READY)
    await environment.delete(cluster_id)
    await environment.run_until_gone(cluster_id)
    key = f"{cluster_id}/{item}"
    environment.roles.hang.add("act")
    await environment.roles.ensure_run(key, RunSpec("act", ""))

    await environment.run(within=A_LITTLE_LATER)

    assert await environment.roles.list_owned() == []
    assert [one.action for one in environment.roles.started()] == ["act"], "nothing more was run"

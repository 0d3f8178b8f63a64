"""Clusters that rest: frozen, stopped, stopped after a while; and what cannot be done meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.model.generated.boatyard import OrderPhase
from boatyard.model.generated.osac import (
    ClusterConditionType,
    ClusterRest,
    ClusterState,
    ConditionStatus,
)
from boatyard.platforms.port import RestMode
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated import lifecycle
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.twin import EVEN


async def _conditions(
    environment: SimulatedEnvironment, cluster_id: str
) -> dict[str, tuple[bool, str]]:
    return {
        ClusterConditionType(one.type).name: (
            one.status == ConditionStatus.TRUE,
            one.reason or "",
        )
        for one in (await environment.cluster(cluster_id)).status.conditions
    }


@pytest.mark.parametrize("deep, rest", [(False, RestMode.FROZEN), (True, RestMode.STOPPED)])
async def test_a_cluster_rests_and_is_awake_again(
    new_environment: NewEnvironment, deep: bool, rest: RestMode
) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    before, credentials = (
        await environment.held(web),
        (await environment.order_of(web)).status.credentials,
    )

    await lifecycle.hibernate(environment, web, deep=deep)
    await environment.turn()
    assert await environment.state(web) == ClusterState.PROGRESSING
    await environment.run_to(web, ClusterState.HIBERNATED)

    assert await lifecycle.rest_of(environment, web) == rest
    assert await environment.held(web) == before
    cluster = await environment.cluster(web)
    assert cluster.status.node_sets["compute"].size == 2
    assert cluster.status.ready_nodes == {}
    assert cluster.status.rest == (ClusterRest.STOPPED if deep else ClusterRest.FROZEN)
    conditions = await _conditions(environment, web)
    assert conditions["CLUSTER_AVAILABLE"] == (False, "Hibernated")
    assert conditions["READY"] == (False, "Hibernated")
    assert not conditions["FAILED"][0]
    assert not conditions["DEGRADED"][0]
    assert conditions["INFRASTRUCTURE_READY"][0]

    await lifecycle.resume(environment, web)
    await environment.turn()
    await environment.run_to(web, ClusterState.READY)

    assert await environment.held(web) == before
    assert (await environment.order_of(web)).status.credentials == credentials
    cluster = await environment.cluster(web)
    assert (cluster.status.rest, cluster.status.ready_nodes) == (ClusterRest.AWAKE, {"compute": 2})


async def test_nobody_is_asked_while_it_rests_and_everybody_afterwards(
    environment: SimulatedEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    first = {i.key for i in (await environment.order_of(web)).status.items if i.kind == "check"}
    assert first

    await lifecycle.hibernate(environment, web)
    await environment.run_to(web, ClusterState.HIBERNATED)
    await environment.break_service("checks", "dead")
    await environment.run(within=timedelta(minutes=30))
    assert await environment.state(web) == ClusterState.HIBERNATED
    order = await environment.order_of(web)
    assert [item for item in order.status.items if item.kind == "check"] == []

    await environment.heal()
    await lifecycle.resume(environment, web)
    await environment.run_to(web, ClusterState.READY)
    again = {i.key for i in (await environment.order_of(web)).status.items if i.kind == "check"}
    assert len(again) == len(first)
    assert again.isdisjoint(first), "each question is asked anew"


async def test_a_lost_node_is_no_trouble_while_it_rests(environment: SimulatedEnvironment) -> None:
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    await lifecycle.hibernate(environment, web, deep=True)
    await environment.run_to(web, ClusterState.HIBERNATED)
    host = (await environment.names("host", web))[0]
    hub = (await environment.cluster(web)).status.hub

    await environment.call("power_off", hub=hub, host=host)
    await environment.run(within=timedelta(minutes=30))

    assert await environment.state(web) == ClusterState.HIBERNATED
    await environment.call("power_off", hub=hub, host=host, on=True)
    await lifecycle.resume(environment, web)
    await environment.run_to(web, ClusterState.READY)


async def test_a_freeze_that_lasts_becomes_a_stop(new_environment: NewEnvironment) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await lifecycle.hibernate(environment, web)
    await environment.run_to(web, ClusterState.HIBERNATED)

    await environment.run(within=timedelta(minutes=55))
    assert await lifecycle.rest_of(environment, web) == RestMode.FROZEN
    await environment.run(within=timedelta(minutes=10))

    assert await lifecycle.rest_of(environment, web) == RestMode.STOPPED
    cluster = await environment.cluster(web)
    assert (cluster.spec.rest, cluster.status.rest) == (ClusterRest.FROZEN, ClusterRest.STOPPED)
    states = [
        row for row in await lifecycle.notes_of(environment, "Cluster", web) if row != "Changed"
    ]
    assert states[-2:] == ["Hibernated", "Stopped"], "to its owner it rested all the while"

    await lifecycle.resume(environment, web)
    await environment.run_to(web, ClusterState.READY)
    assert await lifecycle.rest_of(environment, web) == RestMode.AWAKE
    await lifecycle.hibernate(environment, web)
    await environment.run_to(web, ClusterState.HIBERNATED)
    assert await lifecycle.rest_of(environment, web) == RestMode.FROZEN, (
        "another rest begins frozen again"
    )


async def test_a_stop_that_cannot_be_had_at_once_is_tried_again(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await lifecycle.hibernate(environment, web)
    await environment.run_to(web, ClusterState.HIBERNATED)
    await environment.break_service("platform.ensure_cluster", "dead")

    await environment.run(within=timedelta(minutes=90))
    assert await environment.state(web) == ClusterState.HIBERNATED
    assert await lifecycle.rest_of(environment, web) == RestMode.FROZEN

    await environment.heal()
    await environment.run(within=timedelta(minutes=5))
    assert await lifecycle.rest_of(environment, web) == RestMode.STOPPED


async def test_a_resting_cluster_is_taken_back_whole(new_environment: NewEnvironment) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    await lifecycle.hibernate(environment, web, deep=True)
    await environment.run_to(web, ClusterState.HIBERNATED)

    await environment.delete(web)
    await environment.run_until_gone(web)

    assert (await environment.receipt_of(web)).left == ()
    await environment.assert_nothing_left()


@pytest.mark.form_cases("moments", [0, 2, 4], on_hub=[2])
async def test_a_mind_changed_while_it_falls_asleep(
    new_environment: NewEnvironment, moments: int
) -> None:
    environment = await new_environment(overrides={**EVEN, "rest": 3.0, "resume": 3.0})
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)

    await lifecycle.hibernate(environment, web)
    await environment.turn()
    for _ in range(moments):
        await environment.step()
    await lifecycle.resume(environment, web)
    await environment.turn()
    await environment.run_to(web, ClusterState.READY)

    assert await lifecycle.rest_of(environment, web) == RestMode.AWAKE
    assert (await lifecycle.seen(environment, web))["available"]


async def test_somebody_who_wakes_it_behind_our_back_is_corrected(
    environment: SimulatedEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await lifecycle.hibernate(environment, web)
    await environment.run_to(web, ClusterState.HIBERNATED)
    hub = environment.world.state.hubs[(await environment.cluster(web)).status.hub]
    thing = hub.things["cluster"][f"{web}/cluster"]
    environment.world.state.replace(thing, extra=(*thing.extra[:6], "", *thing.extra[7:]))
    assert await lifecycle.rest_of(environment, web) == RestMode.AWAKE

    await environment.run(within=timedelta(minutes=3))

    assert await lifecycle.rest_of(environment, web) == RestMode.FROZEN
    assert await environment.state(web) == ClusterState.HIBERNATED


async def test_a_platform_that_cannot_rest_says_so_and_resume_mends_it(
    environment: SimulatedEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await environment.call("set_mood", order_id=web, step="install", mood="refused")

    await lifecycle.hibernate(environment, web)
    await environment.run_to(web, ClusterState.FAILED)
    assert (await environment.order_of(web)).status.phase == OrderPhase.FAILED

    await environment.call("set_mood", order_id=web, step="install", mood="")
    await lifecycle.resume(environment, web)
    await environment.run_to(web, ClusterState.READY)

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
from boatyard.platforms.port import Rest
from tests.journeys.conftest import NewYard
from tests.support import resting
from tests.support.stage import EVEN
from tests.support.yard import Yard


async def _conditions(yard: Yard, cluster_id: str) -> dict[str, tuple[bool, str]]:
    return {
        ClusterConditionType(one.type).name: (
            one.status == ConditionStatus.TRUE,
            one.reason or "",
        )
        for one in (await yard.cluster(cluster_id)).status.conditions
    }


@pytest.mark.parametrize("deep, rest", [(False, Rest.FROZEN), (True, Rest.STOPPED)])
async def test_a_cluster_rests_and_is_awake_again(
    new_yard: NewYard, deep: bool, rest: Rest
) -> None:
    yard = await new_yard(delays="demo")
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    before, credentials = await yard.held(web), (await yard.order_of(web)).status.credentials

    await resting.hibernate(yard, web, deep=deep)
    await yard.turn()
    assert await yard.state(web) == ClusterState.PROGRESSING
    await yard.run_to(web, ClusterState.HIBERNATED)

    assert await resting.rest_of(yard, web) == rest
    assert await yard.held(web) == before
    cluster = await yard.cluster(web)
    assert cluster.status.node_sets["compute"].size == 2
    assert cluster.status.ready_nodes == {}
    assert cluster.status.rest == (ClusterRest.STOPPED if deep else ClusterRest.FROZEN)
    conditions = await _conditions(yard, web)
    assert conditions["CLUSTER_AVAILABLE"] == (False, "Hibernated")
    assert conditions["READY"] == (False, "Hibernated")
    assert not conditions["FAILED"][0]
    assert not conditions["DEGRADED"][0]
    assert conditions["INFRASTRUCTURE_READY"][0]

    await resting.resume(yard, web)
    await yard.turn()
    await yard.run_to(web, ClusterState.READY)

    assert await yard.held(web) == before
    assert (await yard.order_of(web)).status.credentials == credentials
    cluster = await yard.cluster(web)
    assert (cluster.status.rest, cluster.status.ready_nodes) == (ClusterRest.AWAKE, {"compute": 2})


async def test_nobody_is_asked_while_it_rests_and_everybody_afterwards(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    first = {i.key for i in (await yard.order_of(web)).status.items if i.kind == "check"}
    assert first

    await resting.hibernate(yard, web)
    await yard.run_to(web, ClusterState.HIBERNATED)
    await yard.break_service("checks", "dead")
    await yard.run(within=timedelta(minutes=30))
    assert await yard.state(web) == ClusterState.HIBERNATED
    order = await yard.order_of(web)
    assert [item for item in order.status.items if item.kind == "check"] == []

    await yard.heal()
    await resting.resume(yard, web)
    await yard.run_to(web, ClusterState.READY)
    again = {i.key for i in (await yard.order_of(web)).status.items if i.kind == "check"}
    assert len(again) == len(first)
    assert again.isdisjoint(first), "each question is asked anew"


async def test_a_lost_node_is_no_trouble_while_it_rests(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    await resting.hibernate(yard, web, deep=True)
    await yard.run_to(web, ClusterState.HIBERNATED)
    host = (await yard.names("host", web))[0]
    hub = (await yard.cluster(web)).status.hub

    await yard.call("power_off", hub=hub, host=host)
    await yard.run(within=timedelta(minutes=30))

    assert await yard.state(web) == ClusterState.HIBERNATED
    await yard.call("power_off", hub=hub, host=host, on=True)
    await resting.resume(yard, web)
    await yard.run_to(web, ClusterState.READY)


async def test_a_freeze_that_lasts_becomes_a_stop(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    await resting.hibernate(yard, web)
    await yard.run_to(web, ClusterState.HIBERNATED)

    await yard.run(within=timedelta(minutes=55))
    assert await resting.rest_of(yard, web) == Rest.FROZEN
    await yard.run(within=timedelta(minutes=10))

    assert await resting.rest_of(yard, web) == Rest.STOPPED
    cluster = await yard.cluster(web)
    assert (cluster.spec.rest, cluster.status.rest) == (ClusterRest.FROZEN, ClusterRest.STOPPED)
    states = [row for row in await resting.notes_of(yard, "Cluster", web) if row != "Changed"]
    assert states[-2:] == ["Hibernated", "Stopped"], "to its owner it rested all the while"

    await resting.resume(yard, web)
    await yard.run_to(web, ClusterState.READY)
    assert await resting.rest_of(yard, web) == Rest.AWAKE
    await resting.hibernate(yard, web)
    await yard.run_to(web, ClusterState.HIBERNATED)
    assert await resting.rest_of(yard, web) == Rest.FROZEN, "another rest begins frozen again"


async def test_a_stop_that_cannot_be_had_at_once_is_tried_again(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    await resting.hibernate(yard, web)
    await yard.run_to(web, ClusterState.HIBERNATED)
    await yard.break_service("platform.ensure_cluster", "dead")

    await yard.run(within=timedelta(minutes=90))
    assert await yard.state(web) == ClusterState.HIBERNATED
    assert await resting.rest_of(yard, web) == Rest.FROZEN

    await yard.heal()
    await yard.run(within=timedelta(minutes=5))
    assert await resting.rest_of(yard, web) == Rest.STOPPED


async def test_a_resting_cluster_is_taken_back_whole(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    await resting.hibernate(yard, web, deep=True)
    await yard.run_to(web, ClusterState.HIBERNATED)

    await yard.delete(web)
    await yard.run_until_gone(web)

    assert (await yard.receipt_of(web)).left == ()
    await yard.assert_nothing_left()


@pytest.mark.form_cases("moments", [0, 2, 4], on_hub=[2])
async def test_a_mind_changed_while_it_falls_asleep(new_yard: NewYard, moments: int) -> None:
    yard = await new_yard(overrides={**EVEN, "rest": 3.0, "resume": 3.0})
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)

    await resting.hibernate(yard, web)
    await yard.turn()
    for _ in range(moments):
        await yard.step()
    await resting.resume(yard, web)
    await yard.turn()
    await yard.run_to(web, ClusterState.READY)

    assert await resting.rest_of(yard, web) == Rest.AWAKE
    assert (await resting.seen(yard, web))["available"]


async def test_somebody_who_wakes_it_behind_our_back_is_corrected(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    await resting.hibernate(yard, web)
    await yard.run_to(web, ClusterState.HIBERNATED)
    hub = yard.world.state.hubs[(await yard.cluster(web)).status.hub]
    thing = hub.things["cluster"][f"{web}/cluster"]
    yard.world.state.set(thing, extra=(*thing.extra[:6], "", *thing.extra[7:]))
    assert await resting.rest_of(yard, web) == Rest.AWAKE

    await yard.run(within=timedelta(minutes=3))

    assert await resting.rest_of(yard, web) == Rest.FROZEN
    assert await yard.state(web) == ClusterState.HIBERNATED


async def test_a_platform_that_cannot_rest_says_so_and_resume_mends_it(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    await yard.call("set_mood", order_id=web, step="install", mood="refused")

    await resting.hibernate(yard, web)
    await yard.run_to(web, ClusterState.FAILED)
    assert (await yard.order_of(web)).status.phase == OrderPhase.FAILED

    await yard.call("set_mood", order_id=web, step="install", mood="")
    await resting.resume(yard, web)
    await yard.run_to(web, ClusterState.READY)

"""A new version that does not come up, and the way back."""

from __future__ import annotations

from datetime import timedelta

from boatyard.model.generated.boatyard import Actor
from boatyard.model.generated.osac import ClusterState
from tests.journeys.conftest import NewYard
from tests.support import resting


async def test_an_upgraded_cluster_stays_and_shows_the_version_that_runs(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    assert (await yard.cluster(web)).status.version == "4.17.9"
    before = await yard.held(web)

    await yard.set_version(web, "4.18.3")
    await yard.turn()
    assert await yard.state(web) == ClusterState.PROGRESSING
    assert (await yard.cluster(web)).status.version == "4.17.9"
    await yard.run_to(web, ClusterState.READY)
    assert (await yard.cluster(web)).status.version == "4.18.3"
    assert (await resting.seen(yard, web))["version"] == "4.18.3"
    assert await yard.held(web) == before, "a new version is a correction: the cluster stays"


async def test_a_failed_upgrade_is_rolled_back_and_can_be_retried(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    await yard.call("set_mood", order_id=web, step="upgrade", mood="refused")

    await yard.set_version(web, "4.18.3")
    await yard.run_to(web, ClusterState.FAILED)

    explanation = await yard.explain(web, operator=False)
    assert (explanation.blocked_by, explanation.actor) == ("install", Actor.TENANT)
    assert "retry, or set the version back" in explanation.remedy
    assert (await yard.cluster(web)).status.version == "4.17.9"
    assert (await resting.seen(yard, web))["available"], "it runs as before"

    await yard.call("set_mood", order_id=web, step="upgrade", mood="")
    await yard.retry(web)
    await yard.run_to(web, ClusterState.READY)
    assert (await yard.cluster(web)).status.version == "4.18.3"


async def test_a_failed_upgrade_is_taken_back_without_releasing_anything(
    new_yard: NewYard,
) -> None:
    yard = await new_yard(delays="demo")
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    before, happened = await yard.held(web), await yard.happenings()
    await yard.call("set_mood", order_id=web, step="upgrade", mood="refused")
    await yard.set_version(web, "4.18.3")
    await yard.run_to(web, ClusterState.FAILED)

    await yard.set_version(web, "4.17.9")
    await yard.run_to(web, ClusterState.READY)
    await yard.run(within=timedelta(minutes=5))

    assert await yard.state(web) == ClusterState.READY
    assert await yard.held(web) == before
    assert await yard.happenings() == happened
    assert (await yard.cluster(web)).status.version == "4.17.9"

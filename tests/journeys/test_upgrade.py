"""A new version that does not come up, and the way back."""

from __future__ import annotations

from datetime import timedelta

from boatyard.model.generated.boatyard import Actor
from boatyard.model.generated.osac import ClusterState
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated import lifecycle


async def test_an_upgraded_cluster_stays_and_shows_the_version_that_runs(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    assert (await environment.cluster(web)).status.version == "4.17.9"
    before = await environment.held(web)

    await environment.set_version(web, "4.18.3")
    await environment.turn()
    assert await environment.state(web) == ClusterState.PROGRESSING
    assert (await environment.cluster(web)).status.version == "4.17.9"
    await environment.run_to(web, ClusterState.READY)
    assert (await environment.cluster(web)).status.version == "4.18.3"
    assert (await lifecycle.seen(environment, web))["version"] == "4.18.3"
    assert await environment.held(web) == before, "a new version is a correction: the cluster stays"


async def test_a_failed_upgrade_is_rolled_back_and_can_be_retried(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await environment.call("set_mood", order_id=web, step="upgrade", mood="refused")

    await environment.set_version(web, "4.18.3")
    await environment.run_to(web, ClusterState.FAILED)

    explanation = await environment.explain(web, operator=False)
    assert (explanation.blocked_by, explanation.actor) == ("install", Actor.TENANT)
    assert "retry, or set the version back" in explanation.remedy
    assert (await environment.cluster(web)).status.version == "4.17.9"
    assert (await lifecycle.seen(environment, web))["available"], "it runs as before"

    await environment.call("set_mood", order_id=web, step="upgrade", mood="")
    await environment.retry(web)
    await environment.run_to(web, ClusterState.READY)
    assert (await environment.cluster(web)).status.version == "4.18.3"


async def test_a_failed_upgrade_is_taken_back_without_releasing_anything(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    before, happened = await environment.held(web), await environment.happenings()
    await environment.call("set_mood", order_id=web, step="upgrade", mood="refused")
    await environment.set_version(web, "4.18.3")
    await environment.run_to(web, ClusterState.FAILED)

    await environment.set_version(web, "4.17.9")
    await environment.run_to(web, ClusterState.READY)
    await environment.run(within=timedelta(minutes=5))

    assert await environment.state(web) == ClusterState.READY
    assert await environment.held(web) == before
    assert await environment.happenings() == happened
    assert (await environment.cluster(web)).status.version == "4.17.9"

"""Services that are dead, flaky, slow or lying while a cluster is made, and a hub that goes away."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.model.generated.boatyard import Actor
from boatyard.model.generated.osac import ClusterState, Hub, HubState
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.twin import small_layout

SERVICES = ("inventory", "l2", "l3", "dns", "platform", "checks")
STEP_OF = {
    "inventory": "hosts",
    "l2": "network",
    "l3": "network",
    "dns": "names",
    "platform": "install",
    "checks": "validate",
}


@pytest.mark.form_cases("service", SERVICES, on_hub=["inventory", "platform"])
async def test_a_dead_service_holds_an_order_and_not_longer(
    new_environment: NewEnvironment, service: str
) -> None:
    environment = await new_environment(layout=small_layout(hubs=1))
    web = await environment.order("web", sizes={"compute": 2})
    await environment.worker_for("Cluster").run_until_idle()  # it is placed; then the service dies
    await environment.break_service(service, "dead")
    await environment.run(within=timedelta(minutes=20))

    assert await environment.state(web) == ClusterState.PROGRESSING
    told = await environment.explain(web)
    assert told.blocked_by == STEP_OF[service]
    assert (told.actor, bool(told.remedy), told.tries > 3) == (Actor.OPERATOR, True, True)
    assert told.next_look is not None
    assert told.next_look - environment.clock.now() < timedelta(seconds=80)
    tenant = await environment.explain(web, operator=False)
    assert "simulated" not in repr(tenant), "the back-end's own words are not for tenants"

    await environment.heal()
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=5))
    net = {
        e["key"]: e["applied"] - e["removed"] for e in await environment.call("effects", prefix=web)
    }
    assert set(net.values()) == {1}
    await _delete_all(environment, web)


# Only what fails after its work can double something, so each service is flaky. That no driver believes
# a lie is each port's contract.
@pytest.mark.form_cases(
    "service, profile",
    [
        *((service, "flaky") for service in SERVICES),
        *((service, "lies") for service in ("inventory", "platform")),
        ("platform", "slow"),
    ],
    on_hub=[("inventory", "flaky"), ("platform", "lies"), ("platform", "slow")],
)
async def test_a_service_that_misbehaves_slows_an_order_down_and_nothing_is_doubled(
    new_environment: NewEnvironment, service: str, profile: str
) -> None:
    environment = await new_environment(layout=small_layout(hubs=1))
    web = await environment.order("web", sizes={"compute": 2})
    await environment.worker_for("Cluster").run_until_idle()
    await environment.break_service(service, profile, every=5)
    await environment.run(within=timedelta(minutes=10))
    assert (await environment.state(web) == ClusterState.READY) == (profile != "lies")

    await environment.heal()
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=5))

    counts = await environment.call("effects", prefix=web)
    assert {(e["applied"], e["removed"]) for e in counts} == {(1, 0)}
    await environment.break_service(service, profile, every=5)
    await environment.delete(web)
    await environment.run(within=timedelta(minutes=5))
    await environment.heal()
    await environment.run_until_nothing_is_left()
    await environment.assert_nothing_left()


# What an embedded hub drives is what makes it reachable; a Kubernetes hub is in test_hub_away.py.
@pytest.mark.forms("embedded")
async def test_a_hub_that_goes_away_holds_only_its_own_orders(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    one = await environment.order("one", sizes={"compute": 1})
    two = await environment.order("two", sizes={"compute": 1})
    await environment.turn()
    assert {(await environment.cluster(c)).status.hub for c in (one, two)} == {"hub-1", "hub-2"}
    away = (await environment.cluster(one)).status.hub
    await environment.break_service("*", "dead", hub=away)

    await environment.run_to(two, ClusterState.READY, within=timedelta(minutes=5))
    await environment.run(within=timedelta(minutes=2))
    assert await environment.state(one) == ClusterState.PROGRESSING
    hub = await environment.ledger.documents.get(Hub, away)
    assert hub is not None
    assert hub.status.state == HubState.UNREACHABLE
    third = await environment.order("three", sizes={"compute": 1})
    await environment.turn()
    assert (await environment.cluster(third)).status.hub != away, "nothing new is sent there"

    await environment.heal()
    await environment.run_to(one, ClusterState.READY, within=timedelta(minutes=5))
    hub = await environment.ledger.documents.get(Hub, away)
    assert hub is not None
    assert hub.status.state == HubState.READY
    await _delete_all(environment, one, two, third)


async def test_a_ready_cluster_stays_ready_while_its_hub_is_away(
    environment: SimulatedEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await environment.break_service("*", "dead")
    await environment.run(within=timedelta(minutes=30))
    assert await environment.state(web) == ClusterState.READY, "not to be able to look is no news"


async def test_a_cluster_is_not_ready_before_its_kubeconfig_can_be_had(
    environment: SimulatedEnvironment,
) -> None:
    await environment.break_service("platform.access", "dead")
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run(within=timedelta(minutes=3))
    assert await environment.state(web) == ClusterState.PROGRESSING

    await environment.heal()
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=1))
    assert (await environment.order_of(web)).status.credentials.kubeconfig


async def _delete_all(environment: SimulatedEnvironment, *clusters: str) -> None:
    for cluster in clusters:
        await environment.delete(cluster)
    for cluster in clusters:
        await environment.run_until_gone(cluster)
    await environment.assert_nothing_left()

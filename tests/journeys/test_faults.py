"""Services that are dead, flaky, slow or lying while a cluster is made, and a hub that goes away."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.model.generated.boatyard import Actor
from boatyard.model.generated.osac import ClusterState, Hub, HubState
from tests.journeys.conftest import NewYard
from tests.support.stage import small_layout
from tests.support.yard import Yard

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
    new_yard: NewYard, service: str
) -> None:
    yard = await new_yard(layout=small_layout(hubs=1))
    web = await yard.order("web", sizes={"compute": 2})
    await yard.worker_for("Cluster").run_until_idle()  # it is placed; then the service dies
    await yard.break_service(service, "dead")
    await yard.run(within=timedelta(minutes=20))

    assert await yard.state(web) == ClusterState.PROGRESSING
    told = await yard.explain(web)
    assert told.blocked_by == STEP_OF[service]
    assert (told.actor, bool(told.remedy), told.tries > 3) == (Actor.OPERATOR, True, True)
    assert told.next_look is not None
    assert told.next_look - yard.clock.now() < timedelta(seconds=80)
    tenant = await yard.explain(web, operator=False)
    assert "simulated" not in repr(tenant), "the back-end's own words are not for tenants"

    await yard.heal()
    await yard.run_to(web, ClusterState.READY, within=timedelta(minutes=5))
    net = {e["key"]: e["applied"] - e["removed"] for e in await yard.call("effects", prefix=web)}
    assert set(net.values()) == {1}
    await _delete_all(yard, web)


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
    new_yard: NewYard, service: str, profile: str
) -> None:
    yard = await new_yard(layout=small_layout(hubs=1))
    web = await yard.order("web", sizes={"compute": 2})
    await yard.worker_for("Cluster").run_until_idle()
    await yard.break_service(service, profile, every=5)
    await yard.run(within=timedelta(minutes=10))
    assert (await yard.state(web) == ClusterState.READY) == (profile != "lies")

    await yard.heal()
    await yard.run_to(web, ClusterState.READY, within=timedelta(minutes=5))

    counts = await yard.call("effects", prefix=web)
    assert {(e["applied"], e["removed"]) for e in counts} == {(1, 0)}
    await yard.break_service(service, profile, every=5)
    await yard.delete(web)
    await yard.run(within=timedelta(minutes=5))
    await yard.heal()
    await yard.run_until_nothing_is_left()
    await yard.assert_nothing_left()


# What an embedded hub drives is what makes it reachable; a Kubernetes hub is in test_hub_away.py.
@pytest.mark.forms("embedded")
async def test_a_hub_that_goes_away_holds_only_its_own_orders(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    one = await yard.order("one", sizes={"compute": 1})
    two = await yard.order("two", sizes={"compute": 1})
    await yard.turn()
    assert {(await yard.cluster(c)).status.hub for c in (one, two)} == {"hub-1", "hub-2"}
    away = (await yard.cluster(one)).status.hub
    await yard.break_service("*", "dead", hub=away)

    await yard.run_to(two, ClusterState.READY, within=timedelta(minutes=5))
    await yard.run(within=timedelta(minutes=2))
    assert await yard.state(one) == ClusterState.PROGRESSING
    hub = await yard.ledger.documents.get(Hub, away)
    assert hub is not None
    assert hub.status.state == HubState.UNREACHABLE
    third = await yard.order("three", sizes={"compute": 1})
    await yard.turn()
    assert (await yard.cluster(third)).status.hub != away, "nothing new is sent there"

    await yard.heal()
    await yard.run_to(one, ClusterState.READY, within=timedelta(minutes=5))
    hub = await yard.ledger.documents.get(Hub, away)
    assert hub is not None
    assert hub.status.state == HubState.READY
    await _delete_all(yard, one, two, third)


async def test_a_ready_cluster_stays_ready_while_its_hub_is_away(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    await yard.break_service("*", "dead")
    await yard.run(within=timedelta(minutes=30))
    assert await yard.state(web) == ClusterState.READY, "not to be able to look is no news"


async def test_a_cluster_is_not_ready_before_its_kubeconfig_can_be_had(yard: Yard) -> None:
    await yard.break_service("platform.access", "dead")
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run(within=timedelta(minutes=3))
    assert await yard.state(web) == ClusterState.PROGRESSING

    await yard.heal()
    await yard.run_to(web, ClusterState.READY, within=timedelta(minutes=1))
    assert (await yard.order_of(web)).status.credentials.kubeconfig


async def _delete_all(yard: Yard, *clusters: str) -> None:
    for cluster in clusters:
        await yard.delete(cluster)
    for cluster in clusters:
        await yard.run_until_gone(cluster)
    await yard.assert_nothing_left()

"""Orders that are poison, orders that are refused, hosts that break, nodes that fall ill."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from boatyard.infra.dns.drivers.sim import SimDns
from boatyard.model.generated.boatyard import Actor, StepState
from boatyard.model.generated.osac import ClusterConditionType, ClusterState, ConditionStatus
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.twin import EVEN, no_effect, small_layout


class ProcessDied(BaseException):
    """The worker's process is no more: nothing below the test sees this and goes on."""


@pytest.fixture
def poisoned_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Orders for which the DNS driver has a bug."""
    orders: list[str] = []
    healthy = SimDns.ensure_record

    async def ensure_record(self: SimDns, key: str, name: str, address: str) -> Any:
        if key.partition("/")[0] in orders:
            raise RuntimeError("a bug in a driver, with a secret: hunter2")
        return await healthy(self, key, name, address)

    monkeypatch.setattr(SimDns, "ensure_record", ensure_record)
    return orders


async def test_a_bug_quarantines_one_step_of_one_order_until_somebody_asks_again(
    environment: SimulatedEnvironment, poisoned_names: list[str]
) -> None:
    poison = await environment.order("poison", sizes={"compute": 1})
    poisoned_names.append(poison)
    good = await environment.order("good", sizes={"compute": 1})
    await environment.run_to(good, ClusterState.READY, within=timedelta(minutes=1))
    await environment.run_to(poison, ClusterState.FAILED, within=timedelta(minutes=2))

    steps = {step.name: step for step in (await environment.order_of(poison)).status.steps}
    assert steps["names"].state == StepState.QUARANTINED
    assert steps["names"].bugs == 3
    assert steps["addresses"].state == StepState.DONE, "what does not need it went on"
    for operator in (True, False):
        told = await environment.explain(poison, operator=operator)
        assert (told.blocked_by, told.actor) == ("names", Actor.OPERATOR)
        assert "internal error" in told.summary
        assert "hunter2" not in repr(told)
    tries = steps["names"].tries
    await environment.run(within=timedelta(minutes=30))
    steps = {step.name: step for step in (await environment.order_of(poison)).status.steps}
    assert steps["names"].tries == tries, "nobody tries by themselves"

    poisoned_names.clear()
    await environment.retry(poison)
    await environment.run_to(poison, ClusterState.READY, within=timedelta(minutes=1))


async def test_a_quarantined_order_can_be_deleted(
    environment: SimulatedEnvironment, poisoned_names: list[str]
) -> None:
    poison = await environment.order("poison", sizes={"compute": 1})
    poisoned_names.append(poison)
    await environment.run_to(poison, ClusterState.FAILED)
    await environment.delete(poison)
    await environment.run_until_gone(poison, within=timedelta(minutes=1))
    await environment.assert_nothing_left()


async def _die(environment: SimulatedEnvironment, poison: str) -> bool:
    """One worker's life, which ends when it touches the poison. True when it did."""

    def fatal(point: str, key: str) -> None:
        if key.startswith(f"{poison}/"):
            raise ProcessDied

    environment.on_effect = fatal
    try:
        await environment.make_worker(name="doomed").run_until_idle()
    except ProcessDied:
        environment.on_effect = no_effect
        await environment.replace_worker("heir")
        return True
    finally:
        environment.on_effect = no_effect
    return False


@pytest.mark.form_cases("moments", [0, 3], on_hub=[3])
async def test_an_order_that_kills_its_worker_three_times_is_set_aside(
    new_environment: NewEnvironment, moments: int
) -> None:
    environment = await new_environment(overrides=EVEN)
    poison = await environment.order("poison", sizes={"compute": 1})
    for _ in range(moments):
        await environment.step()
    deaths = 0
    for _ in range(40):
        deaths += await _die(environment, poison)
        due = await environment.next_due()
        assert due is not None
        environment.clock.step_to(due)

    assert deaths == 3
    assert await environment.state(poison) == ClusterState.FAILED
    told = await environment.explain(poison)
    assert (told.actor, bool(told.remedy)) == (Actor.OPERATOR, True)
    assert "worker" in told.summary

    await environment.retry(poison)
    await environment.run_to(poison, ClusterState.READY, within=timedelta(minutes=2))
    await environment.delete(poison)
    await environment.run_until_gone(poison)
    await environment.assert_nothing_left()


async def test_orders_beside_a_deadly_one_are_not_taken_for_deadly(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(overrides=EVEN)
    poison = await environment.order("poison", sizes={"compute": 1})
    others = [
        await environment.order(f"good-{n}", tenant=("acme", "globex")[n % 2], sizes={"compute": 1})
        for n in range(4)
    ]
    await environment.turn()
    await environment.step()
    for _ in range(60):
        await _die(environment, poison)
        due = await environment.next_due()
        assert due is not None
        environment.clock.step_to(due)

    assert await environment.state(poison) == ClusterState.FAILED
    assert {await environment.state(other) for other in others} == {ClusterState.READY}


async def test_a_refused_order_fails_is_not_retried_and_comes_back_when_mended(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hubs=1, versions=("4.18.3",)))
    web = await environment.order("web", sizes={"compute": 1})  # asks for 4.17.9
    await environment.run_to(web, ClusterState.FAILED)

    failed = next(
        c
        for c in (await environment.cluster(web)).status.conditions
        if c.type == ClusterConditionType.FAILED
    )
    assert (failed.status, failed.reason) == (ConditionStatus.TRUE, "NoSuchVersion")
    told = await environment.explain(web, operator=False)
    assert (told.blocked_by, told.actor) == ("install", Actor.TENANT)
    asked = await _calls(environment, web, "cluster")
    await environment.run(within=timedelta(hours=1))
    assert await _calls(environment, web, "cluster") == asked, "a refusal is never retried"

    await environment.retry(web)
    await environment.run_to(web, ClusterState.FAILED)
    assert await _calls(environment, web, "cluster") == asked + 1, "one try for one asking"
    await environment.set_version(web, "4.18.3")
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=1))


async def _calls(environment: SimulatedEnvironment, cluster_id: str, kind: str) -> int:
    rows = await environment.call("effects", prefix=f"{cluster_id}/")
    return sum(row["calls"] for row in rows if row["kind"] == kind)


async def test_a_host_that_breaks_between_claim_and_hold_is_replaced(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hosts=3, hubs=1))
    broken: list[str] = []

    async def break_first(point: str, key: str) -> None:
        claims = await environment.pool_claims("hub-1/hosts")
        if point == "before:inventory.ensure_held" and not broken:
            broken.append(claims[0].item)
            await environment.call("fail_host", hub="hub-1", host=broken[0])

    environment.on_effect = break_first
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=1))

    hosts = await environment.names("host", web)
    assert len(hosts) == 2
    assert broken[0] not in hosts
    assert {c.item for c in await environment.pool_claims("hub-1/hosts")} == set(hosts)


async def test_a_host_that_somebody_takes_between_claim_and_hold_is_replaced(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hosts=3, hubs=1))
    taken: list[dict[str, str]] = []

    async def take_first(point: str, key: str) -> None:
        if point == "before:inventory.ensure_held" and not taken:
            claims = await environment.pool_claims("hub-1/hosts")
            taken.append({"hub": "hub-1", "key": "stranger/host/a", "host": claims[0].item})
            environment.world.call(
                "inventory.ensure_held", taken[0], environment.clock.now().timestamp()
            )

    environment.on_effect = take_first
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=1))

    hosts = await environment.names("host", web)
    assert len(hosts) == 2
    assert taken[0]["host"] not in hosts
    assert {c.item for c in await environment.pool_claims("hub-1/hosts")} == set(hosts)
    environment.world.call("inventory.release_held", taken[0], environment.clock.now().timestamp())


async def test_a_node_that_falls_ill_makes_the_cluster_degraded_and_back(
    environment: SimulatedEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    host = (await environment.names("host", web))[0]
    hub = (await environment.cluster(web)).status.hub

    await environment.call("node_not_ready", hub=hub, host=host)
    await environment.run_to(web, ClusterState.DEGRADED, within=timedelta(minutes=2))
    status = (await environment.cluster(web)).status
    assert status.ready_nodes == {"compute": 1}
    conditions = {c.type: c.status for c in status.conditions}
    assert conditions[ClusterConditionType.DEGRADED] == ConditionStatus.TRUE
    assert conditions[ClusterConditionType.NODES_READY] == ConditionStatus.FALSE
    assert conditions[ClusterConditionType.CLUSTER_AVAILABLE] == ConditionStatus.TRUE

    await environment.call("node_not_ready", hub=hub, host=host, ready=True)
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=2))


async def test_an_idle_yard_writes_nothing(environment: SimulatedEnvironment) -> None:
    for name in ("one", "two"):
        await environment.run_to(await environment.order(name), ClusterState.READY)
    await environment.run(within=timedelta(minutes=10))
    await environment.ledger.events.publish()
    before = await environment.ledger.events.last_seq()
    effects = await environment.call("effects")

    await environment.run(within=timedelta(hours=1))

    await environment.ledger.events.publish()
    assert await environment.ledger.events.last_seq() == before
    assert await environment.call("effects") == effects

"""Orders that are poison, orders that are refused, hosts that break, nodes that fall ill."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from boatyard.infra.dns.drivers.sim import SimDns
from boatyard.model.generated.boatyard import Actor, StepState
from boatyard.model.generated.osac import ClusterConditionType, ClusterState, ConditionStatus
from tests.journeys.conftest import NewYard
from tests.support.stage import EVEN, no_effect, small_layout
from tests.support.yard import Yard


class Died(BaseException):
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
    yard: Yard, poisoned_names: list[str]
) -> None:
    poison = await yard.order("poison", sizes={"compute": 1})
    poisoned_names.append(poison)
    good = await yard.order("good", sizes={"compute": 1})
    await yard.run_to(good, ClusterState.READY, within=timedelta(minutes=1))
    await yard.run_to(poison, ClusterState.FAILED, within=timedelta(minutes=2))

    steps = {step.name: step for step in (await yard.order_of(poison)).status.steps}
    assert steps["names"].state == StepState.QUARANTINED
    assert steps["names"].bugs == 3
    assert steps["addresses"].state == StepState.DONE, "what does not need it went on"
    for operator in (True, False):
        told = await yard.explain(poison, operator=operator)
        assert (told.blocked_by, told.actor) == ("names", Actor.OPERATOR)
        assert "internal error" in told.summary
        assert "hunter2" not in repr(told)
    tries = steps["names"].tries
    await yard.run(within=timedelta(minutes=30))
    steps = {step.name: step for step in (await yard.order_of(poison)).status.steps}
    assert steps["names"].tries == tries, "nobody tries by themselves"

    poisoned_names.clear()
    await yard.retry(poison)
    await yard.run_to(poison, ClusterState.READY, within=timedelta(minutes=1))


async def test_a_quarantined_order_can_be_deleted(yard: Yard, poisoned_names: list[str]) -> None:
    poison = await yard.order("poison", sizes={"compute": 1})
    poisoned_names.append(poison)
    await yard.run_to(poison, ClusterState.FAILED)
    await yard.delete(poison)
    await yard.run_until_gone(poison, within=timedelta(minutes=1))
    await yard.assert_nothing_left()


async def _die(yard: Yard, poison: str) -> bool:
    """One worker's life, which ends when it touches the poison. True when it did."""

    def fatal(point: str, key: str) -> None:
        if key.startswith(f"{poison}/"):
            raise Died

    yard.on_effect = fatal
    try:
        await yard.make_worker(name="doomed").run_until_idle()
    except Died:
        yard.on_effect = no_effect
        await yard.replace_worker("heir")
        return True
    finally:
        yard.on_effect = no_effect
    return False


@pytest.mark.form_cases("moments", [0, 3], on_hub=[3])
async def test_an_order_that_kills_its_worker_three_times_is_set_aside(
    new_yard: NewYard, moments: int
) -> None:
    yard = await new_yard(overrides=EVEN)
    poison = await yard.order("poison", sizes={"compute": 1})
    for _ in range(moments):
        await yard.step()
    deaths = 0
    for _ in range(40):
        deaths += await _die(yard, poison)
        due = await yard.next_due()
        assert due is not None
        yard.clock.step_to(due)

    assert deaths == 3
    assert await yard.state(poison) == ClusterState.FAILED
    told = await yard.explain(poison)
    assert (told.actor, bool(told.remedy)) == (Actor.OPERATOR, True)
    assert "worker" in told.summary

    await yard.retry(poison)
    await yard.run_to(poison, ClusterState.READY, within=timedelta(minutes=2))
    await yard.delete(poison)
    await yard.run_until_gone(poison)
    await yard.assert_nothing_left()


async def test_orders_beside_a_deadly_one_are_not_taken_for_deadly(new_yard: NewYard) -> None:
    yard = await new_yard(overrides=EVEN)
    poison = await yard.order("poison", sizes={"compute": 1})
    others = [
        await yard.order(f"good-{n}", tenant=("acme", "globex")[n % 2], sizes={"compute": 1})
        for n in range(4)
    ]
    await yard.turn()
    await yard.step()
    for _ in range(60):
        await _die(yard, poison)
        due = await yard.next_due()
        assert due is not None
        yard.clock.step_to(due)

    assert await yard.state(poison) == ClusterState.FAILED
    assert {await yard.state(other) for other in others} == {ClusterState.READY}


async def test_a_refused_order_fails_is_not_retried_and_comes_back_when_mended(
    new_yard: NewYard,
) -> None:
    yard = await new_yard(layout=small_layout(hubs=1, versions=("4.18.3",)))
    web = await yard.order("web", sizes={"compute": 1})  # asks for 4.17.9
    await yard.run_to(web, ClusterState.FAILED)

    failed = next(
        c
        for c in (await yard.cluster(web)).status.conditions
        if c.type == ClusterConditionType.FAILED
    )
    assert (failed.status, failed.reason) == (ConditionStatus.TRUE, "NoSuchVersion")
    told = await yard.explain(web, operator=False)
    assert (told.blocked_by, told.actor) == ("install", Actor.TENANT)
    asked = await _calls(yard, web, "cluster")
    await yard.run(within=timedelta(hours=1))
    assert await _calls(yard, web, "cluster") == asked, "a refusal is never retried"

    await yard.retry(web)
    await yard.run_to(web, ClusterState.FAILED)
    assert await _calls(yard, web, "cluster") == asked + 1, "one try for one asking"
    await yard.set_version(web, "4.18.3")
    await yard.run_to(web, ClusterState.READY, within=timedelta(minutes=1))


async def _calls(yard: Yard, cluster_id: str, kind: str) -> int:
    rows = await yard.call("effects", prefix=f"{cluster_id}/")
    return sum(row["calls"] for row in rows if row["kind"] == kind)


async def test_a_host_that_breaks_between_claim_and_hold_is_replaced(new_yard: NewYard) -> None:
    yard = await new_yard(layout=small_layout(hosts=3, hubs=1))
    broken: list[str] = []

    async def break_first(point: str, key: str) -> None:
        claims = await yard.pool_claims("hub-1/hosts")
        if point == "before:inventory.ensure_held" and not broken:
            broken.append(claims[0].item)
            await yard.call("fail_host", hub="hub-1", host=broken[0])

    yard.on_effect = break_first
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY, within=timedelta(minutes=1))

    hosts = await yard.names("host", web)
    assert len(hosts) == 2
    assert broken[0] not in hosts
    assert {c.item for c in await yard.pool_claims("hub-1/hosts")} == set(hosts)


async def test_a_host_that_somebody_takes_between_claim_and_hold_is_replaced(
    new_yard: NewYard,
) -> None:
    yard = await new_yard(layout=small_layout(hosts=3, hubs=1))
    taken: list[dict[str, str]] = []

    async def take_first(point: str, key: str) -> None:
        if point == "before:inventory.ensure_held" and not taken:
            claims = await yard.pool_claims("hub-1/hosts")
            taken.append({"hub": "hub-1", "key": "stranger/host/a", "host": claims[0].item})
            yard.world.call("inventory.ensure_held", taken[0], yard.clock.now().timestamp())

    yard.on_effect = take_first
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY, within=timedelta(minutes=1))

    hosts = await yard.names("host", web)
    assert len(hosts) == 2
    assert taken[0]["host"] not in hosts
    assert {c.item for c in await yard.pool_claims("hub-1/hosts")} == set(hosts)
    yard.world.call("inventory.release_held", taken[0], yard.clock.now().timestamp())


async def test_a_node_that_falls_ill_makes_the_cluster_degraded_and_back(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    host = (await yard.names("host", web))[0]
    hub = (await yard.cluster(web)).status.hub

    await yard.call("node_not_ready", hub=hub, host=host)
    await yard.run_to(web, ClusterState.DEGRADED, within=timedelta(minutes=2))
    status = (await yard.cluster(web)).status
    assert status.ready_nodes == {"compute": 1}
    conditions = {c.type: c.status for c in status.conditions}
    assert conditions[ClusterConditionType.DEGRADED] == ConditionStatus.TRUE
    assert conditions[ClusterConditionType.NODES_READY] == ConditionStatus.FALSE
    assert conditions[ClusterConditionType.CLUSTER_AVAILABLE] == ConditionStatus.TRUE

    await yard.call("node_not_ready", hub=hub, host=host, ready=True)
    await yard.run_to(web, ClusterState.READY, within=timedelta(minutes=2))


async def test_an_idle_yard_writes_nothing(yard: Yard) -> None:
    for name in ("one", "two"):
        await yard.run_to(await yard.order(name), ClusterState.READY)
    await yard.run(within=timedelta(minutes=10))
    await yard.ledger.events.publish()
    before = await yard.ledger.events.last_seq()
    effects = await yard.call("effects")

    await yard.run(within=timedelta(hours=1))

    await yard.ledger.events.publish()
    assert await yard.ledger.events.last_seq() == before
    assert await yard.call("effects") == effects

"""The engine on the real work table: fair, no poke lost, no stale write, back after the store was away."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from boatyard.ledger.changes import Due
from boatyard.model.errors import LeaseLost, Unavailable
from boatyard.model.generated.boatyard import Order
from boatyard.model.generated.osac import ClusterState
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.twin import EVEN

pytestmark = pytest.mark.forms(
    "embedded"
)  # the queue of a hub has its own: tests/hub/test_queue.py


async def test_a_tenant_with_many_orders_does_not_starve_one_with_a_single_order(
    environment: SimulatedEnvironment,
) -> None:
    for number in range(12):
        await environment.order(f"many-{number}", tenant="acme", sizes={"compute": 0})
    lone = await environment.order("lone", tenant="globex", sizes={"compute": 0})

    taken = await environment.ledger.work.take(
        kinds=("Cluster",), limit=4, lease_seconds=30, worker="w", now=environment.clock.now()
    )

    assert lone in [lease.id for lease in taken[:2]]
    assert {lease.tenant for lease in taken} == {"acme", "globex"}


async def test_a_poke_during_a_turn_is_not_lost(environment: SimulatedEnvironment) -> None:
    """Somebody changes the cluster while its order's turn is under way, and says so by a poke only."""
    turns: list[str] = []

    class Poked:
        async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
            turns.append(reconcile_pass.id)
            if len(turns) == 1:
                await environment.ledger.commit(
                    [Due("Order", reconcile_pass.id, reconcile_pass.now)], now=reconcile_pass.now
                )
            return ReconcileResult()  # it knows of nothing more to do

        async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
            raise AssertionError

    now = environment.clock.now()
    await environment.ledger.commit([Due("Order", "o-1", now)], now=now)
    worker = environment.make_worker(only=("Order",))
    worker._reconcilers = {"Order": Poked()}
    await worker.run_until_idle()
    assert turns == ["o-1", "o-1"]


async def test_a_worker_stopped_past_its_lease_changes_nothing_when_it_wakes(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(overrides=EVEN)
    web = await environment.order("web", sizes={"compute": 1})
    await environment.worker_for("Cluster").run_until_idle()
    refused: list[str] = []

    async def stopped(point: str, key: str) -> None:
        if refused:
            return
        # It sleeps here past its lease; another worker takes the order and brings it to its end.
        refused.append(point)
        environment.clock.step_to(environment.clock.now() + timedelta(seconds=31))
        await environment.run_to(web, ClusterState.READY)

    environment.on_effect = stopped
    await environment.make_worker(only=("Order",), name="sleeper").run_until_idle()
    environment.on_effect = lambda point, key: None

    assert refused
    assert await environment.state(web) == ClusterState.READY
    counts = await environment.call("effects", prefix=f"{web}/")
    assert {(row["applied"], row["removed"]) for row in counts} == {(1, 0)}
    await environment.delete(web)
    await environment.run_until_gone(web)
    await environment.assert_nothing_left()


async def test_two_workers_share_the_orders_and_double_nothing(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(overrides=EVEN)
    orders = [await environment.order(f"web-{n}", sizes={"compute": 1}) for n in range(4)]
    workers = [environment.make_worker(name=f"w-{n}") for n in range(2)]
    for _ in range(60):
        for worker in workers:
            await worker.run_until_idle()
        due = await environment.next_due()
        assert due is not None
        environment.clock.step_to(due)
    assert {await environment.state(order) for order in orders} == {ClusterState.READY}
    counts = await environment.call("effects")
    assert {(row["applied"], row["removed"]) for row in counts} == {(1, 0)}


async def test_a_store_that_goes_away_during_a_turn_costs_time_and_nothing_else(
    new_environment: NewEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = await new_environment(overrides=EVEN)
    web = await environment.order("web", sizes={"compute": 1})
    commit, count = environment.ledger.commit, 0

    async def every_third_fails(*args: object, **more: object) -> None:
        nonlocal count
        count += 1
        if count % 6 == 0:  # half of the lost answers are to writes that were made
            await commit(*args, **more)  # type: ignore[arg-type]
        if count % 3 == 0:
            raise Unavailable("the connection was lost")
        await commit(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(environment.ledger, "commit", every_third_fails)
    await environment.run_to(web, ClusterState.READY)
    monkeypatch.undo()

    counts = await environment.call("effects", prefix=f"{web}/")
    assert {(row["applied"], row["removed"]) for row in counts} == {(1, 0)}
    assert len(await environment.pool_claims("hub-1/hosts")) == 1


async def test_a_lost_lease_is_told_to_whoever_writes_under_it(
    environment: SimulatedEnvironment,
) -> None:
    web = await environment.order("web")
    now = environment.clock.now()
    take = {"kinds": ("Cluster",), "limit": 9, "lease_seconds": 30.0, "worker": "w"}
    (lease,) = await environment.ledger.work.take(now=now, **take)  # type: ignore[arg-type]
    await environment.ledger.work.take(now=now + timedelta(seconds=31), **take)  # type: ignore[arg-type]
    with pytest.raises(LeaseLost):
        await environment.ledger.commit([Due("Order", web, now)], lease=lease, now=now)
    environment.clock.step_to(now + timedelta(seconds=62))
    await environment.run_to(web, ClusterState.READY)


async def test_a_worker_stopped_while_it_reserves_leaves_nothing_reserved(
    environment: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await environment.scale(web, compute=2)
    look = environment.ledger.claims.list_reservations

    async def stopped(owner: str) -> dict[str, int]:
        monkeypatch.undo()
        found = await look(owner)
        # It sleeps here past its lease, and the cluster is deleted meanwhile.
        environment.clock.step_to(environment.clock.now() + timedelta(seconds=31))
        await environment.delete(web)
        await environment.run_until_gone(web)
        return found

    monkeypatch.setattr(environment.ledger.claims, "list_reservations", stopped)
    await environment.make_worker(only=("Cluster",), name="sleeper").run_until_idle()

    await environment.assert_nothing_left()


async def test_a_worker_stopped_at_the_end_of_a_cluster_keeps_nothing_reserved(
    environment: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await environment.break_service("inventory", "dead")
    await environment.delete(web)
    await environment.worker_for("Cluster").run_until_idle()
    environment.clock.step_to(environment.clock.now() + timedelta(minutes=16))
    await environment.worker_for("Order").run_until_idle()
    assert await environment.leftover_of(web) is not None
    look = environment.ledger.documents.get

    async def stopped(cls: type[Any], id: str, **how: Any) -> Any:
        found = await look(cls, id, **how)
        if cls is Order:
            monkeypatch.undo()
            # It sleeps here past its lease; others end the cluster and release what was left.
            environment.clock.step_to(environment.clock.now() + timedelta(seconds=31))
            await environment.heal()
            await environment.run_until_nothing_is_left()
        return found

    monkeypatch.setattr(environment.ledger.documents, "get", stopped)
    await environment.make_worker(only=("Cluster",), name="sleeper").run_until_idle()

    await environment.assert_nothing_left()

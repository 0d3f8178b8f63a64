"""The engine on the real work table: fair, no poke lost, no stale write, back after the store was away."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from boatyard.ledger.changes import Due
from boatyard.model.errors import LeaseLost, Unavailable
from boatyard.model.generated.boatyard import Order
from boatyard.model.generated.osac import ClusterState
from boatyard.resources.reconciling import Result, Turn
from tests.journeys.conftest import NewYard
from tests.support.stage import EVEN
from tests.support.yard import Yard

pytestmark = pytest.mark.forms(
    "embedded"
)  # the queue of a hub has its own: tests/hub/test_queue.py


async def test_a_tenant_with_many_orders_does_not_starve_one_with_a_single_order(
    yard: Yard,
) -> None:
    for number in range(12):
        await yard.order(f"many-{number}", tenant="acme", sizes={"compute": 0})
    lone = await yard.order("lone", tenant="globex", sizes={"compute": 0})

    taken = await yard.ledger.work.take(
        kinds=("Cluster",), limit=4, lease_seconds=30, worker="w", now=yard.clock.now()
    )

    assert lone in [lease.id for lease in taken[:2]]
    assert {lease.tenant for lease in taken} == {"acme", "globex"}


async def test_a_poke_during_a_turn_is_not_lost(yard: Yard) -> None:
    """Somebody changes the cluster while its order's turn is under way, and says so by a poke only."""
    turns: list[str] = []

    class Poked:
        async def reconcile(self, turn: Turn) -> Result:
            turns.append(turn.id)
            if len(turns) == 1:
                await yard.ledger.commit([Due("Order", turn.id, turn.now)], now=turn.now)
            return Result()  # it knows of nothing more to do

        async def poisoned(self, turn: Turn) -> Result:
            raise AssertionError

    now = yard.clock.now()
    await yard.ledger.commit([Due("Order", "o-1", now)], now=now)
    worker = yard.make_worker(only=("Order",))
    worker._reconcilers = {"Order": Poked()}
    await worker.run_until_idle()
    assert turns == ["o-1", "o-1"]


async def test_a_worker_stopped_past_its_lease_changes_nothing_when_it_wakes(
    new_yard: NewYard,
) -> None:
    yard = await new_yard(overrides=EVEN)
    web = await yard.order("web", sizes={"compute": 1})
    await yard.worker_for("Cluster").run_until_idle()
    refused: list[str] = []

    async def stopped(point: str, key: str) -> None:
        if refused:
            return
        # It sleeps here past its lease; another worker takes the order and brings it to its end.
        refused.append(point)
        yard.clock.step_to(yard.clock.now() + timedelta(seconds=31))
        await yard.run_to(web, ClusterState.READY)

    yard.on_effect = stopped
    await yard.make_worker(only=("Order",), name="sleeper").run_until_idle()
    yard.on_effect = lambda point, key: None

    assert refused
    assert await yard.state(web) == ClusterState.READY
    counts = await yard.call("effects", prefix=f"{web}/")
    assert {(row["applied"], row["removed"]) for row in counts} == {(1, 0)}
    await yard.delete(web)
    await yard.run_until_gone(web)
    await yard.assert_nothing_left()


async def test_two_workers_share_the_orders_and_double_nothing(new_yard: NewYard) -> None:
    yard = await new_yard(overrides=EVEN)
    orders = [await yard.order(f"web-{n}", sizes={"compute": 1}) for n in range(4)]
    workers = [yard.make_worker(name=f"w-{n}") for n in range(2)]
    for _ in range(60):
        for worker in workers:
            await worker.run_until_idle()
        due = await yard.next_due()
        assert due is not None
        yard.clock.step_to(due)
    assert {await yard.state(order) for order in orders} == {ClusterState.READY}
    counts = await yard.call("effects")
    assert {(row["applied"], row["removed"]) for row in counts} == {(1, 0)}


async def test_a_store_that_goes_away_during_a_turn_costs_time_and_nothing_else(
    new_yard: NewYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard = await new_yard(overrides=EVEN)
    web = await yard.order("web", sizes={"compute": 1})
    commit, count = yard.ledger.commit, 0

    async def every_third_fails(*args: object, **more: object) -> None:
        nonlocal count
        count += 1
        if count % 6 == 0:  # half of the lost answers are to writes that were made
            await commit(*args, **more)  # type: ignore[arg-type]
        if count % 3 == 0:
            raise Unavailable("the connection was lost")
        await commit(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(yard.ledger, "commit", every_third_fails)
    await yard.run_to(web, ClusterState.READY)
    monkeypatch.undo()

    counts = await yard.call("effects", prefix=f"{web}/")
    assert {(row["applied"], row["removed"]) for row in counts} == {(1, 0)}
    assert len(await yard.pool_claims("hub-1/hosts")) == 1


async def test_a_lost_lease_is_told_to_whoever_writes_under_it(yard: Yard) -> None:
    web = await yard.order("web")
    now = yard.clock.now()
    take = {"kinds": ("Cluster",), "limit": 9, "lease_seconds": 30.0, "worker": "w"}
    (lease,) = await yard.ledger.work.take(now=now, **take)  # type: ignore[arg-type]
    await yard.ledger.work.take(now=now + timedelta(seconds=31), **take)  # type: ignore[arg-type]
    with pytest.raises(LeaseLost):
        await yard.ledger.commit([Due("Order", web, now)], lease=lease, now=now)
    yard.clock.step_to(now + timedelta(seconds=62))
    await yard.run_to(web, ClusterState.READY)


async def test_a_worker_stopped_while_it_reserves_leaves_nothing_reserved(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    await yard.scale(web, compute=2)
    look = yard.ledger.claims.reservations

    async def stopped(owner: str) -> dict[str, int]:
        monkeypatch.undo()
        found = await look(owner)
        # It sleeps here past its lease, and the cluster is deleted meanwhile.
        yard.clock.step_to(yard.clock.now() + timedelta(seconds=31))
        await yard.delete(web)
        await yard.run_until_gone(web)
        return found

    monkeypatch.setattr(yard.ledger.claims, "reservations", stopped)
    await yard.make_worker(only=("Cluster",), name="sleeper").run_until_idle()

    await yard.assert_nothing_left()


async def test_a_worker_stopped_at_the_end_of_a_cluster_keeps_nothing_reserved(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    await yard.break_service("inventory", "dead")
    await yard.delete(web)
    await yard.worker_for("Cluster").run_until_idle()
    yard.clock.step_to(yard.clock.now() + timedelta(minutes=16))
    await yard.worker_for("Order").run_until_idle()
    assert await yard.leftover_of(web) is not None
    look = yard.ledger.documents.get

    async def stopped(cls: type[Any], id: str, **how: Any) -> Any:
        found = await look(cls, id, **how)
        if cls is Order:
            monkeypatch.undo()
            # It sleeps here past its lease; others end the cluster and release what was left.
            yard.clock.step_to(yard.clock.now() + timedelta(seconds=31))
            await yard.heal()
            await yard.run_until_nothing_is_left()
        return found

    monkeypatch.setattr(yard.ledger.documents, "get", stopped)
    await yard.make_worker(only=("Cluster",), name="sleeper").run_until_idle()

    await yard.assert_nothing_left()

"""A hub that keeps its orders itself and cannot be reached: what was seen stays readable, and a delete still ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from boatyard.ledger.changes import Due
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import Leftover, Order, OrderPhase
from boatyard.model.generated.osac import ClusterState
from boatyard.operator.lost_orders import make_leftover
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.objects import HubObjects
from tests.support.simulated.kube_environment import SimulatedKubeEnvironment, SteppedHub

pytestmark = pytest.mark.forms("kube")

A_WHILE = timedelta(minutes=5)


async def poke(environment: SimulatedKubeEnvironment, cluster_id: str) -> None:
    now = environment.clock.now()
    await environment.ledger.commit([Due("Cluster", cluster_id, now)], now=now)


async def test_what_was_last_seen_is_readable_while_the_hub_is_away(
    environment: SimulatedKubeEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    environment.wire.cut = {"service"}
    await poke(environment, web)
    await environment.run(within=A_WHILE)

    assert await environment.state(web) == ClusterState.READY
    explanation = await environment.explain(web)
    assert {step.name for step in explanation.steps} >= {"hosts", "network", "install"}


async def test_the_hub_goes_on_without_the_service(environment: SimulatedKubeEnvironment) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.worker_for("Cluster").run_until_idle()
    environment.wire.cut = {"service"}
    await environment.run(within=A_WHILE)
    assert len(await environment.names("node", web)) == 1, "the operator has done it"
    environment.wire.cut = set()
    await environment.run_to(web, ClusterState.READY)


async def test_a_wish_reaches_the_hub_once_it_is_back(
    environment: SimulatedKubeEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    environment.wire.cut = {"service"}
    await environment.scale(web, compute=3)
    await environment.run(within=A_WHILE)
    assert len(await environment.names("node", web)) == 1
    environment.wire.cut = set()

    async def grown() -> bool:
        return (await environment.cluster(web)).status.ready_nodes == {"compute": 3}

    await environment.run(grown, within=timedelta(minutes=2))


async def test_a_delete_ends_without_the_hub_and_all_is_taken_back_when_it_returns(
    environment: SimulatedKubeEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    environment.wire.cut = {"service", "operator"}
    await environment.delete(web)
    began = environment.clock.now()
    await environment.run_until_gone(web)
    assert environment.clock.now() - began < timedelta(minutes=20)
    receipt = await environment.receipt_of(web)
    assert {line.kind for line in receipt.left} >= {"host", "cluster", "l2"}
    assert receipt.gone == ()
    reserved = await environment.ledger.claims.sum_reserved_by_pool()
    assert [amount for pool, amount in reserved.items() if pool.endswith("bm-small")] == [2]

    environment.wire.cut = set()
    await environment.run_until_nothing_is_left()
    await environment.assert_nothing_left()
    for stepped_hub in environment.stepped_hubs.values():
        assert (
            await environment._client.list(CLUSTER_ORDERS, stepped_hub.place.shared_namespace)
        ).items == []


async def test_an_order_that_was_never_seen_is_taken_back_too(
    environment: SimulatedKubeEnvironment,
) -> None:
    """It was placed, and the hub went away before its first answer came."""
    web = await environment.order("web", sizes={"compute": 1})
    await environment.ledger.documents.get(Order, web)
    service = super(SimulatedKubeEnvironment, environment).make_worker(only=("Cluster",))
    await service.run_until_idle()
    assert await environment.ledger.documents.get(Order, web) is None
    environment.wire.cut = {"service"}
    await environment.delete(web)
    await environment.run_until_gone(web)
    assert await environment.ledger.documents.get(Leftover, web) is not None
    environment.wire.cut = set()
    await environment.run_until_nothing_is_left()
    await environment.assert_nothing_left()


async def test_an_order_forgotten_on_the_hub_but_not_here_is_forgotten(
    environment: SimulatedKubeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who forgot it died before it was written here."""
    web = await environment.order("web", sizes={"compute": 0})
    await environment.run_to(web, ClusterState.READY)
    await environment.delete(web)
    commit, died = environment.ledger.commit, []

    async def dies(changes: object, **how: object) -> None:
        archives = [one for one in changes if type(one).__name__ == "Archive"]  # type: ignore[attr-defined]
        if archives and isinstance(archives[0].doc, Order) and not died:
            died.append(archives[0].doc.status.phase)
            raise ConnectionAbortedError
        await commit(changes, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(environment.ledger, "commit", dies)
    await environment.run_until_gone(web)
    assert died == [OrderPhase.DELETED]
    await environment.assert_nothing_left()


async def remove_orders(
    environment: SimulatedKubeEnvironment,
) -> list[tuple[SteppedHub, dict[str, Any]]]:
    """From all hubs, finalizers or not; what was removed where."""
    removed = []
    for stepped_hub in environment.stepped_hubs.values():
        for item in (
            await environment._client.list(CLUSTER_ORDERS, stepped_hub.place.shared_namespace)
        ).items:
            name, namespace = item["metadata"]["name"], stepped_hub.place.shared_namespace
            bare = {"metadata": {"finalizers": None}}
            await environment._client.merge_patch(CLUSTER_ORDERS, name, bare, namespace)
            await environment._client.delete(CLUSTER_ORDERS, name, namespace)
            removed.append((stepped_hub, item))
        environment.wire.touched.add((CLUSTER_ORDERS.plural, stepped_hub.place.shared_namespace))
    return removed


async def test_an_order_that_somebody_removed_from_the_hub_is_placed_again(
    environment: SimulatedKubeEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    before = await environment.held(web)
    await remove_orders(environment)
    await environment.run(within=timedelta(minutes=15))
    assert await environment.state(web) == ClusterState.READY
    assert await environment.held(web) == before, (
        "what was there was found again, and nothing made twice"
    )


async def test_a_delete_takes_back_what_an_order_held_that_somebody_removed(
    environment: SimulatedKubeEnvironment,
) -> None:
    """Nobody has asked the hub for its end yet: its operator waits for the order to come again."""
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    await remove_orders(environment)
    await environment.delete(web)
    await environment.run_until_gone(web)

    receipt = await environment.receipt_of(web)
    assert {line.kind for line in receipt.gone} >= {"host", "cluster", "l2"}
    assert receipt.left == ()
    await environment.assert_nothing_left()


async def test_one_who_dies_while_placing_a_lost_order_again_has_not_ended_it(
    environment: SimulatedKubeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    await remove_orders(environment)

    async def dies(*args: object, **kwargs: object) -> None:
        raise Unavailable("died")

    with monkeypatch.context() as planted:
        planted.setattr(KubeOrderBook, "put", dies)
        await environment.run(within=timedelta(minutes=15))
    await environment.delete(web)
    await environment.run_until_gone(web)

    assert {line.kind for line in (await environment.receipt_of(web)).gone} >= {
        "host",
        "cluster",
        "l2",
    }
    await environment.assert_nothing_left()


async def test_what_an_operator_has_rescued_of_a_removed_order_is_in_the_receipt(
    environment: SimulatedKubeEnvironment,
) -> None:
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    ((stepped_hub, item),) = await remove_orders(environment)
    left = make_leftover(item, stepped_hub.place, environment.clock.now())
    assert left is not None
    await HubObjects(environment._client, stepped_hub.place).create_leftover(left)
    environment.wire.touched.add((LEFTOVERS.plural, stepped_hub.place.shared_namespace))
    await environment.delete(web)
    await environment.worker_for("Cluster").run_until_idle()

    receipt = await environment.receipt_of(web)
    assert {line.kind for line in receipt.left} >= {"host", "cluster", "l2"}
    assert (
        await environment._client.list(CLUSTER_ORDERS, stepped_hub.place.shared_namespace)
    ).items == []
    await environment.run_until_nothing_is_left()
    await environment.assert_nothing_left()

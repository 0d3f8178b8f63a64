"""A hub that keeps its orders itself and cannot be reached: what was seen stays readable, and a delete still ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from boatyard.ledger.changes import Due
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import Leftover, Order, OrderPhase
from boatyard.model.generated.osac import ClusterState
from boatyard.operator.lost import left_by
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.objects import HubObjects
from tests.support.kube_yard import HubStage, KubeYard

pytestmark = pytest.mark.forms("kube")

A_WHILE = timedelta(minutes=5)


async def poke(yard: KubeYard, cluster_id: str) -> None:
    now = yard.clock.now()
    await yard.ledger.commit([Due("Cluster", cluster_id, now)], now=now)


async def test_what_was_last_seen_is_readable_while_the_hub_is_away(yard: KubeYard) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    yard.wire.cut = {"service"}
    await poke(yard, web)
    await yard.run(within=A_WHILE)

    assert await yard.state(web) == ClusterState.READY
    explanation = await yard.explain(web)
    assert {step.name for step in explanation.steps} >= {"hosts", "network", "install"}


async def test_the_hub_goes_on_without_the_service(yard: KubeYard) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.worker_for("Cluster").run_until_idle()
    yard.wire.cut = {"service"}
    await yard.run(within=A_WHILE)
    assert len(await yard.names("node", web)) == 1, "the operator has done it"
    yard.wire.cut = set()
    await yard.run_to(web, ClusterState.READY)


async def test_a_wish_reaches_the_hub_once_it_is_back(yard: KubeYard) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    yard.wire.cut = {"service"}
    await yard.scale(web, compute=3)
    await yard.run(within=A_WHILE)
    assert len(await yard.names("node", web)) == 1
    yard.wire.cut = set()

    async def grown() -> bool:
        return (await yard.cluster(web)).status.ready_nodes == {"compute": 3}

    await yard.run(grown, within=timedelta(minutes=2))


async def test_a_delete_ends_without_the_hub_and_all_is_taken_back_when_it_returns(
    yard: KubeYard,
) -> None:
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    yard.wire.cut = {"service", "operator"}
    await yard.delete(web)
    began = yard.clock.now()
    await yard.run_until_gone(web)
    assert yard.clock.now() - began < timedelta(minutes=20)
    receipt = await yard.receipt_of(web)
    assert {line.kind for line in receipt.left} >= {"host", "cluster", "l2"}
    assert receipt.gone == ()
    reserved = await yard.ledger.claims.reserved_by_pool()
    assert [amount for pool, amount in reserved.items() if pool.endswith("bm-small")] == [2]

    yard.wire.cut = set()
    await yard.run_until_nothing_is_left()
    await yard.assert_nothing_left()
    for stage in yard.stages.values():
        assert (await yard._client.list(CLUSTER_ORDERS, stage.place.one_namespace)).items == []


async def test_an_order_that_was_never_seen_is_taken_back_too(yard: KubeYard) -> None:
    """It was placed, and the hub went away before its first answer came."""
    web = await yard.order("web", sizes={"compute": 1})
    await yard.ledger.documents.get(Order, web)
    service = super(KubeYard, yard).make_worker(only=("Cluster",))
    await service.run_until_idle()
    assert await yard.ledger.documents.get(Order, web) is None
    yard.wire.cut = {"service"}
    await yard.delete(web)
    await yard.run_until_gone(web)
    assert await yard.ledger.documents.get(Leftover, web) is not None
    yard.wire.cut = set()
    await yard.run_until_nothing_is_left()
    await yard.assert_nothing_left()


async def test_an_order_forgotten_on_the_hub_but_not_here_is_forgotten(
    yard: KubeYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who forgot it died before it was written here."""
    web = await yard.order("web", sizes={"compute": 0})
    await yard.run_to(web, ClusterState.READY)
    await yard.delete(web)
    commit, died = yard.ledger.commit, []

    async def dies(changes: object, **how: object) -> None:
        archives = [one for one in changes if type(one).__name__ == "Archive"]  # type: ignore[attr-defined]
        if archives and isinstance(archives[0].doc, Order) and not died:
            died.append(archives[0].doc.status.phase)
            raise ConnectionAbortedError
        await commit(changes, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(yard.ledger, "commit", dies)
    await yard.run_until_gone(web)
    assert died == [OrderPhase.DELETED]
    await yard.assert_nothing_left()


async def remove_orders(yard: KubeYard) -> list[tuple[HubStage, dict[str, Any]]]:
    """From all hubs, finalizers or not; what was removed where."""
    removed = []
    for stage in yard.stages.values():
        for item in (await yard._client.list(CLUSTER_ORDERS, stage.place.one_namespace)).items:
            name, namespace = item["metadata"]["name"], stage.place.one_namespace
            bare = {"metadata": {"finalizers": None}}
            await yard._client.merge_patch(CLUSTER_ORDERS, name, bare, namespace)
            await yard._client.delete(CLUSTER_ORDERS, name, namespace)
            removed.append((stage, item))
        yard.wire.touched.add((CLUSTER_ORDERS.plural, stage.place.one_namespace))
    return removed


async def test_an_order_that_somebody_removed_from_the_hub_is_placed_again(yard: KubeYard) -> None:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    before = await yard.held(web)
    await remove_orders(yard)
    await yard.run(within=timedelta(minutes=15))
    assert await yard.state(web) == ClusterState.READY
    assert await yard.held(web) == before, "what was there was found again, and nothing made twice"


async def test_a_delete_takes_back_what_an_order_held_that_somebody_removed(yard: KubeYard) -> None:
    """Nobody has asked the hub for its end yet: its operator waits for the order to come again."""
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    await remove_orders(yard)
    await yard.delete(web)
    await yard.run_until_gone(web)

    receipt = await yard.receipt_of(web)
    assert {line.kind for line in receipt.gone} >= {"host", "cluster", "l2"}
    assert receipt.left == ()
    await yard.assert_nothing_left()


async def test_one_who_dies_while_placing_a_lost_order_again_has_not_ended_it(
    yard: KubeYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    await remove_orders(yard)

    async def dies(*args: object, **kwargs: object) -> None:
        raise Unavailable("died")

    with monkeypatch.context() as planted:
        planted.setattr(KubeOrderBook, "put", dies)
        await yard.run(within=timedelta(minutes=15))
    await yard.delete(web)
    await yard.run_until_gone(web)

    assert {line.kind for line in (await yard.receipt_of(web)).gone} >= {"host", "cluster", "l2"}
    await yard.assert_nothing_left()


async def test_what_an_operator_has_rescued_of_a_removed_order_is_in_the_receipt(
    yard: KubeYard,
) -> None:
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    ((stage, item),) = await remove_orders(yard)
    left = left_by(item, stage.place, yard.clock.now())
    assert left is not None
    await HubObjects(yard._client, stage.place).create_leftover(left)
    yard.wire.touched.add((LEFTOVERS.plural, stage.place.one_namespace))
    await yard.delete(web)
    await yard.worker_for("Cluster").run_until_idle()

    receipt = await yard.receipt_of(web)
    assert {line.kind for line in receipt.left} >= {"host", "cluster", "l2"}
    assert (await yard._client.list(CLUSTER_ORDERS, stage.place.one_namespace)).items == []
    await yard.run_until_nothing_is_left()
    await yard.assert_nothing_left()

"""Finalizers taken off by hand: secrets go with their order all the same, and what an order held is not forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from boatyard.kube import naming
from boatyard.kube.kinds import SECRETS
from boatyard.ledger.changes import Replace
from boatyard.model.generated.boatyard import (
    Credentials,
    Item,
    ItemState,
    OrderPhase,
)
from boatyard.operator.lost import Rescue, is_lost, left_by
from boatyard.orderbook.drivers.kube.book import KubeOrderBook
from boatyard.orderbook.hub_kinds import CLUSTER_ORDERS, LEFTOVERS
from boatyard.resources.reconciling import Result
from tests.support.desks import LATER, NOW, SPEC, KubeDesk
from tests.support.hub_plane import until

HOST = Item(key="host/compute-0", kind="host", state=ItemState.PRESENT)
READY = {
    "phase": OrderPhase.READY,
    "items": (HOST,),
    "credentials": Credentials(kubeconfig="clear"),
}


async def written(desk: KubeDesk, **status: Any) -> None:
    """Some fields of the order's status, as its reconciler would write it at the end of a turn."""
    lease = await desk.take("c-1")
    order = await KubeOrderBook(desk.hub, view=desk.queue).get("c-1")
    assert order is not None
    changed = msgspec.structs.replace(order.status, **status)
    result = Result(changes=[Replace(msgspec.structs.replace(order, status=changed))])
    await desk.queue.finish(lease, result, attempts=0, now=NOW)


async def ready(desk: KubeDesk) -> dict[str, Any]:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await written(desk, **READY)
    (item,) = (await desk.client.list(CLUSTER_ORDERS, desk.place.one_namespace)).items
    return item


async def secrets(desk: KubeDesk) -> list[str]:
    found = (await desk.client.list(SECRETS, desk.place.one_namespace)).items
    return [one["metadata"]["name"].rpartition("-")[2] for one in found]


@pytest.mark.parametrize(
    "left, remain",
    [
        pytest.param(naming.FEEDBACK_FINALIZER, ["inputs"], id="ours"),
        pytest.param(naming.OPERATOR_FINALIZER, [], id="the service's"),
    ],
)
async def test_secrets_go_although_a_finalizer_was_taken_off(
    desk: KubeDesk, left: str, remain: list[str]
) -> None:
    """What is not cleared away here is the service's, which has heard of the end."""
    await ready(desk)
    assert sorted(await secrets(desk)) == ["credentials", "inputs"]
    await desk.book.request_delete("c-1", delete_by=LATER, now=NOW)
    (item,) = (await desk.client.list(CLUSTER_ORDERS, desk.place.one_namespace)).items
    await desk.hub.objects.patch_order(item, metadata={"finalizers": [left]})
    await written(desk, phase=OrderPhase.DELETED, items=())
    assert await secrets(desk) == remain


async def test_what_an_order_held_that_was_removed_by_hand_stands_in_a_leftover(
    desk: KubeDesk,
) -> None:
    item = await ready(desk)
    rescue = Rescue(desk.view, desk.hub.objects, check=desk.leader.check, now=lambda: NOW)
    task = asyncio.create_task(rescue.run())
    await desk.book.request_delete("c-1", delete_by=LATER, now=NOW)
    await desk.hub.objects.patch_order(item, metadata={"finalizers": None}, guarded=False)

    async def kept() -> bool:
        return bool((await desk.client.list(LEFTOVERS, desk.place.one_namespace)).items)

    await until(kept, "a leftover")
    leftover = await desk.book.leftover("c-1")
    assert leftover is not None
    assert [(one.key, one.state) for one in leftover.status.items] == [
        (HOST.key, ItemState.LEAVING)
    ]

    async def cleared() -> bool:
        return await secrets(desk) == []

    await until(cleared, "its secrets are gone")
    task.cancel()


async def test_only_what_does_not_come_again_is_lost(desk: KubeDesk) -> None:
    """An order whose end nobody asked for is placed anew by the service and finds its things by their keys."""
    item = await ready(desk)
    assert not is_lost(item, desk.place)
    item["spec"]["boatyard"]["deletedAt"] = "2026-01-01T00:00:00Z"
    assert is_lost(item, desk.place)
    assert left_by(item, desk.place, NOW) is not None
    item["status"]["boatyard"]["items"] = []
    assert left_by(item, desk.place, NOW) is None
    item["status"]["boatyard"]["phase"] = "ORDER_PHASE_DELETED"
    assert not is_lost(item, desk.place)
    item["status"]["boatyard"]["phase"] = "ORDER_PHASE_READY"
    del item["spec"]["boatyard"]
    assert is_lost(item, desk.place), "of another tool: its id, the object's, never comes again"


async def test_an_order_that_a_turn_finds_gone_is_told_once(desk: KubeDesk) -> None:
    """A turn may find out before the watch tells."""
    item = await ready(desk)
    gone: list[str] = []
    desk.view.on_gone = lambda last: gone.append(last["metadata"]["name"])
    bare = {"finalizers": None}
    item = await desk.hub.objects.patch_order(item, metadata=bare, guarded=False)
    await desk.caught_up()
    desk.view.is_gone(("Order", "c-1"))
    await desk.hub.objects.delete_order(item)
    await until(lambda: len(desk.view.informers[0]) == 0, "the watch has told")
    assert gone == [item["metadata"]["name"]]

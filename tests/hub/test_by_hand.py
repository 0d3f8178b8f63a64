"""Finalizers taken off by hand: secrets go with their order all the same, and what an order held is not forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from boatyard.kube.kinds import SECRETS
from boatyard.ledger.changes import Replace
from boatyard.model import hub_names
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import (
    Credentials,
    Item,
    ItemState,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
    OrderPhase,
)
from boatyard.model.generated.osac import Metadata
from boatyard.operator import lost
from boatyard.operator.lost import Rescue, is_lost, left_by
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS, LEFTOVERS
from boatyard.resources.reconciling import Result
from tests.support.control_plane import ControlPlane
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
        pytest.param(hub_names.FEEDBACK_FINALIZER, ["inputs"], id="ours"),
        pytest.param(hub_names.OPERATOR_FINALIZER, [], id="the service's"),
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


async def test_a_rescue_that_cannot_be_written_keeps_none_of_the_others(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two orders removed by hand the first one's cannot be written for now; then it is."""
    monkeypatch.setattr(lost, "FIRST_PAUSE", 0.2)
    async with KubeDesk.open(plane) as desk:
        rescue = Rescue(desk.view, desk.hub.objects, check=desk.leader.check, now=lambda: NOW)
        item = await ready(desk)
        item["spec"]["boatyard"]["deletedAt"] = "2026-01-01T00:00:00Z"
        create, refused = desk.hub.objects.create_leftover, ["c-1"]

        async def create_leftover(leftover: Leftover) -> dict[str, Any] | None:
            if leftover.id in refused:
                raise Unavailable("the namespace is being terminated")
            return await create(leftover)

        monkeypatch.setattr(desk.hub.objects, "create_leftover", create_leftover)
        task = asyncio.create_task(rescue.run())
        for name in ("c-1", "c-2"):
            wish = {**item["spec"]["boatyard"], "clusterID": name}
            about = {**item["metadata"], "name": hub_names.order_name(name)}
            gone = {**item, "metadata": about, "spec": {**item["spec"], "boatyard": wish}}
            desk.view.on_gone(gone)

        async def kept(name: str) -> bool:
            return await desk.book.leftover(name) is not None

        await until(lambda: kept("c-2"), "the second is written")
        assert not await kept("c-1")
        refused.clear()
        await until(lambda: kept("c-1"), "the first follows")
        task.cancel()


async def test_what_is_left_of_a_tenant_whose_namespace_is_gone_is_set_aside(
    plane: ControlPlane,
) -> None:
    """In our own namespace, where it is found as any other."""
    async with KubeDesk.open(plane, one_namespace="") as desk:
        left = Leftover(
            id="c-gone",
            metadata=Metadata(tenant="no-such-tenant", creation_timestamp=NOW),
            spec=LeftoverSpec(order="c-gone", hub="hub-1"),
            status=LeftoverStatus(items=(HOST,)),
        )
        made = await desk.hub.objects.create_leftover(left)
        assert made is not None
        assert made["metadata"]["namespace"] == desk.system
        assert await desk.hub.objects.create_leftover(left) is None, "it stands"
        await until(lambda: desk.view.leftover_object("c-gone"), "the operator sees it")
        found = await desk.book.leftover("c-gone")
        assert found is not None
        assert (found.id, found.status.items) == ("c-gone", (HOST,))
        await desk.hub.objects.delete_leftover(made)


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

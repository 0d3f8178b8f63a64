"""Finalizers taken off by hand: secrets go with their order all the same, and what an order held is not forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from boatyard.kube.kinds import SECRETS
from boatyard.ledger.changes import Replace
from boatyard.model import hub_names
from boatyard.model.backoff import Backoff
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
from boatyard.operator import lost_orders
from boatyard.operator.lost_orders import LostOrderRecovery, is_lost, make_leftover
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS, LEFTOVERS
from boatyard.resources.reconciler import ReconcileResult
from tests.contracts.order_books import LATER, NOW, SPEC, KubeBookHarness
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import until

HOST = Item(key="host/compute-0", kind="host", state=ItemState.PRESENT)
READY = {
    "phase": OrderPhase.READY,
    "items": (HOST,),
    "credentials": Credentials(kubeconfig="clear"),
}


async def written(harness: KubeBookHarness, **status: Any) -> None:
    """Some fields of the order's status, as its reconciler would write it at the end of a turn."""
    lease = await harness.take("c-1")
    order = await KubeOrderBook(harness.hub, view=harness.queue).get("c-1")
    assert order is not None
    changed = msgspec.structs.replace(order.status, **status)
    result = ReconcileResult(changes=[Replace(msgspec.structs.replace(order, status=changed))])
    await harness.queue.finish(lease, result, attempts=0, now=NOW)


async def ready(harness: KubeBookHarness) -> dict[str, Any]:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await written(harness, **READY)
    (item,) = (await harness.client.list(CLUSTER_ORDERS, harness.place.shared_namespace)).items
    return item


async def secrets(harness: KubeBookHarness) -> list[str]:
    found = (await harness.client.list(SECRETS, harness.place.shared_namespace)).items
    return [one["metadata"]["name"].rpartition("-")[2] for one in found]


@pytest.mark.parametrize(
    "left, remain",
    [
        pytest.param(hub_names.FEEDBACK_FINALIZER, ["inputs"], id="ours"),
        pytest.param(hub_names.OPERATOR_FINALIZER, [], id="the service's"),
    ],
)
async def test_secrets_go_although_a_finalizer_was_taken_off(
    harness: KubeBookHarness, left: str, remain: list[str]
) -> None:
    """What is not cleared away here is the service's, which has heard of the end."""
    await ready(harness)
    assert sorted(await secrets(harness)) == ["credentials", "inputs"]
    await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    (item,) = (await harness.client.list(CLUSTER_ORDERS, harness.place.shared_namespace)).items
    await harness.hub.objects.patch_order(item, metadata={"finalizers": [left]})
    await written(harness, phase=OrderPhase.DELETED, items=())
    assert await secrets(harness) == remain


async def test_what_an_order_held_that_was_removed_by_hand_stands_in_a_leftover(
    harness: KubeBookHarness,
) -> None:
    item = await ready(harness)
    rescue = LostOrderRecovery(
        harness.view, harness.hub.objects, check=harness.leader.check_leadership, now=lambda: NOW
    )
    task = asyncio.create_task(rescue.run())
    await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    await harness.hub.objects.patch_order(item, metadata={"finalizers": None}, guarded=False)

    async def kept() -> bool:
        return bool((await harness.client.list(LEFTOVERS, harness.place.shared_namespace)).items)

    await until(kept, "a leftover")
    leftover = await harness.book.get_leftover("c-1")
    assert leftover is not None
    assert [(one.key, one.state) for one in leftover.status.items] == [
        (HOST.key, ItemState.LEAVING)
    ]

    async def cleared() -> bool:
        return await secrets(harness) == []

    await until(cleared, "its secrets are gone")
    task.cancel()


async def test_a_rescue_that_cannot_be_written_keeps_none_of_the_others(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two orders removed by hand the first one's cannot be written for now; then it is."""
    monkeypatch.setattr(lost_orders, "BACKOFF", Backoff(first=0.2, longest=60.0))
    async with KubeBookHarness.open(plane) as harness:
        rescue = LostOrderRecovery(
            harness.view,
            harness.hub.objects,
            check=harness.leader.check_leadership,
            now=lambda: NOW,
        )
        item = await ready(harness)
        item["spec"]["boatyard"]["deletedAt"] = "2026-01-01T00:00:00Z"
        create, refused = harness.hub.objects.create_leftover, ["c-1"]

        async def create_leftover(leftover: Leftover) -> dict[str, Any] | None:
            if leftover.id in refused:
                raise Unavailable("the namespace is being terminated")
            return await create(leftover)

        monkeypatch.setattr(harness.hub.objects, "create_leftover", create_leftover)
        task = asyncio.create_task(rescue.run())
        for name in ("c-1", "c-2"):
            wish = {**item["spec"]["boatyard"], "clusterID": name}
            about = {**item["metadata"], "name": hub_names.order_name(name)}
            gone = {**item, "metadata": about, "spec": {**item["spec"], "boatyard": wish}}
            harness.view.on_gone(gone)

        async def kept(name: str) -> bool:
            return await harness.book.get_leftover(name) is not None

        await until(lambda: kept("c-2"), "the second is written")
        assert not await kept("c-1")
        refused.clear()
        await until(lambda: kept("c-1"), "the first follows")
        task.cancel()


async def test_what_is_left_of_a_tenant_whose_namespace_is_gone_is_set_aside(
    plane: ControlPlane,
) -> None:
    """In our own namespace, where it is found as any other."""
    async with KubeBookHarness.open(plane, shared_namespace="") as harness:
        left = Leftover(
            id="c-gone",
            metadata=Metadata(tenant="no-such-tenant", creation_timestamp=NOW),
            spec=LeftoverSpec(order="c-gone", hub="hub-1"),
            status=LeftoverStatus(items=(HOST,)),
        )
        made = await harness.hub.objects.create_leftover(left)
        assert made is not None
        assert made["metadata"]["namespace"] == harness.system
        assert await harness.hub.objects.create_leftover(left) is None, "it stands"
        await until(lambda: harness.view.get_leftover_object("c-gone"), "the operator sees it")
        found = await harness.book.get_leftover("c-gone")
        assert found is not None
        assert (found.id, found.status.items) == ("c-gone", (HOST,))
        await harness.hub.objects.delete_leftover(made)


async def test_only_what_does_not_come_again_is_lost(harness: KubeBookHarness) -> None:
    """An order whose end nobody asked for is placed anew by the service and finds its things by their keys."""
    item = await ready(harness)
    assert not is_lost(item, harness.place)
    item["spec"]["boatyard"]["deletedAt"] = "2026-01-01T00:00:00Z"
    assert is_lost(item, harness.place)
    assert make_leftover(item, harness.place, NOW) is not None
    item["status"]["boatyard"]["items"] = []
    assert make_leftover(item, harness.place, NOW) is None
    item["status"]["boatyard"]["phase"] = "ORDER_PHASE_DELETED"
    assert not is_lost(item, harness.place)
    item["status"]["boatyard"]["phase"] = "ORDER_PHASE_READY"
    del item["spec"]["boatyard"]
    assert is_lost(item, harness.place), "of another tool: its id, the object's, never comes again"


async def test_an_order_that_a_turn_finds_gone_is_told_once(harness: KubeBookHarness) -> None:
    """A turn may find out before the watch tells."""
    item = await ready(harness)
    gone: list[str] = []
    harness.view.on_gone = lambda last: gone.append(last["metadata"]["name"])
    bare = {"finalizers": None}
    item = await harness.hub.objects.patch_order(item, metadata=bare, guarded=False)
    await harness.caught_up()
    harness.view.record_deletion(("Order", "c-1"))
    await harness.hub.objects.delete_order(item)
    await until(lambda: len(harness.view.informers[0]) == 0, "the watch has told")
    assert gone == [item["metadata"]["name"]]

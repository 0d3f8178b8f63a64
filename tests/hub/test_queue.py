"""The queue of a hub on a real API server: nothing lost, nothing doubled, one write per result."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from boatyard.engine.kube_queue import KubeQueue
from boatyard.kube.transport import KubeRequest, KubeResponse
from boatyard.ledger.changes import Archive, Due, Insert, Replace, Unclaim
from boatyard.ledger.records import WorkLease
from boatyard.model import hub_names
from boatyard.model.errors import Conflict, LeaseLost, Unavailable
from boatyard.model.generated.boatyard import (
    Item,
    ItemState,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
    Order,
    OrderPhase,
    OrderStatus,
)
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping import from_kube
from boatyard.orderbook.kube.sweep import delete_orphaned_claims, read_hub_records
from boatyard.resources.reconciler import ReconcileResult
from tests.contracts.order_books import LATER, NOW, SPEC, KubeBookHarness, UnchallengedLeader
from tests.support.kube_hub.api_server import until

SOON = NOW + timedelta(seconds=30)
HOST = Item(key="host/compute-0", kind="host", state=ItemState.PLANNED)


async def read(harness: KubeBookHarness, order_id: str = "c-1") -> Order:
    order = await KubeOrderBook(harness.hub, view=harness.queue).get(order_id)
    assert order is not None
    return order


async def placed(harness: KubeBookHarness, order_id: str = "c-1") -> tuple[WorkLease, Order]:
    """An order that was put, and our lease on it."""
    await harness.book.put(order_id, tenant="acme", spec=SPEC, now=NOW)
    lease = await harness.take(order_id)
    return lease, await read(harness, order_id)


def with_status(order: Order, **status: Any) -> ReconcileResult:
    changed = msgspec.structs.replace(order, status=OrderStatus(**status))
    return ReconcileResult(changes=[Replace(changed)], look_again=SOON)


async def the_object(harness: KubeBookHarness) -> dict[str, Any]:
    (item,) = (await harness.client.list(CLUSTER_ORDERS, harness.place.shared_namespace)).items
    return item


@pytest.fixture
def writes(harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What of the harness's requests asks for a change, as it is sent."""
    sent: list[str] = []
    exchange = harness.client._transport.exchange

    async def noted(question: KubeRequest) -> KubeResponse:
        if question.method != "GET":
            sent.append(f"{question.method} {question.path.partition('?')[0].rpartition('/')[2]}")
        return await exchange(question)

    monkeypatch.setattr(harness.client._transport, "exchange", noted)
    return sent


async def finish_with_one_write(harness: KubeBookHarness, writes: list[str]) -> None:
    lease, order = await placed(harness)
    writes.clear()
    await harness.queue.finish(lease, with_status(order, items=(HOST,)), attempts=0, now=NOW)
    assert writes == ["PATCH status"]


async def test_more_than_one_write_is_noticed(
    harness: KubeBookHarness, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: the status is written twice."""
    apply = harness.hub.objects.apply_status

    async def twice(item: Any, order: Order, now: datetime) -> Any:
        return await apply(await apply(item, order, now), order, now)

    monkeypatch.setattr(harness.hub.objects, "apply_status", twice)
    with pytest.raises(AssertionError):
        await finish_with_one_write(harness, writes)


async def test_a_result_is_one_write_and_is_due_when_it_says(
    harness: KubeBookHarness, writes: list[str]
) -> None:
    await finish_with_one_write(harness, writes)
    item = await the_object(harness)
    assert from_kube.to_order(item, harness.place).status.items == (HOST,)
    await harness.caught_up()
    assert await harness.queue.take(9, now=NOW) == [], "our own word is no news"
    (again,) = await harness.queue.take(9, now=SOON)
    assert again.id == "c-1"


async def test_what_we_wrote_is_what_we_read_next(harness: KubeBookHarness) -> None:
    lease, order = await placed(harness)
    for number in range(1, 4):
        await harness.queue.write(lease, with_status(order, retried=number), now=NOW)
        order = await read(harness)
        assert order.status.retried == number


async def test_another_wish_in_the_middle_of_a_turn_is_a_conflict_and_not_lost(
    harness: KubeBookHarness,
) -> None:
    lease, order = await placed(harness)
    wish = msgspec.structs.replace(SPEC, generation=2)
    await harness.book.put("c-1", tenant="acme", spec=wish, now=NOW)
    await harness.caught_up()
    with pytest.raises(Conflict):
        await harness.queue.finish(lease, with_status(order, items=(HOST,)), attempts=0, now=NOW)
    await harness.queue.finish(lease, ReconcileResult(look_again=NOW), attempts=0, now=NOW)
    (again,) = await harness.queue.take(9, now=NOW)
    assert again.id == "c-1"
    order = await read(harness)
    assert order.spec.generation == 2
    assert order.status == OrderStatus(), "nothing was written"


async def test_a_conflict_that_no_watch_has_told_of_is_looked_up(harness: KubeBookHarness) -> None:
    lease, order = await placed(harness)
    harness.view.on_change = lambda key: None
    for informer in harness.view.informers:
        informer._on_change = None  # deaf from now on
    await harness.book.request_retry("c-1", 1)
    with pytest.raises(Conflict):
        await harness.queue.write(lease, with_status(order), now=NOW)
    order = await read(harness)
    assert order.metadata.annotations == {"boatyard.io/retry": "1"}
    await harness.queue.write(lease, with_status(order, retried=1), now=NOW)


async def test_a_change_during_a_turn_makes_it_due_again_at_once(harness: KubeBookHarness) -> None:
    lease, _ = await placed(harness)
    await harness.book.request_retry("c-1", 1)
    await harness.caught_up()
    assert await harness.queue.take(9, now=LATER) == [], "it is held"
    await harness.queue.finish(lease, ReconcileResult(look_again=SOON), attempts=0, now=NOW)
    assert [one.id for one in await harness.queue.take(9, now=NOW)] == ["c-1"]


async def test_without_the_lead_nothing_is_taken_or_written(harness: KubeBookHarness) -> None:
    lease, order = await placed(harness)
    harness.leader.lost = True
    with pytest.raises(LeaseLost):
        harness.queue.check_lease(lease)
    with pytest.raises(LeaseLost):
        await harness.queue.take(9, now=LATER)
    with pytest.raises(LeaseLost):
        await harness.queue.finish(lease, with_status(order, items=(HOST,)), attempts=0, now=NOW)
    assert await harness.queue.extend([lease], now=NOW) == set()
    assert "status" not in await the_object(harness)


async def test_a_new_leader_looks_at_everything_once(harness: KubeBookHarness) -> None:
    for number in range(3):
        await harness.book.put(f"c-{number}", tenant="acme", spec=SPEC, now=NOW)
    await harness.caught_up()
    heir = KubeQueue(
        view=harness.view, results=harness.results, leader=UnchallengedLeader(), now=NOW
    )
    assert {one.id for one in await heir.take(9, now=NOW)} == {"c-0", "c-1", "c-2"}


async def test_a_tenant_with_many_orders_does_not_starve_one_with_a_single_order(
    harness: KubeBookHarness,
) -> None:
    for number in range(6):
        await harness.book.put(f"many-{number}", tenant="acme", spec=SPEC, now=NOW)
    await harness.book.put("lone", tenant="globex", spec=SPEC, now=NOW)
    await harness.caught_up()
    taken = await harness.queue.take(2, now=LATER)
    assert {lease.tenant for lease in taken} == {"acme", "globex"}


@pytest.mark.parametrize("deleted", [False, True])
async def test_an_unmanaged_order_is_ignored_until_it_is_deleted(
    harness: KubeBookHarness, deleted: bool
) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    unmanaged = {"annotations": {hub_names.MANAGEMENT_STATE: hub_names.UNMANAGED}}
    await harness.hub.objects.patch_order(await the_object(harness), metadata=unmanaged)
    if deleted:
        await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    assert await harness.due_orders() == ({"c-1"} if deleted else set())
    if not deleted:
        managed: dict[str, Any] = {"annotations": {hub_names.MANAGEMENT_STATE: None}}
        await harness.hub.objects.patch_order(await the_object(harness), metadata=managed)
        assert await harness.due_orders() == {"c-1"}


async def test_a_finalizer_taken_off_by_hand_is_put_back_while_there_is_work(
    harness: KubeBookHarness,
) -> None:
    lease, order = await placed(harness)
    await harness.queue.finish(lease, with_status(order, items=(HOST,)), attempts=0, now=NOW)
    await harness.hub.objects.patch_order(await the_object(harness), metadata={"finalizers": None})
    lease = await harness.take("c-1")
    await harness.queue.finish(lease, ReconcileResult(look_again=SOON), attempts=0, now=NOW)
    found = await the_object(harness)
    assert hub_names.OPERATOR_FINALIZER in found["metadata"]["finalizers"]


async def test_an_order_of_another_tool_is_held_before_anything_is_made(
    harness: KubeBookHarness,
) -> None:
    made = await harness.client.create(
        CLUSTER_ORDERS,
        {"metadata": {"generateName": "order-"}, "spec": {"templateID": "small"}},
        harness.place.shared_namespace,
    )
    uid = made["metadata"]["uid"]
    await until(lambda: harness.view.get_order_object(uid) is not None, "it is seen")
    lease = await harness.take(uid)
    order = await read(harness, uid)
    await harness.queue.write(lease, with_status(order, items=(HOST,)), now=NOW)
    found = await the_object(harness)
    assert found["metadata"]["finalizers"] == [hub_names.OPERATOR_FINALIZER]
    assert found["status"]["phase"] == "Progressing"


async def test_an_order_that_ended_is_let_go(harness: KubeBookHarness) -> None:
    lease, order = await placed(harness)
    await harness.queue.finish(lease, with_status(order, items=(HOST,)), attempts=0, now=NOW)
    await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    lease = await harness.take("c-1")
    order = await read(harness)
    ended = with_status(order, phase=OrderPhase.DELETED)
    await harness.queue.finish(lease, ended, attempts=0, now=NOW)
    found = await the_object(harness)
    assert found["metadata"]["finalizers"] == [hub_names.FEEDBACK_FINALIZER]


async def test_one_who_died_before_letting_go_is_helped_out(
    harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status says that all is gone, and the finalizer is still there."""
    lease, order = await placed(harness)
    await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    await harness.queue.finish(lease, ReconcileResult(look_again=NOW), attempts=0, now=NOW)
    lease = await harness.take("c-1")
    order = await read(harness)
    ended = with_status(order, phase=OrderPhase.DELETED)

    async def dies(key: object) -> None:
        raise Unavailable("died")

    monkeypatch.setattr(harness.results, "update_finalizer", dies)
    with pytest.raises(Unavailable):
        await harness.queue.finish(lease, ended, attempts=0, now=NOW)
    monkeypatch.undo()
    heir = KubeQueue(
        view=harness.view, results=harness.results, leader=UnchallengedLeader(), now=NOW
    )
    (lease,) = await heir.take(9, now=NOW)
    await heir.finish(lease, ReconcileResult(), attempts=0, now=NOW)
    found = await the_object(harness)
    assert found["metadata"]["finalizers"] == [hub_names.FEEDBACK_FINALIZER]


def a_leftover() -> Leftover:
    return Leftover(
        id="c-1",
        metadata=Metadata(name="c-1", tenant="acme", creator="system", creation_timestamp=NOW),
        spec=LeftoverSpec(order="c-1", cluster_name="web", hub="hub-1"),
        status=LeftoverStatus(items=(HOST,)),
    )


async def test_what_is_left_stands_in_a_leftover_before_its_order_lets_go(
    harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, order = await placed(harness)
    left = [Insert(a_leftover()), Due("Leftover", "c-1", NOW)]
    result = with_status(order, phase=OrderPhase.DELETED)
    result = ReconcileResult(changes=[*result.changes, *left])

    async def dies(*args: object) -> None:
        raise Unavailable("died")

    monkeypatch.setattr(harness.hub.objects, "apply_status", dies)
    with pytest.raises(Unavailable):
        await harness.queue.finish(lease, result, attempts=0, now=NOW)
    monkeypatch.undo()
    assert len((await harness.client.list(LEFTOVERS, harness.place.shared_namespace)).items) == 1
    assert "status" not in await the_object(harness)
    await harness.queue.finish(lease, result, attempts=0, now=NOW)  # the second time it stands
    taken = {(one.kind, one.id) for one in await harness.queue.take(9, now=NOW)}
    assert ("Leftover", "c-1") in taken


async def test_a_leftover_is_followed_to_its_end(harness: KubeBookHarness) -> None:
    lease, _ = await placed(harness)
    left = a_leftover()
    done = ReconcileResult(changes=[Insert(left), Due("Leftover", "c-1", NOW)])
    await harness.queue.finish(lease, done, attempts=0, now=NOW)
    (lease,) = [one for one in await harness.queue.take(9, now=NOW) if one.kind == "Leftover"]
    found = await KubeOrderBook(harness.hub, view=harness.queue).get_leftover("c-1")
    assert found == left
    tried = msgspec.structs.replace(left, status=LeftoverStatus(items=(HOST,), tries=3))
    await harness.queue.write(lease, ReconcileResult(changes=[Replace(tried)]), now=NOW)
    assert await KubeOrderBook(harness.hub, view=harness.queue).get_leftover("c-1") == tried
    await harness.queue.finish(
        lease, ReconcileResult(changes=[Archive(tried)]), attempts=0, now=NOW
    )
    assert await harness.book.get_leftover("c-1") is None


async def test_what_was_released_is_free_before_the_order_forgets_it(
    harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, order = await placed(harness)
    await harness.book.claim("hub-1/hosts", ["a"], "c-1/host/compute-0", now=NOW)
    changes = [Unclaim("c-1/host/compute-0"), *with_status(order).changes]

    async def dies(*args: object) -> None:
        raise Unavailable("died")

    monkeypatch.setattr(harness.hub.objects, "apply_status", dies)
    with pytest.raises(Unavailable):
        await harness.queue.finish(lease, ReconcileResult(changes=changes), attempts=0, now=NOW)
    assert (await harness.client.list(CLAIMS, harness.system)).items == []


async def test_a_claim_that_nobody_stands_behind_is_swept(harness: KubeBookHarness) -> None:
    lease, order = await placed(harness)
    await harness.queue.finish(lease, with_status(order, items=(HOST,)), attempts=0, now=NOW)
    for owner, item in {
        "c-1/host/compute-0": "recorded",
        "c-1/host/compute-0/agent": "below it",
        "c-1/host/compute-9": "not recorded",
        "c-2/host/compute-0": "nobody's",
    }.items():
        await harness.book.claim("hub-1/hosts", [item], owner, now=NOW)
    books = await read_hub_records(harness.client, harness.place, harness.system, read_all=False)
    about: Any = (harness.client, harness.view, harness.system, books)
    assert (
        await delete_orphaned_claims(*about, check=lambda: None, is_protected=lambda order: True)
        == 0
    )
    assert (
        await delete_orphaned_claims(*about, check=lambda: None, is_protected=lambda order: False)
        == 2
    )
    kept = (await harness.client.list(CLAIMS, harness.system)).items
    assert {one["spec"]["item"] for one in kept} == {"recorded", "below it"}


async def test_an_order_that_vanishes_during_its_turn_ends_the_turn(
    harness: KubeBookHarness,
) -> None:
    lease, order = await placed(harness)
    item = await harness.hub.objects.patch_order(
        await the_object(harness), metadata={"finalizers": None}
    )
    await harness.hub.objects.delete_order(item)
    await harness.queue.finish(lease, with_status(order), attempts=0, now=NOW)
    assert await harness.queue.take(9, now=LATER) == []

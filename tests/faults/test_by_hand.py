"""Somebody takes finalizers, labels, annotations or owners off by hand: put back or borne, and never a leak."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.kube.kinds import NAMESPACES, SECRETS, KubeKind
from boatyard.model import hub_names
from boatyard.model.errors import NotFound
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS
from tests.support.kube_hub.fault_environment import BACK, FaultyHubEnvironment, until

pytestmark = pytest.mark.timeout(400)

NAME = hub_names.order_name("c-1")
BARE = {"labels": None, "annotations": None, "ownerReferences": None}


@pytest.fixture
async def both(hub: FaultyHubEnvironment) -> FaultyHubEnvironment:
    """Two orders of two tenants, ready; whatever is done is done to the first."""
    await hub.start(direct=True)
    for order_id, tenant in (("c-1", "acme"), ("c-2", "globex")):
        await hub.put(order_id, 1, tenant=tenant)
    for order_id in ("c-1", "c-2"):
        await hub.until_ready(order_id, 1)
    return hub


async def strip(
    hub: FaultyHubEnvironment, kind: KubeKind, name: str, namespace: str, **fields: Any
) -> None:
    await hub.client.merge_patch(kind, name, {"metadata": fields or BARE}, namespace)


async def finalizers(hub: FaultyHubEnvironment) -> list[str]:
    item = await hub.client.get(CLUSTER_ORDERS, NAME, hub.place.shared_namespace)
    return list(item["metadata"].get("finalizers") or ())


async def assert_the_other_stands(hub: FaultyHubEnvironment) -> None:
    """Nothing of the other tenant's was touched: each thing of it was made once and never taken away."""
    await hub.until_ready("c-2", 1)
    rows = await hub.outside.call("twin.effects", prefix="c-2/")
    assert rows
    assert {(row["applied"], row["removed"]) for row in rows} == {(1, 0)}
    assert await hub.doubled("c-1") == []


async def end_both(hub: FaultyHubEnvironment) -> None:
    for order_id in ("c-1", "c-2"):
        await hub.delete(order_id)
    for order_id in ("c-1", "c-2"):
        await hub.until_deleted(order_id, seconds=BACK)
    await hub.until_nothing_is_left()


async def test_a_finalizer_is_put_back(both: FaultyHubEnvironment) -> None:
    hub = both
    await strip(hub, CLUSTER_ORDERS, NAME, hub.place.shared_namespace, finalizers=None)

    async def held() -> bool:
        return hub_names.OPERATOR_FINALIZER in await finalizers(hub)

    await until(held, "our finalizer is on it again", seconds=BACK)
    await assert_the_other_stands(hub)
    await end_both(hub)


async def test_labels_annotations_and_owners_are_nothing_to_rely_on(
    both: FaultyHubEnvironment,
) -> None:
    """Of the order, its secrets, its claims and its namespace; then it grows, shrinks and goes as ever."""
    hub = both
    where = hub.place.shared_namespace
    await strip(hub, NAMESPACES, where, "")
    await strip(hub, CLUSTER_ORDERS, NAME, where)
    for secret in (await hub.client.list(SECRETS, where)).items:
        await strip(hub, SECRETS, secret["metadata"]["name"], where)
    for claim in (await hub.client.list(CLAIMS, hub.system)).items:
        await strip(hub, CLAIMS, claim["metadata"]["name"], hub.system)
    for size, generation in ((3, 2), (1, 3)):
        await hub.put("c-1", size, generation, tenant="acme")
        await hub.until_ready("c-1", size, generation)
    await assert_the_other_stands(hub)
    assert await hub.claims_held_twice() == []
    await end_both(hub)


async def test_a_new_leader_does_not_need_the_labels_of_claims_either(
    both: FaultyHubEnvironment,
) -> None:
    hub = both
    for claim in (await hub.client.list(CLAIMS, hub.system)).items:
        await strip(hub, CLAIMS, claim["metadata"]["name"], hub.system)
    await hub.register(any="setting")  # everything is looked at anew
    await hub.put("c-1", 2, 2, tenant="acme")
    await hub.until_ready("c-1", 2, 2)
    assert await hub.claims_held_twice() == []
    await assert_the_other_stands(hub)
    await end_both(hub)


@pytest.mark.parametrize("which", ["ours", "all"])
async def test_a_finalizer_taken_off_while_it_is_deleted_leaks_nothing(
    both: FaultyHubEnvironment, which: str
) -> None:
    hub = both
    # A leftover is in no hurry: it looks twice a minute at what takes its time.
    await hub.twin_does("set_delays")
    # Nothing can be released for a moment: it is surely still there when the finalizer goes.
    await hub.twin_does("set_fault", hub="*", service="inventory", profile="dead")
    await hub.delete("c-1")

    async def leaving() -> bool:
        item = await hub.client.get(CLUSTER_ORDERS, NAME, hub.place.shared_namespace)
        return bool(item["metadata"].get("deletionTimestamp"))

    await until(leaving, "it is to go")
    left = [hub_names.FEEDBACK_FINALIZER] if which == "ours" else None
    await strip(hub, CLUSTER_ORDERS, NAME, hub.place.shared_namespace, finalizers=left)
    if which == "all":
        with pytest.raises(NotFound):
            await finalizers(hub)

        async def kept() -> bool:
            return await hub.book.get_leftover("c-1") is not None

        await until(kept, "what it held stands in a leftover", seconds=BACK)
    await hub.twin_does("clear_faults")
    await hub.register(any="setting")  # everything is looked at anew, and the leftover too
    if which == "ours":
        await hub.until_deleted("c-1", seconds=BACK)

    async def released() -> bool:
        truth = await hub.truth()
        keys = [key for kinds in truth.values() for found in kinds.values() for key in found]
        return not any(key.startswith("c-1/") for key in keys)

    await until(released, "all that it held is free", seconds=BACK)
    await assert_the_other_stands(hub)
    await hub.delete("c-2")
    await hub.until_deleted("c-2", seconds=BACK)
    await hub.until_nothing_is_left()

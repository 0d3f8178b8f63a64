"""Questions about an order: explain, follow, retry, receipt, history; over both doors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from msgspec.structs import replace

from boatyard.ledger.changes import Archive, Insert, Note, Replace
from boatyard.model import wire
from boatyard.model.generated.boatyard import (
    Leftover,
    Order,
    OrderStatus,
    Receipt,
    ReceiptLine,
    Step,
    StepState,
)
from boatyard.model.generated.osac import Cluster, Metadata
from tests.api import samples
from tests.api.doors import OURS, PUBLIC, Door, Failed, Yard, failed

pytestmark = pytest.mark.asyncio(loop_scope="module")

ORDERS = f"{OURS}.Orders"
BY_KIND = {sample.kind: sample for sample in samples.SAMPLES}


async def _ordered(yard: Yard, *steps: Step) -> Any:
    made = BY_KIND["Cluster"].fresh()
    body = {"object": made}
    cluster = await yard.grpc.call(
        f"{PUBLIC}.Clusters", "Create", body, token=yard.token("operator")
    )
    now = yard.ledger.clock.now()
    order = Order(
        id=cluster["id"],
        metadata=Metadata(
            name=cluster["metadata"]["name"], tenant="acme", creation_timestamp=now, generation=1
        ),
        status=OrderStatus(steps=steps),
    )
    await yard.ledger.commit([Insert(order, Note("Accepted", "Order accepted"))], now=now)
    return cluster


async def _end(yard: Yard, id: str) -> None:
    """What the worker does when everything is released."""
    now = yard.ledger.clock.now()
    order = await yard.ledger.documents.get(Order, id)
    cluster = await yard.ledger.documents.get(Cluster, id)
    assert order is not None
    assert cluster is not None
    receipt = Receipt(
        requested_at=now - timedelta(seconds=9),
        finished_at=now,
        gone=(ReceiptLine(kind="api-name", name="api.example"),),
    )
    order = replace(order, status=replace(order.status, receipt=receipt))
    await yard.ledger.commit(
        [Archive(order), Archive(cluster, Note("Deleted", "Everything is released"))], now=now
    )


async def test_explain_by_id_and_by_name(yard: Yard, door: Door) -> None:
    cluster = await _ordered(yard, Step(name="hosts", state=StepState.RUNNING))
    for key in (cluster["id"], cluster["metadata"]["name"]):
        for role in ("viewer", "operator"):
            shown = await door.call(ORDERS, "Explain", {"cluster": key}, token=yard.token(role))
            assert shown["cluster"] == cluster["id"]
            assert shown["steps"][0]["name"] == "hosts"
            assert shown["summary"]


async def test_a_cluster_without_an_order_yet_is_explained(yard: Yard, door: Door) -> None:
    made = await yard.grpc.call(
        f"{PUBLIC}.Clusters",
        "Create",
        {"object": samples.cluster(f"fresh-{door.name}")},
        token=yard.token("member"),
    )
    shown = await door.call(ORDERS, "Explain", {"cluster": made["id"]}, token=yard.token("viewer"))
    assert shown["state"] == "PROGRESSING"


async def test_a_name_in_two_tenants_is_the_callers_own_and_an_operator_must_choose(
    yard: Yard, door: Door
) -> None:
    name = f"twice-{door.name}"
    ids = {}
    for tenant in ("acme", "globex"):
        made = await yard.grpc.call(
            f"{PUBLIC}.Clusters",
            "Create",
            {"object": samples.cluster(name)},
            token=yard.token("member", tenant),
        )
        ids[tenant] = made["id"]
    for tenant, id in ids.items():
        shown = await door.call(
            ORDERS, "Explain", {"cluster": name}, token=yard.token("viewer", tenant)
        )
        assert shown["cluster"] == id
    with pytest.raises(Failed) as failed:
        await door.call(ORDERS, "Explain", {"cluster": name}, token=yard.token("operator"))
    assert failed.value.code == "INVALID_ARGUMENT"


async def test_retry_is_written_into_the_order_and_makes_it_due(yard: Yard, door: Door) -> None:
    cluster = await _ordered(yard, Step(name="hosts", state=StepState.QUARANTINED, bugs=3))
    asked = {"cluster": cluster["id"]}
    assert await door.call(ORDERS, "Retry", asked, token=yard.token("member")) == {}
    order = await yard.ledger.documents.get(Order, cluster["id"])
    assert order is not None
    assert order.status.retried == 1
    assert order.status.steps[0].state != StepState.QUARANTINED
    leases = await yard.ledger.work.take(
        kinds=["Order"], limit=1000, lease_seconds=1, worker="w", now=yard.ledger.clock.now()
    )
    assert cluster["id"] in {lease.id for lease in leases}


async def test_receipt_and_history_outlive_the_cluster(yard: Yard, door: Door) -> None:
    cluster = await _ordered(yard)
    asked = {"cluster": cluster["id"]}
    with pytest.raises(Failed) as failed:
        await door.call(ORDERS, "GetReceipt", asked, token=yard.token("viewer"))
    assert failed.value.code == "NOT_FOUND"
    await _end(yard, cluster["id"])
    for key in (cluster["id"], cluster["metadata"]["name"]):
        asked = {"cluster": key}
        receipt = await door.call(ORDERS, "GetReceipt", asked, token=yard.token("viewer"))
        assert receipt["gone"][0]["name"] == "api.example"
        explained = await door.call(ORDERS, "Explain", asked, token=yard.token("viewer"))
        assert explained["gone"] is True
        with pytest.raises(Failed) as failed:
            await door.call(ORDERS, "GetReceipt", asked, token=yard.token("admin", "globex"))
        assert failed.value.code == "NOT_FOUND"
    await yard.ledger.events.publish()
    told = await door.call(ORDERS, "History", asked, token=yard.token("viewer"))
    assert [item["reason"] for item in told["items"]] == ["Created", "Deleted"]
    told = await door.call(ORDERS, "History", asked, token=yard.token("operator"))
    assert [item["reason"] for item in told["items"]] == ["Created", "Accepted", "Deleted"]
    told = await door.call(ORDERS, "History", {**asked, "limit": 1}, token=yard.token("operator"))
    assert [item["reason"] for item in told["items"]] == ["Deleted"]


@pytest.mark.parametrize("name", ["grpc", "rest"])
async def test_follow_ends_when_the_cluster_is_gone(yard: Yard, name: str) -> None:
    cluster = await _ordered(yard, Step(name="hosts", state=StepState.RUNNING))
    seen = []
    async with asyncio.timeout(20):
        async for explanation in _follow(yard, name, cluster["id"]):
            seen.append(explanation)
            if len(seen) == 1:
                order = await yard.ledger.documents.get(Order, cluster["id"])
                assert order is not None
                done = (Step(name="hosts", state=StepState.DONE),)
                changed = replace(order, status=replace(order.status, steps=done))
                await yard.ledger.commit([Replace(changed)], now=yard.ledger.clock.now())
            elif len(seen) == 2:
                await _end(yard, cluster["id"])
    assert [one["steps"][0]["state"] for one in seen] == [
        "STEP_STATE_RUNNING",
        "STEP_STATE_DONE",
        "STEP_STATE_DONE",
    ]
    assert [one.get("gone", False) for one in seen] == [False, False, True]


async def test_following_a_stranger_is_like_following_nobody(yard: Yard) -> None:
    cluster = await _ordered(yard)
    for name in ("grpc", "rest"):
        for key in (cluster["id"], "nothing"):
            with pytest.raises(Failed) as failed:
                async for _ in _follow(yard, name, key, yard.token("admin", "globex")):
                    pass
            assert failed.value.code == "NOT_FOUND"


async def test_leftovers_are_for_operators(yard: Yard, door: Door) -> None:
    now = yard.ledger.clock.now()
    id = f"left-{door.name}"
    metadata = Metadata(name=id, tenant="acme", creation_timestamp=now)
    await yard.ledger.commit([Insert(Leftover(id=id, metadata=metadata))], now=now)
    token = yard.token("operator")
    assert (await door.call(f"{OURS}.Leftovers", "Get", {"id": id}, token=token))["id"] == id
    listed = await door.call(
        f"{OURS}.Leftovers", "List", {"filter": f'this.id == "{id}"'}, token=token
    )
    assert listed["total"] == 1
    with pytest.raises(Failed) as failed:
        await door.call(f"{OURS}.Leftovers", "Get", {"id": id}, token=yard.token("admin"))
    assert failed.value.code == "PERMISSION_DENIED"


async def _follow(
    yard: Yard, name: str, cluster: str, token: str = ""
) -> AsyncIterator[dict[str, Any]]:
    token = token or yard.token("viewer")
    if name == "rest":
        path = f"/api/boatyard/v1/clusters/{cluster}/follow"
        headers = {"authorization": f"Bearer {token}"}
        async with yard.client.stream("GET", path, headers=headers) as response:
            if response.status_code != 200:
                await response.aread()
                raise Failed("NOT_FOUND" if response.status_code == 404 else "?", "", {})
            async for line in response.aiter_lines():
                if line:
                    yield json.loads(line)["result"]["explanation"]
        return

    request = wire.message(f"{OURS}.OrdersFollowRequest")(cluster=cluster)
    call = yard.channel.unary_stream(f"/{ORDERS}/Follow")(
        request.SerializeToString(), metadata=(("authorization", f"Bearer {token}"),)
    )
    try:
        async for data in call:
            message: Any = wire.message(f"{OURS}.OrdersFollowResponse").FromString(data)
            yield json_format.MessageToDict(message.explanation, preserving_proto_field_name=True)
    except grpc.aio.AioRpcError as error:
        raise failed(error) from error

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

from boatyard.ledger.changes import Archive, EventNote, Insert, Replace
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
from tests.api.doors import OURS, PUBLIC, ApiEnvironment, Door, Failed, failed

pytestmark = pytest.mark.asyncio(loop_scope="module")

ORDERS = f"{OURS}.Orders"
BY_KIND = {sample.kind: sample for sample in samples.SAMPLES}


async def _ordered(environment: ApiEnvironment, *steps: Step) -> Any:
    made = BY_KIND["Cluster"].fresh()
    body = {"object": made}
    cluster = await environment.grpc.call(
        f"{PUBLIC}.Clusters", "Create", body, token=environment.token("operator")
    )
    now = environment.ledger.clock.now()
    order = Order(
        id=cluster["id"],
        metadata=Metadata(
            name=cluster["metadata"]["name"], tenant="acme", creation_timestamp=now, generation=1
        ),
        status=OrderStatus(steps=steps),
    )
    await environment.ledger.commit(
        [Insert(order, EventNote("Accepted", "Order accepted"))], now=now
    )
    return cluster


async def _end(environment: ApiEnvironment, id: str) -> None:
    """What the worker does when everything is released."""
    now = environment.ledger.clock.now()
    order = await environment.ledger.documents.get(Order, id)
    cluster = await environment.ledger.documents.get(Cluster, id)
    assert order is not None
    assert cluster is not None
    receipt = Receipt(
        requested_at=now - timedelta(seconds=9),
        finished_at=now,
        gone=(ReceiptLine(kind="api-name", name="api.example"),),
    )
    order = replace(order, status=replace(order.status, receipt=receipt))
    await environment.ledger.commit(
        [Archive(order), Archive(cluster, EventNote("Deleted", "Everything is released"))], now=now
    )


async def test_explain_by_id_and_by_name(environment: ApiEnvironment, door: Door) -> None:
    cluster = await _ordered(environment, Step(name="hosts", state=StepState.RUNNING))
    for key in (cluster["id"], cluster["metadata"]["name"]):
        for role in ("viewer", "operator"):
            shown = await door.call(
                ORDERS, "Explain", {"cluster": key}, token=environment.token(role)
            )
            assert shown["cluster"] == cluster["id"]
            assert shown["steps"][0]["name"] == "hosts"
            assert shown["summary"]


async def test_a_cluster_without_an_order_yet_is_explained(
    environment: ApiEnvironment, door: Door
) -> None:
    made = await environment.grpc.call(
        f"{PUBLIC}.Clusters",
        "Create",
        {"object": samples.cluster(f"fresh-{door.name}")},
        token=environment.token("member"),
    )
    shown = await door.call(
        ORDERS, "Explain", {"cluster": made["id"]}, token=environment.token("viewer")
    )
    assert shown["state"] == "PROGRESSING"


async def test_a_name_in_two_tenants_is_the_callers_own_and_an_operator_must_choose(
    environment: ApiEnvironment, door: Door
) -> None:
    name = f"twice-{door.name}"
    ids = {}
    for tenant in ("acme", "globex"):
        made = await environment.grpc.call(
            f"{PUBLIC}.Clusters",
            "Create",
            {"object": samples.cluster(name)},
            token=environment.token("member", tenant),
        )
        ids[tenant] = made["id"]
    for tenant, id in ids.items():
        shown = await door.call(
            ORDERS, "Explain", {"cluster": name}, token=environment.token("viewer", tenant)
        )
        assert shown["cluster"] == id
    with pytest.raises(Failed) as failed:
        await door.call(ORDERS, "Explain", {"cluster": name}, token=environment.token("operator"))
    assert failed.value.code == "INVALID_ARGUMENT"


async def test_a_tenants_own_cluster_comes_before_a_shared_one_of_that_name(
    environment: ApiEnvironment, door: Door
) -> None:
    name = f"own-or-shared-{door.name}"
    clusters = f"{PUBLIC}.Clusters"
    body = {"object": samples.cluster(name)}
    shared = await environment.grpc.call(
        clusters, "Create", body, token=environment.token("operator")
    )
    assert shared["metadata"]["tenant"] == "shared"
    own = await environment.grpc.call(
        clusters, "Create", body, token=environment.token("member", "acme")
    )
    for tenant, id in (("acme", own["id"]), ("globex", shared["id"])):
        shown = await door.call(
            ORDERS, "Explain", {"cluster": name}, token=environment.token("viewer", tenant)
        )
        assert shown["cluster"] == id


async def test_retry_is_written_into_the_order_and_makes_it_due(
    environment: ApiEnvironment, door: Door
) -> None:
    cluster = await _ordered(environment, Step(name="hosts", state=StepState.QUARANTINED, bugs=3))
    asked = {"cluster": cluster["id"]}
    assert await door.call(ORDERS, "Retry", asked, token=environment.token("member")) == {}
    order = await environment.ledger.documents.get(Order, cluster["id"])
    assert order is not None
    assert order.status.retried == 1
    assert order.status.steps[0].state != StepState.QUARANTINED
    leases = await environment.ledger.work.take(
        kinds=["Order"], limit=1000, lease_seconds=1, worker="w", now=environment.ledger.clock.now()
    )
    assert cluster["id"] in {lease.id for lease in leases}


async def test_receipt_and_history_outlive_the_cluster(
    environment: ApiEnvironment, door: Door
) -> None:
    cluster = await _ordered(environment)
    asked = {"cluster": cluster["id"]}
    with pytest.raises(Failed) as failed:
        await door.call(ORDERS, "GetReceipt", asked, token=environment.token("viewer"))
    assert failed.value.code == "NOT_FOUND"
    await _end(environment, cluster["id"])
    for key in (cluster["id"], cluster["metadata"]["name"]):
        asked = {"cluster": key}
        receipt = await door.call(ORDERS, "GetReceipt", asked, token=environment.token("viewer"))
        assert receipt["gone"][0]["name"] == "api.example"
        explained = await door.call(ORDERS, "Explain", asked, token=environment.token("viewer"))
        assert explained["gone"] is True
        with pytest.raises(Failed) as failed:
            await door.call(ORDERS, "GetReceipt", asked, token=environment.token("admin", "globex"))
        assert failed.value.code == "NOT_FOUND"
    await environment.ledger.events.publish()
    told = await door.call(ORDERS, "History", asked, token=environment.token("viewer"))
    assert [item["reason"] for item in told["items"]] == ["Created", "Deleted"]
    told = await door.call(ORDERS, "History", asked, token=environment.token("operator"))
    assert [item["reason"] for item in told["items"]] == ["Created", "Accepted", "Deleted"]
    told = await door.call(
        ORDERS, "History", {**asked, "limit": 1}, token=environment.token("operator")
    )
    assert [item["reason"] for item in told["items"]] == ["Deleted"]


@pytest.mark.parametrize("name", ["grpc", "rest"])
async def test_follow_ends_when_the_cluster_is_gone(environment: ApiEnvironment, name: str) -> None:
    cluster = await _ordered(environment, Step(name="hosts", state=StepState.RUNNING))
    seen = []
    async with asyncio.timeout(20):
        async for explanation in _follow(environment, name, cluster["id"]):
            seen.append(explanation)
            if len(seen) == 1:
                order = await environment.ledger.documents.get(Order, cluster["id"])
                assert order is not None
                done = (Step(name="hosts", state=StepState.DONE),)
                changed = replace(order, status=replace(order.status, steps=done))
                await environment.ledger.commit(
                    [Replace(changed)], now=environment.ledger.clock.now()
                )
            elif len(seen) == 2:
                await _end(environment, cluster["id"])
    assert [one["steps"][0]["state"] for one in seen] == [
        "STEP_STATE_RUNNING",
        "STEP_STATE_DONE",
        "STEP_STATE_DONE",
    ]
    assert [one.get("gone", False) for one in seen] == [False, False, True]


async def test_following_a_stranger_is_like_following_nobody(environment: ApiEnvironment) -> None:
    cluster = await _ordered(environment)
    for name in ("grpc", "rest"):
        for key in (cluster["id"], "nothing"):
            with pytest.raises(Failed) as failed:
                async for _ in _follow(
                    environment, name, key, environment.token("admin", "globex")
                ):
                    pass
            assert failed.value.code == "NOT_FOUND"


async def test_leftovers_are_for_operators(environment: ApiEnvironment, door: Door) -> None:
    now = environment.ledger.clock.now()
    id = f"left-{door.name}"
    metadata = Metadata(name=id, tenant="acme", creation_timestamp=now)
    await environment.ledger.commit([Insert(Leftover(id=id, metadata=metadata))], now=now)
    token = environment.token("operator")
    assert (await door.call(f"{OURS}.Leftovers", "Get", {"id": id}, token=token))["id"] == id
    listed = await door.call(
        f"{OURS}.Leftovers", "List", {"filter": f'this.id == "{id}"'}, token=token
    )
    assert listed["total"] == 1
    with pytest.raises(Failed) as failed:
        await door.call(f"{OURS}.Leftovers", "Get", {"id": id}, token=environment.token("admin"))
    assert failed.value.code == "PERMISSION_DENIED"


async def _follow(
    environment: ApiEnvironment, name: str, cluster: str, token: str = ""
) -> AsyncIterator[dict[str, Any]]:
    token = token or environment.token("viewer")
    if name == "rest":
        path = f"/api/boatyard/v1/clusters/{cluster}/follow"
        headers = {"authorization": f"Bearer {token}"}
        async with environment.client.stream("GET", path, headers=headers) as response:
            if response.status_code != 200:
                await response.aread()
                raise Failed("NOT_FOUND" if response.status_code == 404 else "?", "", {})
            async for line in response.aiter_lines():
                if line:
                    yield json.loads(line)["result"]["explanation"]
        return

    request = wire.message(f"{OURS}.OrdersFollowRequest")(cluster=cluster)
    call = environment.channel.unary_stream(f"/{ORDERS}/Follow")(
        request.SerializeToString(), metadata=(("authorization", f"Bearer {token}"),)
    )
    try:
        async for data in call:
            message: Any = wire.message(f"{OURS}.OrdersFollowResponse").FromString(data)
            yield json_format.MessageToDict(message.explanation, preserving_proto_field_name=True)
    except grpc.aio.AioRpcError as error:
        raise failed(error) from error

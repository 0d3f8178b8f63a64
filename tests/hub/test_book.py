"""What the order book of a hub does beyond its contract: names, secrets, and nobody waits for a hub for long."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.kube.kinds import NAMESPACES, SECRETS
from boatyard.model import hub_names
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.boatyard import Credentials, OrderPhase, OrderStatus
from boatyard.orderbook.kube.book import KubeOrderBook, SecretScope
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from boatyard.orderbook.kube.mapping.from_kube import CREDENTIALS_MASK, HubOrderSettings
from tests.contracts.order_books import LATER, NOW, SPEC, KubeBookHarness
from tests.support.control_plane import free_port
from tests.support.kube_hub.api_server import hang_up

SECRET = "hunter2"


async def objects_of(harness: KubeBookHarness) -> list[dict[str, Any]]:
    return (await harness.client.list(CLUSTER_ORDERS, harness.place.shared_namespace)).items


async def test_an_order_has_the_names_that_others_look_for(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    (item,) = await objects_of(harness)
    about = item["metadata"]
    assert about["name"] == hub_names.order_name("c-1")
    assert about["labels"][hub_names.ORDER_UUID] == "c-1"
    assert about["annotations"] == {hub_names.TENANT: "acme", hub_names.CLUSTER: "c-1"}
    assert set(about["finalizers"]) == {hub_names.OPERATOR_FINALIZER, hub_names.FEEDBACK_FINALIZER}


async def test_each_tenant_has_a_namespace_on_the_hub(harness: KubeBookHarness) -> None:
    place = HubOrderSettings(hub="hub-1")
    hub = HubConnection(harness.client, place, system_namespace=harness.system)
    book = KubeOrderBook(hub)
    for tenant in ("acme", "Globex Inc."):
        await book.put(f"of-{tenant}", tenant=tenant, spec=SPEC, now=NOW)
        namespace = await harness.client.get(NAMESPACES, place.get_tenant_namespace(tenant))
        assert namespace["metadata"]["annotations"][hub_names.TENANT] == tenant
        # A book that has never heard of it finds it without being told the tenant.
        fresh = KubeOrderBook(HubConnection(harness.client, place, system_namespace=harness.system))
        order = await fresh.get(f"of-{tenant}")
        assert order is not None
        assert (order.spec, order.metadata.tenant) == (SPEC, tenant)


async def test_secrets_are_in_a_secret_and_nowhere_else(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    opened = OrderStatus(
        phase=OrderPhase.READY,
        credentials=Credentials(kubeconfig=f"token: {SECRET}", password=SECRET, simulated=True),
    )
    await harness.set_status("c-1", opened)
    (item,) = await objects_of(harness)
    assert SECRET not in json.dumps(item)
    order = await harness.book.get("c-1")
    assert order is not None
    assert order.status == opened
    assert order.spec.pull_secret == SECRET
    masked = await KubeOrderBook(harness.hub, secrets=SecretScope.NEEDED).get("c-1")
    assert masked is not None
    assert masked.status.credentials == Credentials(kubeconfig=CREDENTIALS_MASK)
    blind = await KubeOrderBook(harness.hub, secrets=SecretScope.NONE).get("c-1")
    assert blind is not None
    assert blind.spec.pull_secret == ""


async def test_an_ended_order_leaves_nothing_on_the_hub(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    opened = OrderStatus(phase=OrderPhase.READY, credentials=Credentials(kubeconfig="k"))
    await harness.set_status("c-1", opened)
    await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    await harness.set_status("c-1", msgspec.structs.replace(opened, phase=OrderPhase.DELETED))
    await harness.book.forget("c-1", now=LATER)
    namespace = harness.place.shared_namespace
    assert (await harness.client.list(CLUSTER_ORDERS, namespace)).items == []
    assert (await harness.client.list(SECRETS, namespace)).items == []


async def test_what_was_written_before_an_order_that_never_came_is_forgotten_with_it(
    harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service dies between the inputs and the order, and its tenant thinks better of it."""

    async def die(*_: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(harness.hub.objects, "create_order", die)
    with pytest.raises(RuntimeError):
        await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    namespace = harness.place.shared_namespace
    assert len((await harness.client.list(SECRETS, namespace)).items) == 1
    await harness.book.forget("c-1", tenant="acme", now=LATER)
    assert (await harness.client.list(SECRETS, namespace)).items == []


async def test_credentials_that_no_status_tells_of_go_with_their_order(
    harness: KubeBookHarness,
) -> None:
    """The operator dies between the credentials and the status that names them."""
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    (item,) = await objects_of(harness)
    order = await harness.book.get("c-1")
    assert order is not None
    opened = OrderStatus(phase=OrderPhase.READY, credentials=Credentials(kubeconfig="k"))
    await harness.hub.objects.write_credentials(item, msgspec.structs.replace(order, status=opened))
    await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    await harness.set_status("c-1", OrderStatus(phase=OrderPhase.DELETED))
    await harness.book.forget("c-1", tenant="acme", now=LATER)
    assert (await harness.client.list(SECRETS, harness.place.shared_namespace)).items == []


async def test_an_order_that_only_the_operator_holds_is_forgotten(harness: KubeBookHarness) -> None:
    """The operator has said that all is gone, and died before it took its finalizer off."""
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    (item,) = await objects_of(harness)
    order = await harness.book.get("c-1")
    assert order is not None
    ended = msgspec.structs.replace(order, status=OrderStatus(phase=OrderPhase.DELETED))
    await harness.hub.objects.apply_status(item, ended, NOW)
    await harness.book.forget("c-1", now=LATER)
    assert await harness.book.get("c-1") is None
    (left,) = await objects_of(harness)
    assert left["metadata"]["finalizers"] == [hub_names.OPERATOR_FINALIZER]


async def test_a_deletion_that_died_half_way_is_asked_for_again(
    harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)

    async def dies(item: object) -> None:
        raise Unavailable("died before the deletion was sent")

    monkeypatch.setattr(harness.hub.objects, "delete_order", dies)
    with pytest.raises(Unavailable):
        await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    monkeypatch.undo()
    order = await harness.book.get("c-1")
    assert order is not None
    assert order.metadata.deletion_timestamp is None, "nothing is taken back yet"
    await harness.book.request_delete("c-1", delete_by=LATER, now=NOW)
    order = await harness.book.get("c-1")
    assert order is not None
    assert order.metadata.deletion_timestamp == NOW


async def test_fields_of_others_survive_another_wish(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    (item,) = await objects_of(harness)
    theirs = {"networkAttachment": {"subnetRef": "blue"}}
    await harness.hub.objects.patch_order(item, spec=theirs)
    wish = msgspec.structs.replace(SPEC, generation=2, version="4.18.3")
    await harness.book.put("c-1", tenant="acme", spec=wish, now=LATER)
    (item,) = await objects_of(harness)
    assert item["spec"]["networkAttachment"] == {"subnetRef": "blue"}
    assert item["spec"]["boatyard"]["version"] == "4.18.3"


async def test_a_dead_hub_is_unavailable_at_once(harness: KubeBookHarness) -> None:
    client = KubeClient(KubeConfig(server=f"http://127.0.0.1:{free_port()}"), patience=0)
    try:
        book = KubeOrderBook(HubConnection(client, harness.place, system_namespace="none"))
        with pytest.raises(Unavailable):
            await book.get("c-1")
        with pytest.raises(Unavailable):
            await book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    finally:
        await hang_up(client)


class Silent:
    """A server that takes requests in and never answers."""

    async def __aenter__(self) -> KubeConfig:
        self._waiting: set[asyncio.StreamWriter] = set()

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._waiting.add(writer)

        self._server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return KubeConfig(server=f"http://127.0.0.1:{port}")

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._waiting:
            writer.close()
            await writer.wait_closed()


async def test_nobody_waits_for_a_silent_hub_longer_than_a_call_may_take() -> None:
    async with Silent() as config:
        client = KubeClient(config, timeout=30)
        hub = HubConnection(
            client,
            HubOrderSettings(hub="hub-1"),
            system_namespace="none",
            call_seconds=0.2,
            entry_seconds=0.5,
            at_once=2,
        )
        try:
            time = asyncio.get_running_loop().time
            began = time()
            answers = await asyncio.gather(
                *(KubeOrderBook(hub).get(f"c-{n}") for n in range(20)), return_exceptions=True
            )
            assert {type(answer) for answer in answers} == {Unavailable}
            reasons = [getattr(answer, "reason", "") for answer in answers]
            assert set(reasons) <= {"Timeout", "Busy"}
            assert "Timeout" in reasons
            assert time() - began < 2, "twenty that wait do not wait for each other"
        finally:
            await hang_up(client)


async def test_an_order_whose_secret_is_missing_waits_for_it(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    name = hub_names.inputs_secret_name(hub_names.order_name("c-1"))
    await harness.client.delete(SECRETS, name, harness.place.shared_namespace)
    fresh = HubConnection(harness.client, harness.place, system_namespace=harness.system)
    with pytest.raises(Unavailable, match=name):
        await KubeOrderBook(fresh).get("c-1")


async def test_a_retry_is_asked_for_by_a_number(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await harness.book.request_retry("c-1", 3)
    order = await harness.book.get("c-1")
    assert order is not None
    assert order.metadata.annotations == {"boatyard.io/retry": "3"}
    await harness.book.request_retry("nobody", 1)


async def test_a_right_that_we_lack_is_no_fault_of_the_order(
    harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused would end the order and tell its author to change it."""

    async def forbidden(*_: object, **__: object) -> None:
        raise Refused("clusterorders is forbidden", reason="Forbidden")

    monkeypatch.setattr(harness.hub.objects, "create_order", forbidden)
    with pytest.raises(Unavailable) as caught:
        await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    assert caught.value.reason == "Forbidden"


async def test_nobody_is_given_or_deletes_anothers_secret(harness: KubeBookHarness) -> None:
    """Whoever may write orders and their status in one namespace names a Secret that is none of theirs."""
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    victim = {"kubeconfig": SECRET, "pullSecret": SECRET}
    where = harness.place.shared_namespace
    await harness.hub.objects.write_secret(where, "another", victim, order_name="another")
    (item,) = await objects_of(harness)
    named = {"namespace": where, "name": "another"}
    item["status"] = {"credentialsRef": named}
    item["spec"]["boatyard"]["secretRef"]["name"] = "another"
    await harness.client.merge_patch(
        *(CLUSTER_ORDERS, item["metadata"]["name"]),
        *({"spec": item["spec"]}, where),
    )
    await harness.client.merge_patch(
        *(CLUSTER_ORDERS, item["metadata"]["name"], {"status": item["status"]}, where),
        subresource="status",
    )
    (item,) = await objects_of(harness)
    assert item["status"]["credentialsRef"] == named
    order = await harness.book.get("c-1")
    assert order is not None
    assert (order.status.credentials, order.spec.pull_secret) == (Credentials(), "")
    await harness.hub.objects.delete_inputs(item)
    await harness.hub.objects.delete_credentials(item)
    assert await harness.hub.objects.read_secret(where, "another") == victim


async def test_where_an_order_was_is_forgotten_with_it(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    assert await harness.book.get("c-1") is not None
    assert set(harness.hub.order_locations) == {"c-1"}
    (item,) = await objects_of(harness)
    item = await harness.hub.objects.patch_order(item, metadata={"finalizers": None})
    await harness.hub.objects.delete_order(item)
    assert await harness.book.get("c-1") is None
    assert harness.hub.order_locations == {}

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
from boatyard.orderbook.kube.book import KubeOrderBook, Secrets
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from boatyard.orderbook.kube.mapping.from_kube import MASK, Place
from tests.support.control_plane import free_port
from tests.support.desks import LATER, NOW, SPEC, KubeDesk
from tests.support.hub_plane import hang_up

SECRET = "hunter2"


async def objects_of(desk: KubeDesk) -> list[dict[str, Any]]:
    return (await desk.client.list(CLUSTER_ORDERS, desk.place.one_namespace)).items


async def test_an_order_has_the_names_that_others_look_for(desk: KubeDesk) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    (item,) = await objects_of(desk)
    about = item["metadata"]
    assert about["name"] == hub_names.order_name("c-1")
    assert about["labels"][hub_names.ORDER_UUID] == "c-1"
    assert about["annotations"] == {hub_names.TENANT: "acme", hub_names.CLUSTER: "c-1"}
    assert set(about["finalizers"]) == {hub_names.OPERATOR_FINALIZER, hub_names.FEEDBACK_FINALIZER}


async def test_each_tenant_has_a_namespace_on_the_hub(desk: KubeDesk) -> None:
    place = Place(hub="hub-1")
    hub = HubConnection(desk.client, place, system_namespace=desk.system)
    book = KubeOrderBook(hub)
    for tenant in ("acme", "Globex Inc."):
        await book.put(f"of-{tenant}", tenant=tenant, spec=SPEC, now=NOW)
        namespace = await desk.client.get(NAMESPACES, place.namespace(tenant))
        assert namespace["metadata"]["annotations"][hub_names.TENANT] == tenant
        # A book that has never heard of it finds it without being told the tenant.
        fresh = KubeOrderBook(HubConnection(desk.client, place, system_namespace=desk.system))
        order = await fresh.get(f"of-{tenant}")
        assert order is not None
        assert (order.spec, order.metadata.tenant) == (SPEC, tenant)


async def test_secrets_are_in_a_secret_and_nowhere_else(desk: KubeDesk) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    opened = OrderStatus(
        phase=OrderPhase.READY,
        credentials=Credentials(kubeconfig=f"token: {SECRET}", password=SECRET, simulated=True),
    )
    await desk.set_status("c-1", opened)
    (item,) = await objects_of(desk)
    assert SECRET not in json.dumps(item)
    order = await desk.book.get("c-1")
    assert order is not None
    assert order.status == opened
    assert order.spec.pull_secret == SECRET
    masked = await KubeOrderBook(desk.hub, secrets=Secrets.NEEDED).get("c-1")
    assert masked is not None
    assert masked.status.credentials == Credentials(kubeconfig=MASK)
    blind = await KubeOrderBook(desk.hub, secrets=Secrets.NONE).get("c-1")
    assert blind is not None
    assert blind.spec.pull_secret == ""


async def test_an_ended_order_leaves_nothing_on_the_hub(desk: KubeDesk) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    opened = OrderStatus(phase=OrderPhase.READY, credentials=Credentials(kubeconfig="k"))
    await desk.set_status("c-1", opened)
    await desk.book.request_delete("c-1", delete_by=LATER, now=NOW)
    await desk.set_status("c-1", msgspec.structs.replace(opened, phase=OrderPhase.DELETED))
    await desk.book.forget("c-1", now=LATER)
    namespace = desk.place.one_namespace
    assert (await desk.client.list(CLUSTER_ORDERS, namespace)).items == []
    assert (await desk.client.list(SECRETS, namespace)).items == []


async def test_what_was_written_before_an_order_that_never_came_is_forgotten_with_it(
    desk: KubeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service dies between the inputs and the order, and its tenant thinks better of it."""

    async def die(*_: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(desk.hub.objects, "create_order", die)
    with pytest.raises(RuntimeError):
        await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    namespace = desk.place.one_namespace
    assert len((await desk.client.list(SECRETS, namespace)).items) == 1
    await desk.book.forget("c-1", tenant="acme", now=LATER)
    assert (await desk.client.list(SECRETS, namespace)).items == []


async def test_credentials_that_no_status_tells_of_go_with_their_order(desk: KubeDesk) -> None:
    """The operator dies between the credentials and the status that names them."""
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    (item,) = await objects_of(desk)
    order = await desk.book.get("c-1")
    assert order is not None
    opened = OrderStatus(phase=OrderPhase.READY, credentials=Credentials(kubeconfig="k"))
    await desk.hub.objects.write_credentials(item, msgspec.structs.replace(order, status=opened))
    await desk.book.request_delete("c-1", delete_by=LATER, now=NOW)
    await desk.set_status("c-1", OrderStatus(phase=OrderPhase.DELETED))
    await desk.book.forget("c-1", tenant="acme", now=LATER)
    assert (await desk.client.list(SECRETS, desk.place.one_namespace)).items == []


async def test_an_order_that_only_the_operator_holds_is_forgotten(desk: KubeDesk) -> None:
    """The operator has said that all is gone, and died before it took its finalizer off."""
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await desk.book.request_delete("c-1", delete_by=LATER, now=NOW)
    (item,) = await objects_of(desk)
    order = await desk.book.get("c-1")
    assert order is not None
    ended = msgspec.structs.replace(order, status=OrderStatus(phase=OrderPhase.DELETED))
    await desk.hub.objects.apply_status(item, ended, NOW)
    await desk.book.forget("c-1", now=LATER)
    assert await desk.book.get("c-1") is None
    (left,) = await objects_of(desk)
    assert left["metadata"]["finalizers"] == [hub_names.OPERATOR_FINALIZER]


async def test_a_deletion_that_died_half_way_is_asked_for_again(
    desk: KubeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)

    async def dies(item: object) -> None:
        raise Unavailable("died before the deletion was sent")

    monkeypatch.setattr(desk.hub.objects, "delete_order", dies)
    with pytest.raises(Unavailable):
        await desk.book.request_delete("c-1", delete_by=LATER, now=NOW)
    monkeypatch.undo()
    order = await desk.book.get("c-1")
    assert order is not None
    assert order.metadata.deletion_timestamp is None, "nothing is taken back yet"
    await desk.book.request_delete("c-1", delete_by=LATER, now=NOW)
    order = await desk.book.get("c-1")
    assert order is not None
    assert order.metadata.deletion_timestamp == NOW


async def test_fields_of_others_survive_another_wish(desk: KubeDesk) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    (item,) = await objects_of(desk)
    theirs = {"networkAttachment": {"subnetRef": "blue"}}
    await desk.hub.objects.patch_order(item, spec=theirs)
    wish = msgspec.structs.replace(SPEC, generation=2, version="4.18.3")
    await desk.book.put("c-1", tenant="acme", spec=wish, now=LATER)
    (item,) = await objects_of(desk)
    assert item["spec"]["networkAttachment"] == {"subnetRef": "blue"}
    assert item["spec"]["boatyard"]["version"] == "4.18.3"


async def test_a_dead_hub_is_unavailable_at_once(desk: KubeDesk) -> None:
    client = KubeClient(KubeConfig(server=f"http://127.0.0.1:{free_port()}"), patience=0)
    try:
        book = KubeOrderBook(HubConnection(client, desk.place, system_namespace="none"))
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
            Place(hub="hub-1"),
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


async def test_an_order_whose_secret_is_missing_waits_for_it(desk: KubeDesk) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    name = hub_names.inputs_secret_name(hub_names.order_name("c-1"))
    await desk.client.delete(SECRETS, name, desk.place.one_namespace)
    fresh = HubConnection(desk.client, desk.place, system_namespace=desk.system)
    with pytest.raises(Unavailable, match=name):
        await KubeOrderBook(fresh).get("c-1")


async def test_a_retry_is_asked_for_by_a_number(desk: KubeDesk) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await desk.book.ask_for_retry("c-1", 3)
    order = await desk.book.get("c-1")
    assert order is not None
    assert order.metadata.annotations == {"boatyard.io/retry": "3"}
    await desk.book.ask_for_retry("nobody", 1)


async def test_a_right_that_we_lack_is_no_fault_of_the_order(
    desk: KubeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused would end the order and tell its author to change it."""

    async def forbidden(*_: object, **__: object) -> None:
        raise Refused("clusterorders is forbidden", reason="Forbidden")

    monkeypatch.setattr(desk.hub.objects, "create_order", forbidden)
    with pytest.raises(Unavailable) as caught:
        await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    assert caught.value.reason == "Forbidden"


async def test_nobody_is_given_or_deletes_anothers_secret(desk: KubeDesk) -> None:
    """Whoever may write orders and their status in one namespace names a Secret that is none of theirs."""
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    victim = {"kubeconfig": SECRET, "pullSecret": SECRET}
    where = desk.place.one_namespace
    await desk.hub.objects.write_secret(where, "another", victim, order_name="another")
    (item,) = await objects_of(desk)
    named = {"namespace": where, "name": "another"}
    item["status"] = {"credentialsRef": named}
    item["spec"]["boatyard"]["secretRef"]["name"] = "another"
    await desk.client.merge_patch(
        *(CLUSTER_ORDERS, item["metadata"]["name"]),
        *({"spec": item["spec"]}, where),
    )
    await desk.client.merge_patch(
        *(CLUSTER_ORDERS, item["metadata"]["name"], {"status": item["status"]}, where),
        subresource="status",
    )
    (item,) = await objects_of(desk)
    assert item["status"]["credentialsRef"] == named
    order = await desk.book.get("c-1")
    assert order is not None
    assert (order.status.credentials, order.spec.pull_secret) == (Credentials(), "")
    await desk.hub.objects.delete_inputs(item)
    await desk.hub.objects.delete_credentials(item)
    assert await desk.hub.objects.read_secret(where, "another") == victim


async def test_where_an_order_was_is_forgotten_with_it(desk: KubeDesk) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    assert await desk.book.get("c-1") is not None
    assert set(desk.hub.where) == {"c-1"}
    (item,) = await objects_of(desk)
    item = await desk.hub.objects.patch_order(item, metadata={"finalizers": None})
    await desk.hub.objects.delete_order(item)
    assert await desk.book.get("c-1") is None
    assert desk.hub.where == {}

"""A hub's health, version and capacity follow a real API server, and its credentials are replaced while all runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from boatyard.kube.circuit_breaker import FAILURE_THRESHOLD
from boatyard.kube.cluster_identity import OTHER_CLUSTER
from boatyard.kube.kinds import CONFIG_MAPS, LEASES, NODES
from boatyard.ledger.changes import Archive, Insert, Replace, WakeWaiting
from boatyard.ledger.ledger import Ledger
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Unavailable
from boatyard.model.generated.boatyard import OrderSpec
from boatyard.model.generated.osac import ConditionStatus, Hub, HubConditionType, HubState
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from boatyard.resources.hubs.preparation import prepare_hub
from boatyard.resources.hubs.reconciler import CHECK_INTERVAL_SECONDS, HubReconciler
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult
from boatyard.wiring.hub_cache import HubCache
from boatyard.wiring.hub_order_books import HubOrderBooks
from tests.support.control_plane import ControlPlane, control_plane
from tests.support.kube_hub.equipped_hub import (
    AGENTS,
    OPERATOR,
    SYSTEM,
    EquippedHub,
    open_equipped_hub,
)
from tests.support.kubeconfigs import kubeconfig
from tests.support.scripted_kube import scripted_kube


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as plane:
        yield plane


class Watchman:
    """Looks at hubs as a worker does."""

    def __init__(self, equipped_hub: EquippedHub, ledger: Ledger) -> None:
        self.equipped_hub = equipped_hub
        self.ledger = ledger
        self.last = ReconcileResult()
        self.reconciler = HubReconciler(
            ledger=ledger, drivers_for=no_drivers, access=equipped_hub.access
        )

    async def register(self, hub: Hub) -> None:
        await self.ledger.commit([Insert(hub)], now=datetime.now(UTC))

    async def look(self, id: str = "hub-1", **later: float) -> Hub:
        now = datetime.now(UTC) + timedelta(**later)
        self.last = await self.reconciler.reconcile(ReconcilePass(id=id, now=now))
        await self.ledger.commit(self.last.changes, now=now)
        return await self.hub(id)

    async def hub(self, id: str = "hub-1") -> Hub:
        found = await self.ledger.documents.get(Hub, id)
        assert found is not None
        return found

    async def change(self, id: str = "hub-1", **spec: Any) -> None:
        hub = await self.hub(id)
        about = msgspec.structs.replace(hub.metadata, generation=hub.metadata.generation + 1)
        changed = msgspec.structs.replace(
            hub, metadata=about, spec=msgspec.structs.replace(hub.spec, **spec)
        )
        await self.ledger.commit([Replace(changed)], now=datetime.now(UTC))


async def no_drivers(hub_id: str) -> HubDrivers:
    raise AssertionError("a Kubernetes hub's drivers are its operator's business")


@pytest.fixture
async def watchman(plane: ControlPlane, ledger: Ledger) -> AsyncIterator[Watchman]:
    """Of a hub that has everything but its settings."""
    async with open_equipped_hub(plane) as equipped_hub:
        await equipped_hub.complete()
        hub = equipped_hub.hub()
        await prepare_hub(await equipped_hub.clients.client(hub), hub, equipped_hub.access.crds)
        await equipped_hub.admin.delete(CONFIG_MAPS, hub_names.HUB_CONFIG, SYSTEM)
        yield Watchman(equipped_hub, ledger)


def why(hub: Hub, kind: HubConditionType) -> str:
    found = next(one for one in hub.status.conditions if one.type == kind)
    return found.reason if found.status == ConditionStatus.FALSE else found.status.name


async def test_a_good_hub_is_ready_at_the_first_look_and_knows_who_it_is(
    watchman: Watchman,
) -> None:
    await watchman.register(watchman.equipped_hub.hub())

    hub = await watchman.look()

    assert (hub.status.state, hub.status.message) == (HubState.READY, "")
    assert hub.status.version == f"v{watchman.equipped_hub.plane.version}"
    assert {one.status for one in hub.status.conditions} == {ConditionStatus.TRUE}
    assert any(isinstance(change, WakeWaiting) for change in watchman.last.changes)
    told = await watchman.equipped_hub.admin.get(CONFIG_MAPS, hub_names.HUB_CONFIG, SYSTEM)
    assert json.loads(told["data"][hub_names.HUB_CONFIG_KEY]) == {
        "id": "hub-1",
        "drivers": {"platform": "hosted"},
        "settings": {"hosted.platform": "Agent"},
    }


async def test_nothing_new_is_nothing_written(watchman: Watchman) -> None:
    await watchman.register(watchman.equipped_hub.hub())
    await watchman.look()

    await watchman.look(seconds=1)

    assert watchman.last.changes == []


async def test_changed_settings_reach_the_hub(watchman: Watchman) -> None:
    await watchman.register(watchman.equipped_hub.hub())
    await watchman.look()

    await watchman.change(settings={"hosted.platform": "None"})
    hub = await watchman.look()

    told = await watchman.equipped_hub.admin.get(CONFIG_MAPS, hub_names.HUB_CONFIG, SYSTEM)
    assert json.loads(told["data"][hub_names.HUB_CONFIG_KEY])["settings"] == hub.spec.settings


async def test_a_cluster_is_one_hub_only(watchman: Watchman) -> None:
    await watchman.register(watchman.equipped_hub.hub())
    await watchman.look()
    await watchman.register(watchman.equipped_hub.hub("again"))

    again = await watchman.look("again")

    assert again.status.state == HubState.NOT_READY
    assert why(again, HubConditionType.PREPARED) == "OtherHub"
    assert (await watchman.look()).status.state == HubState.READY


async def test_a_hub_that_is_removed_can_be_registered_under_another_name(
    watchman: Watchman,
) -> None:
    await watchman.register(watchman.equipped_hub.hub())
    hub = await watchman.look()
    client = await watchman.equipped_hub.clients.client(hub)
    about = msgspec.structs.replace(hub.metadata, deletion_timestamp=datetime.now(UTC))
    await watchman.ledger.commit(
        [Archive(msgspec.structs.replace(hub, metadata=about))], now=datetime.now(UTC)
    )

    result = await watchman.reconciler.reconcile(ReconcilePass(id="hub-1", now=datetime.now(UTC)))

    assert result.look_again is None
    assert client.closed.is_set()
    with pytest.raises(NotFound):
        await watchman.equipped_hub.admin.get(CONFIG_MAPS, hub_names.HUB_CONFIG, SYSTEM)
    await watchman.register(watchman.equipped_hub.hub("again"))
    assert (await watchman.look("again")).status.state == HubState.READY


async def test_a_removed_hub_that_does_not_answer_is_let_go_in_the_end(
    watchman: Watchman,
) -> None:
    kubeconfig = json.dumps(
        watchman.equipped_hub.plane.kubeconfig_for({"token": "t"}) | {"clusters": _nowhere()}
    ).encode()
    hub = watchman.equipped_hub.hub("gone", kubeconfig=kubeconfig)
    begun = datetime.now(UTC)
    about = msgspec.structs.replace(hub.metadata, deletion_timestamp=begun)
    await watchman.register(hub)
    hub = await watchman.hub("gone")
    await watchman.ledger.commit([Archive(msgspec.structs.replace(hub, metadata=about))], now=begun)

    tried = await watchman.reconciler.reconcile(ReconcilePass(id="gone", now=begun))
    given_up = await watchman.reconciler.reconcile(
        ReconcilePass(id="gone", now=begun + timedelta(minutes=11))
    )

    assert tried.look_again is not None
    assert given_up.look_again is None


def _nowhere() -> list[Any]:
    return [{"name": "test", "cluster": {"server": "https://127.0.0.1:1"}}]


async def test_an_operator_that_dies_is_noticed_and_so_is_the_next(watchman: Watchman) -> None:
    await watchman.register(watchman.equipped_hub.hub())
    await watchman.look()

    await watchman.equipped_hub.renew_lease(ago=120)
    dead = await watchman.look()
    await watchman.equipped_hub.renew_lease()
    alive = await watchman.look()

    assert dead.status.state == HubState.NOT_READY
    assert why(dead, HubConditionType.OPERATED) == "NoOperator"
    assert alive.status.state == HubState.READY


async def test_who_leaves_orders_to_another_operator_needs_no_lease(watchman: Watchman) -> None:
    await watchman.equipped_hub.admin.delete(LEASES, OPERATOR, SYSTEM)
    settings = {"hosted.platform": "Agent", "kube.operator-lease": "none"}
    await watchman.register(watchman.equipped_hub.hub(settings=settings))

    assert (await watchman.look()).status.state == HubState.READY


async def test_credentials_are_replaced_while_all_runs(watchman: Watchman) -> None:
    good = watchman.equipped_hub.kubeconfig
    wrong = json.dumps(watchman.equipped_hub.plane.kubeconfig_for({"token": "nobody"})).encode()
    await watchman.register(watchman.equipped_hub.hub(kubeconfig=wrong))
    refused = await watchman.look()

    await watchman.change(kubeconfig=good)
    taken = await watchman.look()

    assert refused.status.state == HubState.NOT_READY
    assert why(refused, HubConditionType.AUTHORIZED) == "Unauthorized"
    assert why(refused, HubConditionType.PREPARED) == "UNSPECIFIED", "it was not asked"
    assert taken.status.state == HubState.READY
    shown = msgspec.json.encode(refused.status) + msgspec.json.encode(taken.status)
    assert b"nobody" not in shown
    assert good not in shown


@pytest.fixture(scope="module")
def other_plane() -> Iterator[ControlPlane]:
    with control_plane() as plane:
        yield plane


@pytest.fixture
async def other(other_plane: ControlPlane) -> AsyncIterator[EquippedHub]:
    """Another cluster that would make a good hub, too."""
    async with open_equipped_hub(other_plane) as equipped_hub:
        await equipped_hub.complete()
        hub = equipped_hub.hub()
        await prepare_hub(await equipped_hub.clients.client(hub), hub, equipped_hub.access.crds)
        await equipped_hub.admin.delete(CONFIG_MAPS, hub_names.HUB_CONFIG, SYSTEM)
        yield equipped_hub


async def test_another_cluster_is_not_taken_for_the_hub(
    watchman: Watchman, other: EquippedHub
) -> None:
    await watchman.register(watchman.equipped_hub.hub())
    before = await watchman.look()

    await watchman.change(kubeconfig=other.kubeconfig)
    mistaken = await watchman.look()
    await watchman.change(kubeconfig=await watchman.equipped_hub.service_kubeconfig())
    back = await watchman.look()

    assert before.status.cluster_uid
    assert mistaken.status.state == HubState.UNREACHABLE
    assert why(mistaken, HubConditionType.REACHABLE) == "OtherCluster"
    assert "boatyard hub credentials hub-1" in mistaken.status.conditions[0].remedy
    kept = before.status.cluster_uid, before.status.capacity
    assert (mistaken.status.cluster_uid, mistaken.status.capacity) == kept
    with pytest.raises(NotFound):
        await other.admin.get(CONFIG_MAPS, hub_names.HUB_CONFIG, SYSTEM)
    assert back.status.state == HubState.READY, "new credentials of the same cluster"
    assert back.status.cluster_uid == before.status.cluster_uid


async def test_nothing_is_ordered_from_another_cluster(
    watchman: Watchman, other: EquippedHub
) -> None:
    """Also before anybody has looked at the hub again: its order book asks for itself."""
    await watchman.register(watchman.equipped_hub.hub())
    await watchman.look()
    hubs = HubCache(watchman.ledger)
    hubs.fresh_seconds = 0.0
    books = HubOrderBooks(hubs, watchman.equipped_hub.clients)
    now, spec = datetime.now(UTC), OrderSpec(cluster_name="web", hub="hub-1", generation=1)
    await watchman.change(kubeconfig=other.kubeconfig)
    book = await books.open_book("hub-1")
    assert book is not None

    for asking in (
        book.get("web"),
        book.put("web", tenant="acme", spec=spec, now=now),
        book.request_delete("web", delete_by=now, now=now),
        book.forget("web", tenant="acme", now=now),
        book.get_leftover("web"),
    ):
        with pytest.raises(Unavailable) as raised:
            await asking
        assert raised.value.reason == OTHER_CLUSTER
    with pytest.raises(Unavailable):
        await prepare_hub(await other.clients.client(other.hub()), await watchman.hub(), ())

    assert (await other.admin.list(CLUSTER_ORDERS)).items == []
    await watchman.change(kubeconfig=await watchman.equipped_hub.service_kubeconfig())
    book = await books.open_book("hub-1")
    assert book is not None
    assert await book.get("web") is None


async def test_a_cluster_that_is_another_hub_is_not_remembered(
    watchman: Watchman, other: EquippedHub
) -> None:
    """Who gave the wrong kubeconfig gives the right one."""
    await watchman.register(watchman.equipped_hub.hub())
    await watchman.look()
    await watchman.register(watchman.equipped_hub.hub("again"))
    mistaken = await watchman.look("again")

    await watchman.change("again", kubeconfig=other.kubeconfig)
    hub = await watchman.look("again")

    assert why(mistaken, HubConditionType.PREPARED) == "OtherHub"
    assert mistaken.status.cluster_uid == ""
    assert hub.status.state == HubState.READY
    await other.admin.delete(CONFIG_MAPS, hub_names.HUB_CONFIG, SYSTEM)


async def test_an_api_server_that_goes_and_comes_back(watchman: Watchman) -> None:
    await watchman.register(watchman.equipped_hub.hub())
    before = await watchman.look()
    with watchman.equipped_hub.plane.without("kube-apiserver"):
        away = await watchman.look()
        pause = watchman.last.look_again
        assert pause is not None
        later = await watchman.look(minutes=10)
        patient = watchman.last.look_again
    back = await watchman.look()

    assert away.status.state == HubState.UNREACHABLE
    assert away.status.version == before.status.version, "the last that was seen"
    assert away.status.capacity == before.status.capacity
    assert why(away, HubConditionType.REACHABLE) in ("Unreachable", "Cut")
    assert pause - datetime.now(UTC) < timedelta(seconds=5)
    assert patient is not None
    assert patient - datetime.now(UTC) > timedelta(minutes=10, seconds=CHECK_INTERVAL_SECONDS / 2)
    assert later.status.conditions == away.status.conditions
    assert back.status.state == HubState.READY


async def test_a_hub_that_stays_away_is_told_once(watchman: Watchman) -> None:
    config = kubeconfig("https://127.0.0.1:1")
    await watchman.register(watchman.equipped_hub.hub("away", kubeconfig=config))
    first = await watchman.look("away")

    for _ in range(2 * FAILURE_THRESHOLD):  # some of them are kept back by the gate
        assert (await watchman.look("away")).status == first.status

    await watchman.ledger.events.publish()
    happened = await watchman.ledger.events.list_history([("Hub", "away")], 100)
    assert [row.reason for row in happened if row.reason] == ["Unreachable"]


async def test_hubs_that_never_answer_hold_up_nobody(watchman: Watchman) -> None:
    async with scripted_kube() as silent:
        silent_config = kubeconfig(silent.url)
        for number in range(5):
            await watchman.register(
                watchman.equipped_hub.hub(f"silent-{number}", kubeconfig=silent_config)
            )
        await watchman.register(watchman.equipped_hub.hub())
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(watchman.look(f"silent-{number}")) for number in range(5)]
            await silent.until_asked(5)

            good = await watchman.look()

            assert good.status.state == HubState.READY
            assert not any(task.done() for task in waiting)
        lost = [task.result() for task in waiting]

    assert {hub.status.state for hub in lost} == {HubState.UNREACHABLE}
    assert {why(hub, HubConditionType.REACHABLE) for hub in lost} == {"Timeout"}


async def test_agents_and_nodes_are_counted(watchman: Watchman) -> None:
    await watchman.equipped_hub.add_agents("bm-small", 3)
    await watchman.equipped_hub.add_agents("bm-small", 2, approved=False)
    await watchman.equipped_hub.add_agents("bm-large", 1)
    await watchman.equipped_hub.add_node("worker-1", cpu="64")
    await watchman.register(watchman.equipped_hub.hub())

    hub = await watchman.look()

    assert hub.status.capacity == {"bm-small": 3, "bm-large": 1, "clusters": 3}
    await watchman.equipped_hub.add_agents("bm-large", 2)
    assert (await watchman.look(minutes=1)).status.capacity["bm-large"] == 1, "not at each look"
    assert (await watchman.look(minutes=6)).status.capacity["bm-large"] == 2
    await watchman.equipped_hub.admin.delete(NODES, "worker-1")
    for agent in (await watchman.equipped_hub.admin.list(AGENTS, SYSTEM)).items:
        await watchman.equipped_hub.admin.delete(AGENTS, agent["metadata"]["name"], SYSTEM)

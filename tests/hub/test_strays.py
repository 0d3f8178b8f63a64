"""What no order of the hub stands behind is found by looking outside, and taken back; nothing else is."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import Item, ItemState, OrderPhase, OrderStatus
from boatyard.model.outcome import OwnedObject
from boatyard.operator import orphan_sweep, run
from boatyard.operator.orphan_sweep import OrphanSweeper, SweepResult
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.resources.hubs.owned_items import OwnedObjects
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.twin.calls import LocalTwin
from boatyard.twin.world import TwinWorld
from boatyard.wiring.driver_factory import DriverFactory, LocalServers
from tests.contracts.order_books import NOW, SPEC, KubeBookHarness
from tests.support.kube_hub.api_server import until
from tests.support.kube_hub.environment import KubeHubEnvironment, WallTime
from tests.support.simulated.twin import small_layout

NOTHING = SweepResult(claims=0, orders=0, orphaned_orders=0)


class RemoteHub:
    """A driver that names what a test says is outside."""

    def __init__(self) -> None:
        self.orders: Sequence[str] = ()
        self.away = False

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        if self.away:
            raise Unavailable("away")
        return [OwnedObject(f"{order}/host/compute-0", "host", "r1-n1") for order in self.orders]


class WatchedSweep:
    """A sweeper with its order book, and what it finds outside."""

    def __init__(self, harness: KubeBookHarness, awaited: Collection[str] = ()) -> None:
        self.yonder = RemoteHub()
        self._harness = harness
        site = LocalServers(
            twin_socket="", connect_twin=lambda _: LocalTwin(TwinWorld(small_layout()), WallTime())
        )
        rest = DriverFactory(site).make_drivers("hub-1", {}, {}, client=harness.client)
        drivers = dataclasses.replace(rest, inventory=cast(Any, self.yonder))

        async def made() -> HubDrivers:
            return drivers

        self.sweeper = OrphanSweeper(
            client=harness.client,
            view=harness.view,
            namespace=harness.system,
            drivers=made,
            awaited=awaited,
            check=harness.leader.check_leadership,
            now=lambda: NOW,
        )

    async def sweep(self, *outside: str) -> SweepResult:
        self.yonder.orders = outside
        return await self.sweeper.sweep()

    async def left(self) -> set[str]:
        found = (
            await self._harness.client.list(LEFTOVERS, self._harness.place.shared_namespace)
        ).items
        return {one["spec"]["order"] for one in found}


async def sees_what_is_released_meanwhile(look: WatchedSweep) -> None:
    """It is outside when that is asked, and its order has ended when the orders are asked for."""
    assert await look.sweep("c-1") == dataclasses.replace(NOTHING, orphaned_orders=1)
    assert await look.sweep() == NOTHING
    assert await look.sweep("c-1") == dataclasses.replace(NOTHING, orphaned_orders=1)
    assert await look.left() == set()


async def test_what_is_found_once_is_left_alone(harness: KubeBookHarness) -> None:
    await sees_what_is_released_meanwhile(WatchedSweep(harness))


async def test_a_sweeper_that_acts_at_first_sight_is_noticed(harness: KubeBookHarness) -> None:
    """The planted fault."""
    look = WatchedSweep(harness)
    look.sweeper._suspects = frozenset({"c-1"})
    with pytest.raises(AssertionError):
        await sees_what_is_released_meanwhile(look)


async def test_what_is_found_twice_in_a_row_stands_in_a_leftover(harness: KubeBookHarness) -> None:
    look = WatchedSweep(harness)
    await look.sweep("c-1")
    assert await look.sweep("c-1") == SweepResult(claims=0, orders=1, orphaned_orders=1)
    leftover = await harness.book.get_leftover("c-1")
    assert leftover is not None
    (item,) = leftover.status.items
    assert (item.key, item.kind, item.state) == ("host/compute-0", "host", ItemState.LEAVING)
    assert await look.sweep("c-1") == NOTHING, "it is known from now on"


async def test_where_every_tenant_has_a_namespace_it_stands_in_ours(
    harness: KubeBookHarness,
) -> None:
    """Whose it was nobody knows any more."""
    place = dataclasses.replace(harness.place, shared_namespace="")
    harness.view.order_settings = place
    harness.hub.objects.order_settings = place
    look = WatchedSweep(harness)
    unheard = f"c-{harness.system}"  # all namespaces are looked at: other tests have orders there
    for _ in range(2):
        await look.sweep(unheard)
    (item,) = (await harness.client.list(LEFTOVERS, harness.system)).items
    assert item["spec"]["order"] == unheard
    await harness.hub.objects.delete_leftover(item)


async def test_what_an_order_holds_is_left_alone(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    look = WatchedSweep(harness)
    for _ in range(3):
        assert await look.sweep("c-1") == NOTHING


async def test_an_order_that_lost_its_id_is_known_by_its_name(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    (item,) = (await harness.client.list(CLUSTER_ORDERS, harness.place.shared_namespace)).items
    await harness.client.merge_patch(
        *(CLUSTER_ORDERS, item["metadata"]["name"], {"spec": {"boatyard": None}}),
        harness.place.shared_namespace,
    )
    look = WatchedSweep(harness)
    for _ in range(3):
        assert await look.sweep("c-1") == NOTHING


async def test_what_the_service_places_again_is_waited_for(harness: KubeBookHarness) -> None:
    look = WatchedSweep(harness, awaited={"c-1"})
    for _ in range(3):
        assert (await look.sweep("c-1")).orders == 0
    assert await look.left() == set()


async def leaves_a_hub_alone_that_was_set_back(look: WatchedSweep) -> None:
    many = [f"c-{number}" for number in range(4)]
    for _ in range(3):
        assert (await look.sweep(*many)).orders == 0
    assert await look.left() == set()


async def test_many_missing_orders_are_for_a_person_to_look_at(harness: KubeBookHarness) -> None:
    await leaves_a_hub_alone_that_was_set_back(WatchedSweep(harness))


async def test_a_sweeper_without_a_brake_is_noticed(
    harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault."""
    monkeypatch.setattr(orphan_sweep, "MOST_ORPHANED_ORDERS", 100)
    with pytest.raises(AssertionError):
        await leaves_a_hub_alone_that_was_set_back(WatchedSweep(harness))


@pytest.mark.parametrize(
    "away, outside, left",
    [
        pytest.param(False, (), {"recorded"}, id="nothing is outside"),
        pytest.param(False, ("c-2",), {"recorded", "nobody's"}, id="something of it is outside"),
        pytest.param(True, (), {"recorded", "nobody's"}, id="who knows what is outside"),
    ],
)
async def test_a_claim_is_given_back_once_nothing_is_outside(
    harness: KubeBookHarness, away: bool, outside: tuple[str, ...], left: set[str]
) -> None:
    host = Item(key="host/compute-0", kind="host", state=ItemState.PLANNED)
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await harness.set_status("c-1", OrderStatus(items=(host,)))
    for order, item in (("c-1", "recorded"), ("c-2", "nobody's")):
        await harness.book.claim("hub-1/hosts", [item], f"{order}/host/compute-0", now=NOW)
    look = WatchedSweep(harness)
    look.yonder.away = away
    await look.sweep(*outside)
    found = (await harness.client.list(CLAIMS, harness.system)).items
    assert {one["spec"]["item"] for one in found} == left


async def test_an_order_stripped_while_nobody_led_is_taken_back(
    hub: KubeHubEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.kube_hub.api_server._PATIENCE", 2000)
    await hub.book.put("c-1", tenant="acme", spec=SPEC, now=datetime.now(UTC))
    async with hub.operator():
        await hub.until_phase("c-1", OrderPhase.READY)
    (item,) = (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items
    about = item["metadata"]
    await hub.client.delete(CLUSTER_ORDERS, about["name"], about["namespace"])
    bare = {"metadata": {"finalizers": None}}
    await hub.client.merge_patch(CLUSTER_ORDERS, about["name"], bare, about["namespace"])
    assert await hub.truth() != {}
    monkeypatch.setattr(run, "SWEEP_SECONDS", 0.5)
    async with hub.operator():

        async def empty() -> bool:
            left = (await hub.client.list(LEFTOVERS, hub.place.shared_namespace)).items
            held = (await hub.client.list(CLAIMS, hub.system)).items
            return await hub.truth() == {} and not left and not held

        await until(empty, "nothing of it is left")


async def test_a_driver_with_a_bug_does_not_end_the_lead(
    hub: KubeHubEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.kube_hub.api_server._PATIENCE", 2000)
    asked: list[HubDrivers] = []

    async def look_outside(drivers: HubDrivers) -> OwnedObjects:
        asked.append(drivers)
        raise KeyError("a bug")

    monkeypatch.setattr(orphan_sweep, "list_owned_objects", look_outside)
    monkeypatch.setattr(run, "SWEEP_SECONDS", 0.2)
    async with hub.operator() as office:
        await until(lambda: len(asked) > 1, "it is asked again")
        await hub.book.put("c-1", tenant="acme", spec=SPEC, now=datetime.now(UTC))
        await hub.until_phase("c-1", OrderPhase.READY)
        assert office.operator.leadership.terms == 1

"""Which hub, and what happens when there is none with room."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from boatyard.ledger.changes import Due, Insert
from boatyard.model.generated.osac import (
    ClusterConditionType,
    ClusterState,
    ConditionStatus,
    Hub,
    HubState,
)
from tests.journeys.conftest import NewYard
from tests.support.stage import small_layout
from tests.support.yard import Yard


async def _waits_with(yard: Yard, cluster_id: str) -> str:
    """The reason for which the cluster waits."""
    cluster = await yard.cluster(cluster_id)
    assert cluster.status.state == ClusterState.PROGRESSING
    condition = next(
        c for c in cluster.status.conditions if c.type == ClusterConditionType.PROGRESSING
    )
    assert condition.status == ConditionStatus.FALSE
    assert condition.message
    return condition.reason or ""


async def test_clusters_are_spread_over_the_hubs_and_the_decision_is_kept(yard: Yard) -> None:
    orders = [await yard.order(f"web-{n}", sizes={"compute": 2}) for n in range(4)]
    await yard.turn()

    placed = [(await yard.cluster(order)).status for order in orders]
    assert sorted(status.hub for status in placed) == ["hub-1", "hub-1", "hub-2", "hub-2"]
    for status in placed:
        assert [c.hub for c in status.placement.candidates] == ["hub-1", "hub-2"]
        assert all(c.reason for c in status.placement.candidates)
        assert status.placement.decided_at is not None
    reserved = await yard.ledger.claims.reserved_by_pool()
    assert reserved["hub-1/capacity/bm-small"] == reserved["hub-2/capacity/bm-small"] == 4


async def test_what_fits_nowhere_waits_and_is_placed_as_soon_as_something_is_deleted(
    new_yard: NewYard,
) -> None:
    yard = await new_yard(layout=small_layout(hosts=3, hubs=2))
    first = await yard.order("first", sizes={"compute": 3})
    second = await yard.order("second", sizes={"compute": 2})
    await yard.run_to(first, ClusterState.READY)
    await yard.run_to(second, ClusterState.READY)
    late = await yard.order("late", tenant="globex", sizes={"compute": 3})
    await yard.run(within=timedelta(minutes=10))
    assert await _waits_with(yard, late) == "NoCapacity"
    told = await yard.explain(late)
    assert told.blocked_by == "placement"
    assert [hub.reason for hub in told.hubs] == [
        "has 0 free hosts of type 'bm-small', 3 are needed",
        "has 1 free hosts of type 'bm-small', 3 are needed",
    ]
    tenant = await yard.explain(late, operator=False)
    assert tenant.hubs == ()
    assert "hub-" not in repr(tenant)

    await yard.delete(first)
    freed = yard.clock.now()
    await yard.run_to(late, ClusterState.READY, within=timedelta(seconds=5))
    assert yard.clock.now() - freed < timedelta(seconds=5), "the wake, not the slow look"


async def test_growing_beyond_the_hub_waits_and_is_granted_when_room_is_freed(
    new_yard: NewYard,
) -> None:
    yard = await new_yard(layout=small_layout(hosts=5, hubs=1))
    big = await yard.order("big", sizes={"compute": 2})
    other = await yard.order("other", sizes={"compute": 2})
    await yard.run_to(big, ClusterState.READY)
    await yard.run_to(other, ClusterState.READY)

    await yard.scale(big, compute=4)
    await yard.run(within=timedelta(minutes=10))
    assert await _waits_with(yard, big) == "NoCapacity"
    assert len(await yard.names("node", big)) == 2, "it stays as it is"

    await yard.scale(other, compute=1)
    await yard.run_to(big, ClusterState.READY, within=timedelta(seconds=20))
    assert len(await yard.names("node", big)) == 4


async def test_a_wish_that_cannot_be_granted_can_be_taken_back(new_yard: NewYard) -> None:
    yard = await new_yard(layout=small_layout(hosts=3, hubs=1))
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    await yard.scale(web, compute=9)
    await yard.run(within=timedelta(minutes=1))
    assert await _waits_with(yard, web) == "NoCapacity"

    await yard.scale(web, compute=1)
    await yard.run_to(web, ClusterState.READY, within=timedelta(minutes=1))

    assert len(await yard.names("node", web)) == 1
    await yard.run(within=timedelta(minutes=1))
    assert (await yard.ledger.claims.reservations(web))["hub-1/capacity/bm-small"] == 1


async def test_a_waiting_wish_can_be_changed_before_it_is_placed(new_yard: NewYard) -> None:
    yard = await new_yard(layout=small_layout(hosts=3, hubs=1))
    web = await yard.order("web", sizes={"compute": 9})
    await yard.turn()
    assert await _waits_with(yard, web) == "NoCapacity"
    await yard.scale(web, compute=3)
    await yard.run_to(web, ClusterState.READY, within=timedelta(minutes=1))
    assert len(await yard.names("node", web)) == 3


async def test_a_waiting_cluster_is_deleted_at_once(new_yard: NewYard) -> None:
    yard = await new_yard(layout=small_layout(hosts=1, hubs=1))
    web = await yard.order("web", sizes={"compute": 9})
    await yard.turn()
    await yard.delete(web)
    await yard.turn()
    await yard.assert_nothing_left()


async def test_a_cordoned_hub_takes_nothing_new_and_keeps_what_it_has(yard: Yard) -> None:
    old = await yard.order("old", sizes={"compute": 1})
    await yard.run_to(old, ClusterState.READY)
    for hub in ("hub-1", "hub-2"):
        await yard.change_hub(hub, cordoned=True)
    new = await yard.order("new", sizes={"compute": 1})
    await yard.run(within=timedelta(minutes=6))
    assert await _waits_with(yard, new) == "NoHealthyHub"
    assert await yard.state(old) == ClusterState.READY
    await yard.scale(old, compute=2)
    await yard.turn()
    await yard.run_to(old, ClusterState.READY)

    await yard.change_hub("hub-2", cordoned=False)
    await yard.run_to(new, ClusterState.READY, within=timedelta(seconds=5))
    assert (await yard.cluster(new)).status.hub == "hub-2"


async def test_a_hub_that_gets_more_hosts_takes_who_waits(new_yard: NewYard) -> None:
    yard = await new_yard(layout=small_layout(hosts=3, hubs=1))
    await yard.change_hub("hub-1", capacity={"bm-small": 1})
    web = await yard.order("web", sizes={"compute": 3})
    await yard.turn()
    assert await _waits_with(yard, web) == "NoCapacity"

    await yard.change_hub("hub-1", capacity={"bm-small": 3})
    await yard.run_to(web, ClusterState.READY, within=timedelta(seconds=5))


# What is found on Kubernetes hubs is in tests/kube/test_hub_health.py.
@pytest.mark.forms("embedded")
async def test_a_hub_without_capacity_in_its_settings_is_asked_for_it(new_yard: NewYard) -> None:
    yard = await new_yard(layout=small_layout(hosts=3, hubs=1))
    await yard.change_hub("hub-1", capacity={})
    await yard.turn()
    hub = await yard.ledger.documents.get(Hub, "hub-1")
    assert hub is not None
    assert (hub.status.state, hub.status.capacity) == (HubState.READY, {"bm-small": 3})


async def test_a_pool_that_runs_dry_holds_one_step_and_goes_on_when_it_fills(
    new_yard: NewYard,
) -> None:
    """Capacity counts hosts; VLANs and addresses can still run out on the hub itself."""
    layout = small_layout(hosts=8, hubs=1)
    hub = layout.hubs["hub-1"]
    layout = type(layout)(
        hubs={"hub-1": type(hub)(hosts=hub.hosts, vlans=(100, 100), zone="zone-1.example")}
    )
    yard = await new_yard(layout=layout)
    first = await yard.order("first", sizes={"compute": 1})
    await yard.run_to(first, ClusterState.READY)
    second = await yard.order("second", sizes={"compute": 1})
    await yard.run(within=timedelta(minutes=2))
    told = await yard.explain(second, operator=False)
    assert told.blocked_by == "network"
    assert [step.reason for step in told.steps if step.name == "network"] == ["NoFreeVlan"]

    await yard.delete(first)
    await yard.run_to(second, ClusterState.READY, within=timedelta(minutes=1))


async def test_nothing_is_placed_on_a_hub_that_is_removed_at_that_moment(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = yard.ledger.claims.reserved_by_pool

    async def removed() -> dict[str, int]:
        monkeypatch.undo()
        await yard.forget_hub("hub-1")
        return await look()

    monkeypatch.setattr(yard.ledger.claims, "reserved_by_pool", removed)
    web = await yard.order("web")
    await yard.run_to(web, ClusterState.READY)

    assert (await yard.cluster(web)).status.hub == "hub-2"


async def test_a_hub_that_is_registered_anew_gets_new_drivers(yard: Yard) -> None:
    before = await yard.hubs.drivers_for("hub-1")
    hub = await yard.ledger.documents.get(Hub, "hub-1")
    assert hub is not None
    assert await yard.hubs.drivers_for("hub-1") is before

    await yard.forget_hub("hub-1")
    now = yard.clock.now() + timedelta(minutes=1)
    metadata = msgspec.structs.replace(hub.metadata, creation_timestamp=now)
    anew = msgspec.structs.replace(hub, metadata=metadata)
    await yard.ledger.commit([Insert(anew), Due("Hub", "hub-1", now, hub="hub-1")], now=now)

    assert await yard.hubs.drivers_for("hub-1") is not before

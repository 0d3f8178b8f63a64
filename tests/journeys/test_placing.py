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
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.twin import small_layout


async def _waits_with(environment: SimulatedEnvironment, cluster_id: str) -> str:
    """The reason for which the cluster waits."""
    cluster = await environment.cluster(cluster_id)
    assert cluster.status.state == ClusterState.PROGRESSING
    condition = next(
        c for c in cluster.status.conditions if c.type == ClusterConditionType.PROGRESSING
    )
    assert condition.status == ConditionStatus.FALSE
    assert condition.message
    return condition.reason or ""


async def test_clusters_are_spread_over_the_hubs_and_the_decision_is_kept(
    environment: SimulatedEnvironment,
) -> None:
    orders = [await environment.order(f"web-{n}", sizes={"compute": 2}) for n in range(4)]
    await environment.turn()

    placed = [(await environment.cluster(order)).status for order in orders]
    assert sorted(status.hub for status in placed) == ["hub-1", "hub-1", "hub-2", "hub-2"]
    for status in placed:
        assert [c.hub for c in status.placement.candidates] == ["hub-1", "hub-2"]
        assert all(c.reason for c in status.placement.candidates)
        assert status.placement.decided_at is not None
    reserved = await environment.ledger.claims.sum_reserved_by_pool()
    assert reserved["hub-1/capacity/bm-small"] == reserved["hub-2/capacity/bm-small"] == 4


async def test_what_fits_nowhere_waits_and_is_placed_as_soon_as_something_is_deleted(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hosts=3, hubs=2))
    first = await environment.order("first", sizes={"compute": 3})
    second = await environment.order("second", sizes={"compute": 2})
    await environment.run_to(first, ClusterState.READY)
    await environment.run_to(second, ClusterState.READY)
    late = await environment.order("late", tenant="globex", sizes={"compute": 3})
    await environment.run(within=timedelta(minutes=10))
    assert await _waits_with(environment, late) == "NoCapacity"
    told = await environment.explain(late)
    assert told.blocked_by == "placement"
    assert [hub.reason for hub in told.hubs] == [
        "has 0 free hosts of type 'bm-small', 3 are needed",
        "has 1 free hosts of type 'bm-small', 3 are needed",
    ]
    tenant = await environment.explain(late, operator=False)
    assert tenant.hubs == ()
    assert "hub-" not in repr(tenant)

    await environment.delete(first)
    freed = environment.clock.now()
    await environment.run_to(late, ClusterState.READY, within=timedelta(seconds=5))
    assert environment.clock.now() - freed < timedelta(seconds=5), "the wake, not the slow look"


async def test_growing_beyond_the_hub_waits_and_is_granted_when_room_is_freed(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hosts=5, hubs=1))
    big = await environment.order("big", sizes={"compute": 2})
    other = await environment.order("other", sizes={"compute": 2})
    await environment.run_to(big, ClusterState.READY)
    await environment.run_to(other, ClusterState.READY)

    await environment.scale(big, compute=4)
    await environment.run(within=timedelta(minutes=10))
    assert await _waits_with(environment, big) == "NoCapacity"
    assert len(await environment.names("node", big)) == 2, "it stays as it is"

    await environment.scale(other, compute=1)
    await environment.run_to(big, ClusterState.READY, within=timedelta(seconds=20))
    assert len(await environment.names("node", big)) == 4


async def test_a_wish_that_cannot_be_granted_can_be_taken_back(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hosts=3, hubs=1))
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    await environment.scale(web, compute=9)
    await environment.run(within=timedelta(minutes=1))
    assert await _waits_with(environment, web) == "NoCapacity"

    await environment.scale(web, compute=1)
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=1))

    assert len(await environment.names("node", web)) == 1
    await environment.run(within=timedelta(minutes=1))
    assert (await environment.ledger.claims.list_reservations(web))["hub-1/capacity/bm-small"] == 1


async def test_a_waiting_wish_can_be_changed_before_it_is_placed(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hosts=3, hubs=1))
    web = await environment.order("web", sizes={"compute": 9})
    await environment.turn()
    assert await _waits_with(environment, web) == "NoCapacity"
    await environment.scale(web, compute=3)
    await environment.run_to(web, ClusterState.READY, within=timedelta(minutes=1))
    assert len(await environment.names("node", web)) == 3


async def test_a_waiting_cluster_is_deleted_at_once(new_environment: NewEnvironment) -> None:
    environment = await new_environment(layout=small_layout(hosts=1, hubs=1))
    web = await environment.order("web", sizes={"compute": 9})
    await environment.turn()
    await environment.delete(web)
    await environment.turn()
    await environment.assert_nothing_left()


async def test_a_cordoned_hub_takes_nothing_new_and_keeps_what_it_has(
    environment: SimulatedEnvironment,
) -> None:
    old = await environment.order("old", sizes={"compute": 1})
    await environment.run_to(old, ClusterState.READY)
    for hub in ("hub-1", "hub-2"):
        await environment.change_hub(hub, cordoned=True)
    new = await environment.order("new", sizes={"compute": 1})
    await environment.run(within=timedelta(minutes=6))
    assert await _waits_with(environment, new) == "NoHealthyHub"
    assert await environment.state(old) == ClusterState.READY
    await environment.scale(old, compute=2)
    await environment.turn()
    await environment.run_to(old, ClusterState.READY)

    await environment.change_hub("hub-2", cordoned=False)
    await environment.run_to(new, ClusterState.READY, within=timedelta(seconds=5))
    assert (await environment.cluster(new)).status.hub == "hub-2"


async def test_a_hub_that_gets_more_hosts_takes_who_waits(new_environment: NewEnvironment) -> None:
    environment = await new_environment(layout=small_layout(hosts=3, hubs=1))
    await environment.change_hub("hub-1", capacity={"bm-small": 1})
    web = await environment.order("web", sizes={"compute": 3})
    await environment.turn()
    assert await _waits_with(environment, web) == "NoCapacity"

    await environment.change_hub("hub-1", capacity={"bm-small": 3})
    await environment.run_to(web, ClusterState.READY, within=timedelta(seconds=5))


# What is found on Kubernetes hubs is in tests/kube/test_hub_health.py.
@pytest.mark.forms("embedded")
async def test_a_hub_without_capacity_in_its_settings_is_asked_for_it(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hosts=3, hubs=1))
    await environment.change_hub("hub-1", capacity={})
    await environment.turn()
    hub = await environment.ledger.documents.get(Hub, "hub-1")
    assert hub is not None
    assert (hub.status.state, hub.status.capacity) == (HubState.READY, {"bm-small": 3})


async def test_a_pool_that_runs_dry_holds_one_step_and_goes_on_when_it_fills(
    new_environment: NewEnvironment,
) -> None:
    """Capacity counts hosts; VLANs and addresses can still run out on the hub itself."""
    layout = small_layout(hosts=8, hubs=1)
    hub = layout.hubs["hub-1"]
    layout = type(layout)(
        hubs={"hub-1": type(hub)(hosts=hub.hosts, vlans=(100, 100), zone="zone-1.example")}
    )
    environment = await new_environment(layout=layout)
    first = await environment.order("first", sizes={"compute": 1})
    await environment.run_to(first, ClusterState.READY)
    second = await environment.order("second", sizes={"compute": 1})
    await environment.run(within=timedelta(minutes=2))
    told = await environment.explain(second, operator=False)
    assert told.blocked_by == "network"
    assert [step.reason for step in told.steps if step.name == "network"] == ["NoFreeVlan"]

    await environment.delete(first)
    await environment.run_to(second, ClusterState.READY, within=timedelta(minutes=1))


async def test_nothing_is_placed_on_a_hub_that_is_removed_at_that_moment(
    environment: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = environment.ledger.claims.sum_reserved_by_pool

    async def removed() -> dict[str, int]:
        monkeypatch.undo()
        await environment.forget_hub("hub-1")
        return await look()

    monkeypatch.setattr(environment.ledger.claims, "sum_reserved_by_pool", removed)
    web = await environment.order("web")
    await environment.run_to(web, ClusterState.READY)

    assert (await environment.cluster(web)).status.hub == "hub-2"


async def test_a_hub_that_is_registered_anew_gets_new_drivers(
    environment: SimulatedEnvironment,
) -> None:
    before = await environment.hubs.drivers_for("hub-1")
    hub = await environment.ledger.documents.get(Hub, "hub-1")
    assert hub is not None
    assert await environment.hubs.drivers_for("hub-1") is before

    await environment.forget_hub("hub-1")
    now = environment.clock.now() + timedelta(minutes=1)
    metadata = msgspec.structs.replace(hub.metadata, creation_timestamp=now)
    anew = msgspec.structs.replace(hub, metadata=metadata)
    await environment.ledger.commit([Insert(anew), Due("Hub", "hub-1", now, hub="hub-1")], now=now)

    assert await environment.hubs.drivers_for("hub-1") is not before

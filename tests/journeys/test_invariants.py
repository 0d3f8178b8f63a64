"""The invariant checker finds each breach that is planted behind Boatyard's back, and none where there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import msgspec
import pytest

from boatyard.ledger.changes import Due, Insert
from boatyard.model.generated.osac import ClusterState
from boatyard.proof import invariants
from boatyard.twin.calls import LocalTwin
from boatyard.twin.hub import Thing
from tests.support.simulated.environment import SimulatedEnvironment, open_environment

Plant = Callable[["Planted"], Awaitable[None]]


class Planted:
    """An environment with one cluster that is READY, and ways past every guard."""

    def __init__(
        self, environment: SimulatedEnvironment, database_url: str, cluster_id: str
    ) -> None:
        self.environment = environment
        self.url = database_url
        self.id = cluster_id

    async def sql(self, *statements: str) -> None:
        connection = await asyncpg.connect(self.url)
        try:
            for statement in statements:
                await connection.execute(statement.replace("ID", self.id))
        finally:
            await connection.close()

    def make(self, kind: str, key: str, name: str, hub: str = "hub-1") -> Thing:
        state = self.environment.world.state
        return state.make(Thing(kind, hub, key, name), self.environment.clock.now().timestamp())

    def remove(self, thing: Thing) -> None:
        self.environment.world.state.remove(thing, self.environment.clock.now().timestamp())

    def name_of(self, kind: str, item: str) -> str:
        things = self.environment.world.state.things(f"{self.id}/{item}")
        return next(thing.name for thing in things if thing.kind == kind)

    async def delete(self) -> None:
        await self.environment.delete(self.id)
        await self.environment.run_until_gone(self.id)

    async def breaches(self) -> list[invariants.Breach]:
        twin = LocalTwin(self.environment.world, self.environment.clock)
        return await invariants.check_invariants(
            self.environment.ledger, twin, acknowledged=self.environment.acknowledged
        )


@pytest.fixture
async def planted(database_url: str) -> AsyncIterator[Planted]:
    async with open_environment(database_url) as environment:
        cluster_id = await environment.order("web")
        await environment.run_to(cluster_id, ClusterState.READY)
        yield Planted(environment, database_url, cluster_id)


async def test_a_healthy_yard_has_no_breach(planted: Planted) -> None:
    assert await planted.breaches() == []

    await planted.delete()

    assert await planted.breaches() == []


# --- the breaches --------------------------------------------------------------------------------


async def two_hold_a_vlan(planted: Planted) -> None:
    planted.make("network", "stranger/l2", planted.name_of("network", "l2"))


async def two_held_an_address_once(planted: Planted) -> None:
    name = planted.name_of("floating", "api-address")
    planted.remove(planted.make("floating", "stranger/api-address", name))


async def two_have_claimed_a_host(planted: Planted) -> None:
    await planted.sql(
        "alter table claims drop constraint claims_pkey",
        "insert into claims (pool, item, owner, tenant, at) "
        "select pool, item, 'ID/host/compute-9', tenant, at from claims where owner = 'ID/host/compute-0'",
    )


async def a_held_host_is_not_claimed(planted: Planted) -> None:
    await planted.sql("delete from claims where owner = 'ID/host/compute-0'")


async def another_has_claimed_a_held_subnet(planted: Planted) -> None:
    await planted.sql("update claims set owner = 'stranger/l3' where owner = 'ID/l3'")


async def a_claim_is_for_nothing_recorded(planted: Planted) -> None:
    await planted.sql(
        "update claims set owner = 'ID/host/compute-7' where owner = 'ID/host/compute-0'"
    )


async def more_is_reserved_than_there_is(planted: Planted) -> None:
    await planted.sql(
        "update reservations set amount = 9 where pool = 'hub-1/capacity/bm-small'",
        "update pools set used = 9 where pool = 'hub-1/capacity/bm-small'",
    )


async def a_pool_is_miscounted(planted: Planted) -> None:
    await planted.sql("update pools set used = used - 1 where pool = 'hub-1/capacity/bm-small'")


async def more_was_promised_once(planted: Planted) -> None:
    """Placed without a reservation, which the log alone can tell."""
    cluster = await planted.environment.cluster(planted.id)
    twice = msgspec.structs.replace(
        cluster,
        id="twice",
        metadata=msgspec.structs.replace(cluster.metadata, name="twice", version=0),
        spec=msgspec.structs.replace(
            cluster.spec,
            node_sets={
                name: msgspec.structs.replace(node_set, size=6)
                for name, node_set in cluster.spec.node_sets.items()
            },
        ),
    )
    now = planted.environment.clock.now()
    await planted.environment.ledger.commit([Insert(twice), Due("Cluster", "twice", now)], now=now)


async def a_cluster_is_forgotten(planted: Planted) -> None:
    await planted.sql("delete from work where kind = 'Cluster'")


async def an_order_is_forgotten(planted: Planted) -> None:
    await planted.sql("delete from work where kind = 'Order'")


async def a_write_is_lost(planted: Planted) -> None:
    planted.environment.acknowledged.append(("Cluster", planted.id, 99))


async def an_event_is_missing(planted: Planted) -> None:
    await planted.environment.ledger.events.publish()
    await planted.sql("delete from events where seq = 5")


async def an_object_goes_back(planted: Planted) -> None:
    await planted.environment.ledger.events.publish()
    await planted.sql(
        "update events set data = jsonb_set(data, '{metadata,version}', '0') where seq = "
        "(select max(seq) from events where kind = 'Cluster' and id = 'ID')"
    )


async def a_change_has_no_event(planted: Planted) -> None:
    await planted.sql("update documents set version = version + 1 where kind = 'Order'")


async def something_outlives_its_order(planted: Planted) -> None:
    await planted.delete()
    planted.make("record", f"{planted.id}/api-name", "api.web.example")


async def a_claim_outlives_its_order(planted: Planted) -> None:
    await planted.delete()
    await planted.sql(
        "insert into claims (pool, item, owner, tenant, at) "
        "values ('hub-1/vlans', '100', 'ID/l2', '', now())"
    )


async def room_outlives_its_cluster(planted: Planted) -> None:
    await planted.delete()
    await planted.sql(
        "insert into reservations (pool, owner, amount) values ('hub-1/capacity/bm-small', 'ID', 1)",
        "update pools set used = used + 1 where pool = 'hub-1/capacity/bm-small'",
    )


async def a_receipt_is_false(planted: Planted) -> None:
    await planted.delete()
    line = """{"status": {"phase": 5, "receipt": {"left": [{"key": "l2", "kind": "l2"}]}}, "id": "ID"}"""
    await planted.sql(f"update archive set data = '{line}' where kind = 'Order'")


async def what_is_present_is_not_there(planted: Planted) -> None:
    state = planted.environment.world.state
    planted.remove(next(thing for thing in state.things(f"{planted.id}/api-name")))


async def something_is_there_twice(planted: Planted) -> None:
    key = f"{planted.id}/host/compute-0"
    free = planted.environment.world.state.hubs["hub-1"].free_hosts["bm-small"][0]
    planted.make("host", key, free)


async def something_was_there_twice_once(planted: Planted) -> None:
    key = f"{planted.id}/host/compute-0"
    free = planted.environment.world.state.hubs["hub-1"].free_hosts["bm-small"][0]
    planted.remove(planted.make("host", key, free))


async def something_is_there_and_not_recorded(planted: Planted) -> None:
    planted.make("record", f"{planted.id}/another-name", "another.example")


@pytest.mark.parametrize(
    "invariant, plant",
    [
        pytest.param(invariant, plant, id=f"{invariant} {plant.__name__.replace('_', ' ')}")
        for invariant, plants in {
            "I1": (
                two_hold_a_vlan,
                two_held_an_address_once,
                two_have_claimed_a_host,
                a_held_host_is_not_claimed,
                another_has_claimed_a_held_subnet,
                a_claim_is_for_nothing_recorded,
            ),
            "I2": (more_is_reserved_than_there_is, a_pool_is_miscounted, more_was_promised_once),
            "I3": (a_cluster_is_forgotten, an_order_is_forgotten),
            "I4": (a_write_is_lost,),
            "I6": (an_event_is_missing, an_object_goes_back, a_change_has_no_event),
            "I7": (
                something_outlives_its_order,
                a_claim_outlives_its_order,
                room_outlives_its_cluster,
                a_receipt_is_false,
            ),
            "I8": (
                what_is_present_is_not_there,
                something_is_there_twice,
                something_was_there_twice_once,
                something_is_there_and_not_recorded,
            ),
        }.items()
        for plant in plants
    ],
)
async def test_a_planted_breach_is_reported(invariant: str, plant: Plant, planted: Planted) -> None:
    await plant(planted)

    found = await planted.breaches()

    assert invariant in {breach.invariant for breach in found}, found

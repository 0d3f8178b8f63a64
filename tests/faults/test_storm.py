"""Two operators under load, and the leader killed at random: in the end all is as if nobody had died.

An order that three leaders held as they died is set aside: whoever looks after the hub asks for it again, and so does
this test. On a full machine a leader may live for less than a turn lasts.

It lasts 40 seconds, and ten minutes under `make soak`.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from typing import Any

import pytest

from boatyard.model.generated.boatyard import OrderPhase
from boatyard.orderbook.kube.claims import get_claim_owner, get_order_id
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS
from boatyard.orderbook.kube.mapping import from_kube
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.fault_environment import FaultyHubEnvironment, kill
from tests.support.processes import Program
from tests.support.soak import soak

SECONDS = soak(short=30.0, long=600.0)
SEED = int(os.environ.get("BOATYARD_STORM_SEED", "20"))
ORDERS = 12
FOLLOWED = 15.0  # seconds from a leader's death until another leads
PATIENT = 240.0


@pytest.mark.timeout(600 + SECONDS)
async def test_the_leader_is_killed_at_random_under_load(plane: ControlPlane) -> None:
    async with FaultyHubEnvironment.open_faulty(plane, hosts=4 * ORDERS) as hub:
        replicas = [await hub.start(direct=True), await hub.start(direct=True)]
        end = time.monotonic() + SECONDS
        async with asyncio.TaskGroup() as tasks:
            killing = tasks.create_task(kills(hub, replicas, end, random.Random(SEED)))
            loads = [
                tasks.create_task(load(hub, number, end, random.Random(SEED + number)))
                for number in range(ORDERS)
            ]
            looking = tasks.create_task(ask_again(hub))
            await asyncio.wait([killing, *loads])
            looking.cancel()
        followed = killing.result()
        standing = {id: size for one in loads for id, size in one.result()[1].items()}
        ended = [id for one in loads for id in one.result()[0]]
        print(
            f"{len(followed)} leaders killed, followed after "
            f"{', '.join(f'{one:.1f}' for one in followed)} s; "
            f"{len(ended)} orders ended, {len(standing)} stand"
        )
        assert len(followed) >= SECONDS // 30
        assert max(followed) <= FOLLOWED
        assert await wrong(hub, standing, ended) == []
        for order_id in standing:
            await hub.delete(order_id)
        for order_id in standing:
            await hub.until_deleted(order_id, seconds=PATIENT)
        await hub.until_nothing_is_left()
        assert await hub.doubled(*standing) == []


async def kills(
    hub: FaultyHubEnvironment, replicas: list[Program], end: float, chance: random.Random
) -> list[float]:
    """Kills whoever leads, again and again, and starts another each time; how long each was missed."""
    followed = []
    while time.monotonic() < end:
        await hub.until_leading(*replicas)
        await asyncio.sleep(chance.uniform(0.5, 6.0))
        pid = await hub.leader_pid()
        leader = next((one for one in replicas if one.pid == pid), None)
        if leader is None:
            continue
        replicas.remove(leader)
        kill(leader)
        followed.append(await hub.until_leading(*replicas, seconds=60))
        replicas.append(await hub.start(direct=True))
    return followed


async def ask_again(hub: FaultyHubEnvironment) -> None:
    """What an operator does about orders that were set aside."""
    while True:
        for item in (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items:
            order = from_kube.to_order(item, hub.place)
            if any(step.reason == "WorkerDied" for step in order.status.steps):
                print(f"{order.id} was set aside")
                await hub.book.request_retry(order.id, order.status.retried + 1)
        await asyncio.sleep(2.0)


async def load(
    hub: FaultyHubEnvironment, number: int, end: float, chance: random.Random
) -> tuple[list[str], dict[str, int]]:
    """Orders come, grow, shrink and go until the end; those that ended, and the size of one that stays."""
    ended = []
    for turn in range(10_000):
        order_id = f"c-{number}-{turn}"
        size, generation = chance.randint(0, 2), 1
        await hub.put(order_id, size)
        if chance.random() < 0.8:
            await hub.until_ready(order_id, size, seconds=PATIENT)
        while chance.random() < 0.6 and time.monotonic() < end:
            size, generation = chance.randint(0, 3), generation + 1
            await hub.put(order_id, size, generation)
            if chance.random() < 0.8:
                await hub.until_ready(order_id, size, generation, seconds=PATIENT)
        if time.monotonic() >= end:
            await hub.until_ready(order_id, size, generation, seconds=PATIENT)
            return ended, {order_id: size}
        await hub.delete(order_id)
        await hub.until_deleted(order_id, seconds=PATIENT)
        ended.append(order_id)
    raise AssertionError("a storm without an end")


async def wrong(hub: FaultyHubEnvironment, standing: dict[str, int], ended: list[str]) -> list[Any]:
    """Everything that is not as it is where nobody was killed."""
    found: list[Any] = [("doubled", row) for row in await hub.doubled(*standing, *ended)]
    found += [("claimed twice", one) for one in await hub.claims_held_twice()]
    there = (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items
    if len(there) != len(standing):
        found.append(("orders", len(there), "instead of", len(standing)))
    for order_id in standing:
        if (phase := (await hub.order(order_id)).status.phase) != OrderPhase.READY:
            found.append((order_id, phase))
    truth = await hub.truth()
    kept = {
        key.partition("/")[0] for kinds in truth.values() for keys in kinds.values() for key in keys
    }
    found += [("left outside of", one) for one in kept - set(standing)]
    return found + await claims_beyond(hub, standing)


async def claims_beyond(hub: FaultyHubEnvironment, standing: dict[str, int]) -> list[Any]:
    """Claims of orders that are gone, and other numbers of claims than an order of that size has."""
    held: dict[str, Counter[str]] = {}
    for claim in (await hub.client.list(CLAIMS, hub.system)).items:
        held.setdefault(get_order_id(get_claim_owner(claim)), Counter())[claim["spec"]["pool"]] += 1
    found: list[Any] = [("claims of", one) for one in held.keys() - standing.keys()]
    by_size: dict[int, Counter[str]] = {}
    for order_id, size in sorted(standing.items()):
        mine = held.get(order_id, Counter())
        if mine != by_size.setdefault(size, mine):
            found.append((order_id, size, mine, by_size[size]))
    return found


@pytest.mark.timeout(200)
async def test_what_a_storm_looks_for_is_seen(hub: FaultyHubEnvironment) -> None:
    """Planted by hand: a claim of nobody, one too many, and a thing made again after it was taken away."""
    await hub.start(direct=True)
    standing = {"c-1": 1, "c-2": 1}
    for order_id in standing:
        await hub.put(order_id, 1)
    for order_id in standing:
        await hub.until_ready(order_id, 1)
    assert await wrong(hub, standing, []) == []
    (one, *_) = [
        claim
        for claim in (await hub.client.list(CLAIMS, hub.system)).items
        if get_order_id(get_claim_owner(claim)) == "c-1"
    ]
    for name, owner in (("claim-a", get_claim_owner(one)), ("claim-b", "c-9/host/compute-0")):
        spec = {**one["spec"], "item": name, "owner": owner}
        await hub.client.create(CLAIMS, {"metadata": {"name": name}, "spec": spec}, hub.system)
    said = str(await wrong(hub, standing, []))
    assert "claimed twice" in said
    assert "'claims of', 'c-9'" in said
    del standing["c-2"]
    said = str(await wrong(hub, standing, []))
    assert "'left outside of', 'c-2'" in said

"""The leader dies at every step of an order's way: another goes on, nothing is done twice, nothing is left.

Every place is taken by `make soak`, and each twelfth otherwise. What comes last on an
order's way, the removal of its finalizer and what is around it, is always taken.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from boatyard.orderbook.kube.kinds import CLAIMS
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.worker_process import ProofWorker
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.fault_environment import FaultyHubEnvironment
from tests.support.kube_hub.killed_operator import start_operator
from tests.support.soak import soak

EVERY = soak(short=12, long=1)
LANES = 5
LAST = ("PATCH clusterorders", "DELETE claims", "DELETE secrets")
QUICK = dict.fromkeys(("host", "-host", "cluster", "-cluster", "node", "-node"), 0.1)


@dataclass(frozen=True)
class LifeStage:
    name: str
    ask: Callable[[FaultyHubEnvironment, str], Awaitable[None]]
    done: Callable[[FaultyHubEnvironment, str], Awaitable[float]]


async def _gone(hub: FaultyHubEnvironment, order_id: str) -> float:
    took = await hub.until_deleted(order_id)
    await hub.until_nothing_is_left()
    return took


STAGES = (
    LifeStage("create", lambda hub, id: hub.put(id, 1), lambda hub, id: hub.until_ready(id, 1)),
    LifeStage("grow", lambda hub, id: hub.put(id, 2, 2), lambda hub, id: hub.until_ready(id, 2, 2)),
    LifeStage(
        "shrink", lambda hub, id: hub.put(id, 1, 3), lambda hub, id: hub.until_ready(id, 1, 3)
    ),
    LifeStage("delete", lambda hub, id: hub.delete(id), _gone),
)
Ends = Mapping[str, Any]  # by stage


@dataclass
class TwoOperators:
    """A hub with two operators; whoever dies is replaced."""

    hub: FaultyHubEnvironment
    plant: str = ""
    crew: list[ProofWorker] = field(default_factory=list)

    async def fill(self) -> None:
        self.crew = [member for member in self.crew if not member.ended.is_set()]
        while len(self.crew) < 2:
            hub = self.hub
            way = (hub.credentials, hub.system, hub.socket, hub.folder)
            self.crew.append(await start_operator(*way, plant=self.plant))

    async def end(self) -> None:
        for member in self.crew:
            member.kill()

    async def live(
        self, order_id: str, targets: Mapping[str, KillPoint], stages: Sequence[LifeStage] = STAGES
    ) -> tuple[Ends, set[KillPoint]]:
        """One life with a death in each stage named; what each stage ended with, and the places reached."""
        ends, reached = {}, set()
        for stage in stages:
            await self.fill()
            target = targets.get(stage.name)
            for member in self.crew:
                await member.set_target(target)
            await stage.ask(self.hub, order_id)
            if target is not None and await self.dies(stage, order_id):
                reached.add(target)
            await stage.done(self.hub, order_id)
            ends[stage.name] = await end_state(self.hub, order_id)
        return ends, reached

    async def dies(self, stage: LifeStage, order_id: str) -> bool:
        """Whether one of them came to the place. The other does not die of it too."""
        deaths = [asyncio.create_task(member.ended.wait()) for member in self.crew]
        done = asyncio.create_task(stage.done(self.hub, order_id))
        await asyncio.wait((*deaths, done), return_when=asyncio.FIRST_COMPLETED)
        for task in (*deaths, done):
            task.cancel()
        await asyncio.gather(*deaths, done, return_exceptions=True)
        for member in self.crew:
            await member.clear_target()
        return any(member.ended.is_set() for member in self.crew)

    async def passed(self, order_id: str) -> dict[str, list[KillPoint]]:
        """The places of an undisturbed life, by stage."""
        found = {}
        for stage in STAGES:
            await self.fill()
            for member in self.crew:
                await member.set_target(None)
            await stage.ask(self.hub, order_id)
            await stage.done(self.hub, order_id)
            found[stage.name] = [one for member in self.crew for one in await member.list_passed()]
        return found


async def end_state(hub: FaultyHubEnvironment, order_id: str) -> Any:
    claims = (await hub.client.list(CLAIMS, hub.system)).items
    outside = await hub.outside.call("twin.effects", prefix=f"{order_id}/")
    return {
        "claims": Counter(claim["spec"]["pool"] for claim in claims),
        "outside": sorted(
            (row["kind"], row["key"].partition("/")[2], row["applied"], row["removed"])
            for row in outside
        ),
    }


def dealt(points: Mapping[str, list[KillPoint]], every: int) -> list[dict[str, KillPoint]]:
    """Lives with one death in each of their stages, until every place chosen has been one."""
    chosen = {
        stage: [
            one
            for number, one in enumerate(found)
            if number % every == 0 or (stage == "delete" and _is_last(one))
        ]
        for stage, found in points.items()
    }
    return [
        {stage: found[number] for stage, found in chosen.items() if number < len(found)}
        for number in range(max(map(len, chosen.values())))
    ]


def _is_last(point: KillPoint) -> bool:
    return point.occurrence == 1 and point.label.endswith(LAST)


def different(expected: Ends, found: Ends) -> list[str]:
    return [
        f"{stage}: {part} is {found[stage][part]}, not {expected[stage][part]}"
        for stage in expected
        for part in expected[stage]
        if found[stage][part] != expected[stage][part]
    ]


@pytest.mark.timeout(1800)
async def test_the_leader_dies_at_every_step(plane: ControlPlane) -> None:
    async with FaultyHubEnvironment.open_faulty(plane, delays=QUICK) as hub:
        lane = TwoOperators(hub)
        points = await lane.passed("first")
        sorts = {one.category for several in points.values() for one in several}
        assert sorts == {"effect", "write"}, "not everything that is done is a place to die"
        expected, _ = await lane.live("second", {})
        await lane.end()
    lives = dealt(points, EVERY)
    wanted = Counter((stage, point) for life in lives for stage, point in life.items())
    queue = list(enumerate(lives))
    wrong: list[str] = []
    came: list[tuple[str, KillPoint]] = []

    async def work() -> None:
        async with FaultyHubEnvironment.open_faulty(plane, delays=QUICK) as hub:
            lane = TwoOperators(hub)
            while queue:
                number, targets = queue.pop(0)
                ends, reached = await lane.live(f"c-{number}", targets)
                came.extend(one for one in targets.items() if one[1] in reached)
                where = ", ".join(f"{stage}: {point}" for stage, point in targets.items())
                wrong.extend(f"{one} ({where})" for one in different(expected, ends))
            await lane.end()

    await asyncio.gather(*(work() for _ in range(min(LANES, len(lives)))))
    print(f"{len(came)} deaths at {sum(wanted.values())} places, {len(lives)} lives")
    assert wrong == []
    missed = wanted - Counter(came)
    # How often a status is written depends on time; everything else comes in every life.
    assert {point.label for _, point in missed if "status" not in point.label} == set()
    assert len(came) >= 0.7 * sum(wanted.values())


@pytest.mark.timeout(300)
async def test_a_claim_that_only_one_process_knows_is_found(plane: ControlPlane) -> None:
    """The planted fault: whose claim it is changes with the process."""
    create = STAGES[:1]
    death = {"create": KillPoint("after:write:POST claims", 2)}
    async with FaultyHubEnvironment.open_faulty(plane, delays=QUICK) as hub:
        lane = TwoOperators(hub)
        expected, _ = await lane.live("first", {}, create)
        await lane.end()
    async with FaultyHubEnvironment.open_faulty(plane, delays=QUICK) as hub:
        lane = TwoOperators(hub, plant="tests.support.planted_bugs.operator:claims_of_a_process")
        found, reached = await lane.live("second", death, create)
        await lane.end()
    assert reached == set(death.values())
    assert [one for one in different(expected, found) if "claims" in one] != []

"""The keeper of real clusters dies too: at rest, on the verge of what it is asked for, amid it, and after it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boatyard.model.errors import Unavailable
from boatyard.proof.compare import differences
from boatyard.proof.environment import Lane, is_ready
from boatyard.proof.journeys import Baseline, Found, Life, Stage
from boatyard.proof.kill_points import Point
from boatyard.proof.scenarios import Scenario
from boatyard.proof.verdict import KILLED_KEEPER


@dataclass(frozen=True)
class Blow:
    """When the keeper dies: as a worker stands still at the point, or so many seconds later, while it goes on."""

    point: Point
    seconds: float | None = None

    def __str__(self) -> str:
        return str(self.point) if self.seconds is None else f"{self.point} + {self.seconds:g} s"


def before(verb: str) -> Blow:
    return Blow(Point(f"before:effect:keeper.{verb}"))


def amid(verb: str, seconds: float = 0.0) -> Blow:
    return Blow(Point(f"before:effect:keeper.{verb}"), seconds)


def after(verb: str) -> Blow:
    return Blow(Point(f"after:effect:keeper.{verb}"))


def killed_keeper(
    life: Life, blows: Mapping[str, Blow], *, at_rest: Sequence[str] = ()
) -> Scenario:
    """One life with one death of the keeper in each stage named, and one more after those in `at_rest`."""

    async def run(lane: Lane, cluster_id: str, baseline: Baseline) -> Found:
        found = Found()
        for stage in life.stages:
            where = stage.name
            if stage.name in blows:
                blow = blows[stage.name]
                where = f"{stage.name}, keeper killed {blow}"
                await _strike(lane, cluster_id, stage, blow)
                found.killed.append((KILLED_KEEPER, blow.point))
            else:
                await stage.ask(lane, cluster_id)
            await lane.reach(cluster_id, stage.done)
            expected = baseline.end(stage, life)
            found.differ(where, differences(expected, await lane.settled_end(cluster_id, expected)))
            if stage.name in at_rest:
                await _strike_at_rest(lane, cluster_id)
                found.killed.append((KILLED_KEEPER, Point(f"after:rest:{stage.name}")))
                end = await lane.settled_end(cluster_id, expected)
                found.differ(f"{stage.name}, keeper killed at rest", differences(expected, end))
        found.differ(KILLED_KEEPER, await lane.breaches())
        await lane.open_for_business()  # somebody may have found the hub without its keeper
        return found

    return Scenario(run, life)


async def _strike(lane: Lane, cluster_id: str, stage: Stage, blow: Blow) -> None:
    member = await lane.worker()
    # Who goes on is sent a signal that changes nothing.
    await member.begin(blow.point, signal.SIGSTOP if blow.seconds is None else signal.SIGCONT)
    member.reached.clear()
    await stage.ask(lane, cluster_id)
    try:
        async with asyncio.timeout(lane.pace.patience):
            await member.reached.wait()
    except TimeoutError as error:
        raise Unavailable(f"no worker came to {blow.point}") from error
    if blow.seconds:
        await asyncio.sleep(blow.seconds)
    await lane.keeper.kill()
    await lane.keeper.start()
    member.signal(signal.SIGCONT)


async def _strike_at_rest(lane: Lane, cluster_id: str) -> None:
    """Nobody notices, whether they look while there is no keeper or when there is one again."""
    await lane.keeper.kill()
    await lane.poke("Order", cluster_id)
    await lane.reach(cluster_id, is_ready)
    await lane.keeper.start()
    await lane.keeper.wait_until_it_sees(f"{cluster_id}/cluster", lane.pace.patience)
    await lane.poke("Order", cluster_id)
    await lane.reach(cluster_id, is_ready)

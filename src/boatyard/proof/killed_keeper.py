"""Kills the keeper of real clusters: at rest, and before, during and after what it is asked for."""

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
    """When the keeper is killed: while a worker is stopped at the point, or `seconds` after it passed the point."""

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
    life: Life, kills: Mapping[str, Blow], *, at_rest: Sequence[str] = ()
) -> Scenario:
    """A life in which the keeper is killed once in each stage of `kills`, and again after each stage of `at_rest`."""

    async def run(environment: Lane, cluster_id: str, baseline: Baseline) -> Found:
        result = Found()
        for stage in life.stages:
            where = stage.name
            if stage.name in kills:
                kill = kills[stage.name]
                where = f"{stage.name}, keeper killed {kill}"
                await _strike(environment, cluster_id, stage, kill)
                result.killed.append((KILLED_KEEPER, kill.point))
            else:
                await stage.ask(environment, cluster_id)
            await environment.reach(cluster_id, stage.done)
            expected = baseline.end(stage, life)
            result.differ(
                where, differences(expected, await environment.settled_end(cluster_id, expected))
            )
            if stage.name in at_rest:
                await _strike_at_rest(environment, cluster_id)
                result.killed.append((KILLED_KEEPER, Point(f"after:rest:{stage.name}")))
                end = await environment.settled_end(cluster_id, expected)
                result.differ(f"{stage.name}, keeper killed at rest", differences(expected, end))
        result.differ(KILLED_KEEPER, await environment.breaches())
        await environment.open_for_business()  # a worker may have found the hub without its keeper
        return result

    return Scenario(run, life)


async def _strike(environment: Lane, cluster_id: str, stage: Stage, kill: Blow) -> None:
    worker = await environment.worker()
    # A worker that goes on sends itself a signal that changes nothing.
    await worker.begin(kill.point, signal.SIGSTOP if kill.seconds is None else signal.SIGCONT)
    worker.reached.clear()
    await stage.ask(environment, cluster_id)
    try:
        async with asyncio.timeout(environment.pace.patience):
            await worker.reached.wait()
    except TimeoutError as error:
        raise Unavailable(f"no worker came to {kill.point}") from error
    if kill.seconds:
        await asyncio.sleep(kill.seconds)
    await environment.keeper.kill()
    await environment.keeper.start()
    worker.signal(signal.SIGCONT)


async def _strike_at_rest(environment: Lane, cluster_id: str) -> None:
    """Kills the keeper of a ready cluster. The cluster stays ready without a keeper and with the next one."""
    await environment.keeper.kill()
    await environment.poke("Order", cluster_id)
    await environment.reach(cluster_id, is_ready)
    await environment.keeper.start()
    await environment.keeper.wait_until_it_sees(f"{cluster_id}/cluster", environment.pace.patience)
    await environment.poke("Order", cluster_id)
    await environment.reach(cluster_id, is_ready)

"""Kills the keeper of real clusters: at rest, and before, during and after what it is asked for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boatyard.model.errors import Unavailable
from boatyard.proof.end_state import find_differences
from boatyard.proof.environment import ProofEnvironment, is_ready
from boatyard.proof.journeys import Baseline, ClusterLife, JourneyResult, JourneyStage
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.scenarios import Scenario
from boatyard.proof.verdict import KILLED_KEEPER


@dataclass(frozen=True)
class KeeperKill:
    """When the keeper is killed: while a worker is stopped at the point, or `seconds` after it passed the point."""

    point: KillPoint
    seconds: float | None = None

    def __str__(self) -> str:
        return str(self.point) if self.seconds is None else f"{self.point} + {self.seconds:g} s"


def kill_before(verb: str) -> KeeperKill:
    return KeeperKill(KillPoint(f"before:effect:keeper.{verb}"))


def kill_during(verb: str, seconds: float = 0.0) -> KeeperKill:
    return KeeperKill(KillPoint(f"before:effect:keeper.{verb}"), seconds)


def kill_after(verb: str) -> KeeperKill:
    return KeeperKill(KillPoint(f"after:effect:keeper.{verb}"))


def make_killed_keeper(
    life: ClusterLife, kills: Mapping[str, KeeperKill], *, at_rest: Sequence[str] = ()
) -> Scenario:
    """A life in which the keeper is killed once in each stage of `kills`, and again after each stage of `at_rest`."""

    async def run(
        environment: ProofEnvironment, cluster_id: str, baseline: Baseline
    ) -> JourneyResult:
        result = JourneyResult()
        for stage in life.stages:
            where = stage.name
            if stage.name in kills:
                kill = kills[stage.name]
                where = f"{stage.name}, keeper killed {kill}"
                await _kill_in_stage(environment, cluster_id, stage, kill)
                result.killed.append((KILLED_KEEPER, kill.point))
            else:
                await stage.request(environment, cluster_id)
            await environment.wait_until(cluster_id, stage.is_done)
            expected = baseline.find_end(stage, life)
            result.add_differences(
                where,
                find_differences(
                    expected, await environment.read_settled_end(cluster_id, expected)
                ),
            )
            if stage.name in at_rest:
                await _kill_at_rest(environment, cluster_id)
                result.killed.append((KILLED_KEEPER, KillPoint(f"after:rest:{stage.name}")))
                end = await environment.read_settled_end(cluster_id, expected)
                result.add_differences(
                    f"{stage.name}, keeper killed at rest", find_differences(expected, end)
                )
        result.add_differences(KILLED_KEEPER, await environment.find_breaches())
        await (
            environment.wait_until_hubs_ready()
        )  # a worker may have found the hub without its keeper
        return result

    return Scenario(run, life)


async def _kill_in_stage(
    environment: ProofEnvironment, cluster_id: str, stage: JourneyStage, kill: KeeperKill
) -> None:
    worker = await environment.ensure_worker()
    # A worker that goes on sends itself a signal that changes nothing.
    await worker.set_target(kill.point, signal.SIGSTOP if kill.seconds is None else signal.SIGCONT)
    worker.reached.clear()
    await stage.request(environment, cluster_id)
    try:
        async with asyncio.timeout(environment.timings.timeout_seconds):
            await worker.reached.wait()
    except TimeoutError as error:
        raise Unavailable(f"no worker came to {kill.point}") from error
    if kill.seconds:
        await asyncio.sleep(kill.seconds)
    await environment.keeper.kill()
    await environment.keeper.start()
    worker.signal(signal.SIGCONT)


async def _kill_at_rest(environment: ProofEnvironment, cluster_id: str) -> None:
    """Kills the keeper of a ready cluster. The cluster stays ready without a keeper and with the next one."""
    await environment.keeper.kill()
    await environment.make_due("Order", cluster_id)
    await environment.wait_until(cluster_id, is_ready)
    await environment.keeper.start()
    await environment.keeper.wait_until_found(
        f"{cluster_id}/cluster", environment.timings.timeout_seconds
    )
    await environment.make_due("Order", cluster_id)
    await environment.wait_until(cluster_id, is_ready)

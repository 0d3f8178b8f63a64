"""Runs the whole proof: undisturbed runs first, then every point, in several environments at once."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.model.errors import BoatyardError
from boatyard.proof.compare import differences
from boatyard.proof.environment import Lane, Pace
from boatyard.proof.environment_setup import make_template, open_lane
from boatyard.proof.journeys import (
    CHANGE_OF_MIND,
    CREATE,
    Baseline,
    Found,
    Life,
    Targets,
    change_of_mind,
    disturbed,
    told,
    undisturbed,
)
from boatyard.proof.kill_points import Point
from boatyard.proof.kill_schedule import chained, dealt, known, steady
from boatyard.proof.platform_profiles import Ground, ground_of
from boatyard.proof.scenarios import Scenario
from boatyard.proof.verdict import Verdict

_ENOUGH = 8  # failed runs after which the proof gives up: more would tell nothing new


@dataclass(frozen=True)
class Options:
    platform: str = "sim"
    journeys: Sequence[str] = ()  # none: all
    every: int = 1  # only every n-th point
    lanes: int = 0  # environments at once; 0: as many as the platform's profile says
    keep: bool = False
    undisturbed: int = 2  # runs of each life without a kill, whose end states must be equal
    only: Callable[[str, Point], bool] = lambda journey, point: True
    plant: str = ""  # "module:function", called in every worker: a bug that the proof must find
    keeper_plant: str = ""  # the same in every keeper
    pace: Pace | None = None  # None: the pace of the platform's profile
    hub_kubeconfig: bytes = b""  # orders are kept on that Kubernetes; empty: in the ledger
    roles: bool = False  # the template has a role, and its parts are run
    assets: Path | None = None  # programs of real clusters; None: the default directory


@dataclass(frozen=True)
class Run:
    """One run with one cluster: a life with targets, a deletion during creation, or a scenario."""

    life: Life | None = None  # None: a deletion during creation, or a scenario
    targets: Targets = ()
    name: str = ""
    scenario: Scenario | None = None
    tries: int = 1


# Called with the runs done and how many there are; 0 of 0 while the undisturbed ones run.
Progress = Callable[[Verdict, int, int], None]


async def prove(
    options: Options,
    progress: Progress = lambda verdict, done, total: None,
    *,
    postgres: EmbeddedPostgres | None = None,
) -> Verdict:
    """Runs the journeys of `options`, on a PostgreSQL of its own unless one is given.

    Removes all its files unless `keep` is set. Refused where the platform cannot be used on this machine.
    """
    started = time.monotonic()
    profile = ground_of(
        options.platform,
        options.assets,
        options.keeper_plant,
        options.hub_kubeconfig,
        roles=options.roles,
    )
    directory = Path(tempfile.mkdtemp(prefix="prove-"))
    verdict = Verdict()
    try:
        async with AsyncExitStack() as stack:
            if postgres is None:
                # PostgreSQL is not what dies here.
                own_postgres = EmbeddedPostgres(directory, durable=False)
                postgres = await stack.enter_async_context(own_postgres)
            await make_template(postgres)
            await _Proof(options, profile, postgres, directory, verdict).run(progress)
    finally:
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
    verdict.seconds = time.monotonic() - started
    return verdict


class _Proof:
    def __init__(
        self,
        options: Options,
        profile: Ground,
        postgres: EmbeddedPostgres,
        directory: Path,
        verdict: Verdict,
    ) -> None:
        self._options = options
        self._ground = profile
        self._postgres = postgres
        self._directory = directory
        self._verdict = verdict
        self._journeys = options.journeys or profile.journeys
        self._scenarios = [
            Run(name=name, scenario=scenario)
            for name, scenarios in profile.scenarios.items()
            for scenario in scenarios[:: options.every]
            if name in self._journeys
        ]
        compared_lives = [run.scenario.life for run in self._scenarios if run.scenario is not None]
        self._lives = profile.lives_for(self._journeys, compared_lives)
        self._names = (str(number) for number in itertools.count(1))
        self._numbers = itertools.count(1)
        self._failed = 0

    async def run(self, progress: Progress) -> None:
        progress(self._verdict, 0, 0)
        baseline = await self._baseline()
        if self._verdict.differences:
            return  # runs that differ without a kill cannot be compared
        runs = deque(self._deal(baseline))
        total = len(runs)
        progress(self._verdict, 0, total)

        async def work() -> None:
            while runs and self._failed < _ENOUGH:
                async with self._new_lane() as environment:
                    succeeded = True
                    while runs and succeeded:
                        run = runs.popleft()
                        result = await self._carry_out(environment, run, baseline)
                        runs.extend(self._absorb(run, result))
                        progress(self._verdict, total - len(runs), total)
                        # What a failed run has left behind would show in all runs after it.
                        succeeded = not result.differences
                        self._failed += not succeeded

        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(self._options.lanes or self._ground.lanes, total)):
                tasks.create_task(work())
        if self._failed >= _ENOUGH and runs:
            self._verdict.differences.append(
                f"given up after {self._failed} failed runs, {len(runs)} were to come"
            )

    def _new_lane(self) -> AbstractAsyncContextManager[Lane]:
        name = next(self._names)
        return open_lane(
            self._postgres,
            self._directory / f"lane-{name}",
            name,
            pace=self._options.pace or self._ground.pace,
            request=self._ground.wish,
            real=self._ground.real,
            hub_kubeconfig=self._ground.hub_kubeconfig,
            plant=self._options.plant,
        )

    async def _baseline(self) -> Baseline:
        """Runs each life several times without a kill; the end states must be equal."""
        baseline = Baseline()
        runs_by_life = await asyncio.gather(*(self._undisturbed(life) for life in self._lives))
        runs = [run for life_runs in runs_by_life for run in life_runs]
        for run in reversed(runs):
            baseline.ends |= run.ends
        for stage in dict.fromkeys(stage for run in runs for stage in run.points):
            point_lists = [run.points[stage] for run in runs if stage in run.points]
            baseline.points[stage] = (
                known(point_lists) if self._ground.is_exact else steady(point_lists)
            )
        return baseline

    async def _undisturbed(self, life: Life) -> list[Baseline]:
        verdict_differences = self._verdict.differences
        baselines: list[Baseline] = []
        try:
            async with self._new_lane() as environment:
                for number in range(self._options.undisturbed):
                    baselines.append(await undisturbed(environment, f"{life.name}-{number}", life))
                for stage in life.stages:
                    changes = differences(baselines[0].end(stage), baselines[-1].end(stage))
                    verdict_differences += [
                        f"{stage.name}, undisturbed: {change}" for change in changes
                    ]
                verdict_differences += [
                    f"undisturbed: {breach}"
                    for baseline in baselines
                    for breach in baseline.breaches
                ]
        except BoatyardError as error:
            verdict_differences.append(f"undisturbed: {error}")
        return baselines

    def _deal(self, baseline: Baseline) -> list[Run]:
        """All runs: scenarios first, because they take long; then the points, distributed over lives."""
        points = {**baseline.points, CHANGE_OF_MIND: baseline.points[CREATE.name]}
        for journey in points:
            chosen_points = [
                point for point in points[journey] if self._options.only(journey, point)
            ]
            points[journey] = (
                chosen_points[:: self._options.every] if journey in self._journeys else []
            )
        self._verdict.points.update(
            {name: journey_points for name, journey_points in points.items() if journey_points}
        )
        deletion_points = points.pop(CHANGE_OF_MIND)
        chains = {
            stage: chained(journey_points, self._ground.deaths)
            for stage, journey_points in points.items()
        }
        return [
            *self._scenarios,
            *(Run(life=life, targets=targets) for life, targets in dealt(self._lives, chains)),
            *(Run(targets=((CHANGE_OF_MIND, point),)) for point in deletion_points),
        ]

    async def _carry_out(self, environment: Lane, run: Run, baseline: Baseline) -> Found:
        cluster_id = f"cluster-{next(self._numbers):04}"
        try:
            if run.scenario is not None:
                return await run.scenario.run(environment, cluster_id, baseline)
            if run.life is not None:
                return await disturbed(environment, cluster_id, run.life, run.targets, baseline)
            return await change_of_mind(environment, cluster_id, run.targets[0][1])
        except BoatyardError as error:
            result = Found()
            result.differ(run.name or told(run.targets), [str(error)])
            return result

    def _absorb(self, run: Run, result: Found) -> list[Run]:
        """Adds the result to the verdict. Returns a run for targets that were not reached, if there are tries left."""
        verdict = self._verdict
        verdict.add(result)
        if run.scenario is not None:
            passed = verdict.scenarios.get(run.name, True)
            verdict.scenarios[run.name] = passed and not result.differences
        if not result.unmet:
            return []
        if run.tries == self._ground.tries:
            verdict.unmet += result.unmet
            return []
        return [replace(run, targets=tuple(result.unmet), tries=run.tries + 1)]

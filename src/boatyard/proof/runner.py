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

from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.model.errors import BoatyardError
from boatyard.proof.end_state import find_differences
from boatyard.proof.environment import ProofEnvironment, ProofTimings
from boatyard.proof.environment_setup import make_template_database, open_environment
from boatyard.proof.journeys import (
    CHANGE_OF_MIND,
    CREATE,
    Baseline,
    ClusterLife,
    JourneyResult,
    KillTargets,
    describe_targets,
    run_change_of_mind,
    run_disturbed,
    run_undisturbed,
)
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.kill_schedule import (
    assign_chains,
    merge_points,
    pair_points,
    select_steady_points,
)
from boatyard.proof.platform_profiles import ProofProfile, find_profile
from boatyard.proof.scenarios import Scenario
from boatyard.proof.verdict import ProofVerdict

_FAILED_RUNS_LIMIT = 8  # failed runs after which the proof gives up: more would tell nothing new


@dataclass(frozen=True)
class ProofOptions:
    platform: str = "sim"
    journeys: Sequence[str] = ()  # none: all
    every: int = 1  # only every n-th point
    environments: int = 0  # environments at once; 0: as many as the platform's profile says
    keep: bool = False
    undisturbed: int = 2  # runs of each life without a kill, whose end states must be equal
    only: Callable[[str, KillPoint], bool] = lambda journey, point: True
    planted_bug: str = (
        ""  # "module:function", called in every worker: a bug that the proof must find
    )
    keeper_planted_bug: str = ""  # the same in every keeper
    timings: ProofTimings | None = None  # None: the pace of the platform's profile
    hub_kubeconfig: bytes = b""  # orders are kept on that Kubernetes; empty: in the ledger
    roles: bool = False  # the template has a role, and its parts are run
    assets: Path | None = None  # programs of real clusters; None: the default directory


@dataclass(frozen=True)
class ProofRun:
    """One run with one cluster: a life with targets, a deletion during creation, or a scenario."""

    life: ClusterLife | None = None  # None: a deletion during creation, or a scenario
    targets: KillTargets = ()
    name: str = ""
    scenario: Scenario | None = None
    tries: int = 1


# Called with the runs done and how many there are; 0 of 0 while the undisturbed ones run.
OnProofProgress = Callable[[ProofVerdict, int, int], None]


async def prove(
    options: ProofOptions,
    progress: OnProofProgress = lambda verdict, done, total: None,
    *,
    postgres: EmbeddedPostgres | None = None,
) -> ProofVerdict:
    """Runs the journeys of `options`, on a PostgreSQL of its own unless one is given.

    Removes all its files unless `keep` is set. Refused where the platform cannot be used on this machine.
    """
    started = time.monotonic()
    profile = find_profile(
        options.platform,
        options.assets,
        options.keeper_planted_bug,
        options.hub_kubeconfig,
        roles=options.roles,
    )
    directory = Path(tempfile.mkdtemp(prefix="prove-"))
    verdict = ProofVerdict()
    try:
        async with AsyncExitStack() as stack:
            if postgres is None:
                # PostgreSQL is not what dies here.
                own_postgres = EmbeddedPostgres(directory, durable=False)
                postgres = await stack.enter_async_context(own_postgres)
            await make_template_database(postgres)
            await _Proof(options, profile, postgres, directory, verdict).run(progress)
    finally:
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
    verdict.seconds = time.monotonic() - started
    return verdict


class _Proof:
    def __init__(
        self,
        options: ProofOptions,
        profile: ProofProfile,
        postgres: EmbeddedPostgres,
        directory: Path,
        verdict: ProofVerdict,
    ) -> None:
        self._options = options
        self._profile = profile
        self._postgres = postgres
        self._directory = directory
        self._verdict = verdict
        self._journeys = options.journeys or profile.journeys
        self._scenarios = [
            ProofRun(name=name, scenario=scenario)
            for name, scenarios in profile.scenarios.items()
            for scenario in scenarios[:: options.every]
            if name in self._journeys
        ]
        compared_lives = [run.scenario.life for run in self._scenarios if run.scenario is not None]
        self._lives = profile.select_lives(self._journeys, compared_lives)
        self._names = (str(number) for number in itertools.count(1))
        self._numbers = itertools.count(1)
        self._failed = 0

    async def run(self, progress: OnProofProgress) -> None:
        progress(self._verdict, 0, 0)
        baseline = await self._make_baseline()
        if self._verdict.differences:
            return  # runs that differ without a kill cannot be compared
        runs = deque(self._plan_runs(baseline))
        total = len(runs)
        progress(self._verdict, 0, total)

        async def work() -> None:
            while runs and self._failed < _FAILED_RUNS_LIMIT:
                async with self._open_environment() as environment:
                    succeeded = True
                    while runs and succeeded:
                        run = runs.popleft()
                        result = await self._carry_out(environment, run, baseline)
                        runs.extend(self._add_result(run, result))
                        progress(self._verdict, total - len(runs), total)
                        # What a failed run has left behind would show in all runs after it.
                        succeeded = not result.differences
                        self._failed += not succeeded

        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(self._options.environments or self._profile.environments, total)):
                tasks.create_task(work())
        if self._failed >= _FAILED_RUNS_LIMIT and runs:
            self._verdict.differences.append(
                f"given up after {self._failed} failed runs, {len(runs)} were to come"
            )

    def _open_environment(self) -> AbstractAsyncContextManager[ProofEnvironment]:
        name = next(self._names)
        return open_environment(
            self._postgres,
            self._directory / f"lane-{name}",
            name,
            timings=self._options.timings or self._profile.timings,
            request=self._profile.request,
            real=self._profile.real_clusters,
            hub_kubeconfig=self._profile.hub_kubeconfig,
            plant=self._options.planted_bug,
        )

    async def _make_baseline(self) -> Baseline:
        """Runs each life several times without a kill; the end states must be equal."""
        baseline = Baseline()
        runs_by_life = await asyncio.gather(*(self._run_undisturbed(life) for life in self._lives))
        runs = [run for life_runs in runs_by_life for run in life_runs]
        for run in reversed(runs):
            baseline.ends |= run.ends
        for stage in dict.fromkeys(stage for run in runs for stage in run.points):
            point_lists = [run.points[stage] for run in runs if stage in run.points]
            baseline.points[stage] = (
                merge_points(point_lists)
                if self._profile.is_exact
                else select_steady_points(point_lists)
            )
        return baseline

    async def _run_undisturbed(self, life: ClusterLife) -> list[Baseline]:
        verdict_differences = self._verdict.differences
        baselines: list[Baseline] = []
        try:
            async with self._open_environment() as environment:
                for number in range(self._options.undisturbed):
                    baselines.append(
                        await run_undisturbed(environment, f"{life.name}-{number}", life)
                    )
                for stage in life.stages:
                    changes = find_differences(
                        baselines[0].find_end(stage), baselines[-1].find_end(stage)
                    )
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

    def _plan_runs(self, baseline: Baseline) -> list[ProofRun]:
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
            stage: pair_points(journey_points, self._profile.max_kills)
            for stage, journey_points in points.items()
        }
        return [
            *self._scenarios,
            *(
                ProofRun(life=life, targets=targets)
                for life, targets in assign_chains(self._lives, chains)
            ),
            *(ProofRun(targets=((CHANGE_OF_MIND, point),)) for point in deletion_points),
        ]

    async def _carry_out(
        self, environment: ProofEnvironment, run: ProofRun, baseline: Baseline
    ) -> JourneyResult:
        cluster_id = f"cluster-{next(self._numbers):04}"
        try:
            if run.scenario is not None:
                return await run.scenario.run(environment, cluster_id, baseline)
            if run.life is not None:
                return await run_disturbed(environment, cluster_id, run.life, run.targets, baseline)
            return await run_change_of_mind(environment, cluster_id, run.targets[0][1])
        except BoatyardError as error:
            result = JourneyResult()
            result.add_differences(run.name or describe_targets(run.targets), [str(error)])
            return result

    def _add_result(self, run: ProofRun, result: JourneyResult) -> list[ProofRun]:
        """Adds the result to the verdict. Returns a run for targets that were not reached, if there are tries left."""
        verdict = self._verdict
        verdict.add_result(result)
        if run.scenario is not None:
            passed = verdict.scenarios.get(run.name, True)
            verdict.scenarios[run.name] = passed and not result.differences
        if not result.unreached:
            return []
        if run.tries == self._profile.max_tries:
            verdict.unreached += result.unreached
            return []
        return [replace(run, targets=tuple(result.unreached), tries=run.tries + 1)]

"""The proof from beginning to end: the undisturbed run, then every point, in several lanes at once."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from boatyard.app.proving.compare import differences
from boatyard.app.proving.journeys import (
    CHANGE_OF_MIND,
    STAGES,
    Baseline,
    Found,
    change_of_mind,
    disturbed,
    undisturbed,
)
from boatyard.app.proving.lane import TEMPLATE, Lane, Pace, execute, open_lane
from boatyard.app.proving.points import Point
from boatyard.app.proving.scenarios import SCENARIOS
from boatyard.app.proving.verdict import Verdict
from boatyard.ledger import schema
from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.model.errors import BoatyardError

JOURNEYS = (*(stage.name for stage in STAGES), CHANGE_OF_MIND, *SCENARIOS)
_TRIES = 3  # a point that did not come in a run is waited for in two more


@dataclass(frozen=True)
class Options:
    journeys: Sequence[str] = JOURNEYS
    every: int = 1  # of all points only each so-manieth
    lanes: int = 4
    keep: bool = False
    only: Callable[[str, Point], bool] = lambda journey, point: True
    plant: str = ""  # "module:function", called in every worker: a bug that must be found
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True)
class Run:
    """One cluster's life: where its workers die, or which scenario it is."""

    targets: tuple[tuple[str, Point], ...] = ()
    scenario: str = ""
    tries: int = 1


Progress = Callable[[Verdict, int, int], None]


async def prove(
    options: Options, progress: Progress = lambda verdict, done, total: None
) -> Verdict:
    """Everything that was asked for. Nothing is left of it afterwards unless `keep` is set."""
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="prove-"))
    verdict = Verdict()
    try:
        async with EmbeddedPostgres(directory, durable=False) as postgres:
            await execute(postgres, f"create database {TEMPLATE}")
            await schema.migrate(postgres.url(TEMPLATE))
            await _prove(options, postgres, directory, verdict, progress)
    finally:
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
    verdict.seconds = time.monotonic() - started
    return verdict


async def _prove(
    options: Options,
    postgres: EmbeddedPostgres,
    directory: Path,
    verdict: Verdict,
    progress: Progress,
) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(_lane(options, postgres, directory, "1"))
        baseline = await _baseline(first, verdict)
        if baseline is None:
            return
        runs = deque(_deal(options, baseline, verdict))
        names = [str(number) for number in range(2, min(options.lanes, len(runs)) + 1)]
        others = await asyncio.gather(
            *(
                stack.enter_async_context(_lane(options, postgres, directory, name))
                for name in names
            )
        )
        total = len(runs)
        numbers = itertools.count(1)

        async def work(lane: Lane) -> None:
            while runs:
                run = runs.popleft()
                again = await _carry_out(lane, run, f"c{next(numbers):04}", baseline, verdict)
                if again is not None:
                    runs.append(again)
                progress(verdict, total - len(runs), total)

        async with asyncio.TaskGroup() as tasks:
            for lane in (first, *others):
                tasks.create_task(work(lane))


def _lane(options: Options, postgres: EmbeddedPostgres, directory: Path, name: str):  # type: ignore[no-untyped-def]
    return open_lane(
        postgres, directory / f"lane-{name}", name, pace=options.pace, plant=options.plant
    )


async def _baseline(lane: Lane, verdict: Verdict) -> Baseline | None:
    """Two undisturbed lives, which must be equal."""
    try:
        baseline, second = await undisturbed(lane, "base-1"), await undisturbed(lane, "base-2")
        for stage in STAGES:
            words = differences(baseline.ends[stage.name], second.ends[stage.name])
            verdict.differences += [f"{stage.name}, undisturbed: {word}" for word in words]
            known = dict.fromkeys((*baseline.points[stage.name], *second.points[stage.name]))
            baseline.points[stage.name] = list(known)
        verdict.differences += [f"undisturbed: {breach}" for breach in await lane.breaches()]
    except BoatyardError as error:
        verdict.differences.append(f"undisturbed: {error}")
    return None if verdict.differences else baseline


def _deal(options: Options, baseline: Baseline, verdict: Verdict) -> list[Run]:
    """Deals the points out over lives: one death in each stage of a life."""
    points = {stage.name: baseline.points[stage.name] for stage in STAGES}
    points[CHANGE_OF_MIND] = baseline.points["create"]
    for journey in points:
        chosen = [point for point in points[journey] if options.only(journey, point)]
        points[journey] = chosen[:: options.every] if journey in options.journeys else []
    verdict.points.update({journey: found for journey, found in points.items() if found})
    changes = points.pop(CHANGE_OF_MIND)
    runs = [Run(scenario=name) for name in SCENARIOS if name in options.journeys]
    for dealt in itertools.zip_longest(*points.values()):
        pairs = zip(points, dealt, strict=True)
        runs.append(Run(targets=tuple((name, point) for name, point in pairs if point is not None)))
    return runs + [Run(targets=((CHANGE_OF_MIND, point),)) for point in changes]


async def _carry_out(
    lane: Lane, run: Run, cluster_id: str, baseline: Baseline, verdict: Verdict
) -> Run | None:
    """One run; what must be tried again of it, because the point did not come."""
    try:
        found = await _found(lane, run, cluster_id, baseline)
    except BoatyardError as error:
        found = Found()
        found.differ(_name(run), [str(error)])
    verdict.add(found)
    if run.scenario:
        verdict.scenarios[run.scenario] = not found.differences
    if found.differences:
        await lane.kill_all()
    if not found.unmet:
        return None
    if run.tries == _TRIES:
        verdict.unmet += found.unmet
        return None
    return Run(targets=tuple(found.unmet), tries=run.tries + 1)


async def _found(lane: Lane, run: Run, cluster_id: str, baseline: Baseline) -> Found:
    if run.scenario:
        return await SCENARIOS[run.scenario](lane, cluster_id, baseline)
    name, point = run.targets[0]
    if name == CHANGE_OF_MIND:
        return await change_of_mind(lane, cluster_id, point)
    return await disturbed(lane, cluster_id, dict(run.targets), baseline)


def _name(run: Run) -> str:
    return run.scenario or "; ".join(f"{journey}, killed {point}" for journey, point in run.targets)

"""The proof from beginning to end: the undisturbed run, then every point, in several lanes at once."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
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
from boatyard.app.proving.lane import Lane, Pace, make_template, open_lane
from boatyard.app.proving.points import Point
from boatyard.app.proving.scenarios import SCENARIOS
from boatyard.app.proving.verdict import Verdict
from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.model.errors import BoatyardError

JOURNEYS = (*(stage.name for stage in STAGES), CHANGE_OF_MIND, *SCENARIOS)
_ENOUGH = 8  # failed runs: more would say no more
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
    options: Options,
    progress: Progress = lambda verdict, done, total: None,
    *,
    postgres: EmbeddedPostgres | None = None,
) -> Verdict:
    """Everything that was asked for, on a PostgreSQL of its own unless one is given.

    Nothing is left of it in the file system unless `keep` is set.
    """
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="prove-"))
    verdict = Verdict()
    try:
        async with AsyncExitStack() as stack:
            if postgres is None:
                own = EmbeddedPostgres(directory, durable=False)  # PostgreSQL is not what dies here
                postgres = await stack.enter_async_context(own)
            await make_template(postgres)
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
    names = (str(number) for number in itertools.count(1))

    def new_lane() -> AbstractAsyncContextManager[Lane]:
        name = next(names)
        place = directory / f"lane-{name}"
        return open_lane(postgres, place, name, pace=options.pace, plant=options.plant)

    async with new_lane() as lane:
        baseline = await _baseline(lane, verdict)
    if baseline is None:
        return
    runs = deque(_deal(options, baseline, verdict))
    total = len(runs)
    numbers = itertools.count(1)
    failed = 0

    async def work() -> None:
        nonlocal failed
        while runs and failed < _ENOUGH:
            async with new_lane() as lane:
                sound = True
                while runs and sound:
                    run = runs.popleft()
                    cluster_id = f"cluster-{next(numbers):04}"
                    found = await _carry_out(lane, run, cluster_id, baseline)
                    runs.extend(_absorb(verdict, run, found))
                    progress(verdict, total - len(runs), total)
                    # What a failed run has left would show in all that come after it.
                    sound = not found.differences
                    failed += not sound

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(options.lanes, total)):
            tasks.create_task(work())
    if failed >= _ENOUGH and runs:
        verdict.differences.append(f"given up after {failed} failed runs, {len(runs)} were to come")


async def _baseline(lane: Lane, verdict: Verdict) -> Baseline | None:
    """Two undisturbed lives, which must be equal. None when they are not: then nothing can be compared."""
    baseline = Baseline()
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


async def _carry_out(lane: Lane, run: Run, cluster_id: str, baseline: Baseline) -> Found:
    try:
        return await _found(lane, run, cluster_id, baseline)
    except BoatyardError as error:
        found = Found()
        found.differ(_name(run), [str(error)])
        return found


def _absorb(verdict: Verdict, run: Run, found: Found) -> list[Run]:
    """What must be tried again of a run, because the point did not come."""
    verdict.add(found)
    if run.scenario:
        verdict.scenarios[run.scenario] = not found.differences
    if not found.unmet:
        return []
    if run.tries == _TRIES:
        verdict.unmet += found.unmet
        return []
    return [Run(targets=tuple(found.unmet), tries=run.tries + 1)]


async def _found(lane: Lane, run: Run, cluster_id: str, baseline: Baseline) -> Found:
    if run.scenario:
        return await SCENARIOS[run.scenario](lane, cluster_id, baseline)
    name, point = run.targets[0]
    if name == CHANGE_OF_MIND:
        return await change_of_mind(lane, cluster_id, point)
    return await disturbed(lane, cluster_id, dict(run.targets), baseline)


def _name(run: Run) -> str:
    return run.scenario or "; ".join(f"{journey}, killed {point}" for journey, point in run.targets)

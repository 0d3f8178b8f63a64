"""The crash question: a run that is killed at any task starts again and ends like an undisturbed run.

One cluster per boundary between tasks: in the third cluster, every part is killed as it reaches its third task. So
each kill happens in a cluster where the part has not run before, and several clusters are tried at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from boatyard.cli.words import count
from boatyard.template_test.environment import Stuck
from boatyard.template_test.instrumented_runs import Run
from boatyard.template_test.questions import SEE_BOUNDS, see_gone
from boatyard.template_test.report import Answer
from boatyard.template_test.trial import MOST, Trial, failed, passed, skipped, why

_AT_ONCE = 4
_REMEDY = (
    "a part may be killed at any task and begins anew: it must find what it has begun and go on from there, "
    "whether that is whole, half made or gone"
)


async def ask_crash(trial: Trial) -> Answer:
    scales = trial.passed("scale")
    deletes = trial.passed("delete")
    expected = {
        run.part: run
        for run in trial.runs(MOST)
        if (run.part != "scale" or scales) and (run.part != "delete" or deletes)
    }
    # A part that cannot run twice cannot continue after a kill. `again` has reported it; the other parts are tried.
    trial.yard.roles.spared = set(trial.once_only)
    expected = {part: run for part, run in expected.items() if part not in trial.once_only}
    # A boundary before each task, and one after the last.
    boundaries = {part: len(run.tasks) + 1 for part, run in expected.items()}
    semaphore = asyncio.Semaphore(_AT_ONCE)

    async def try_boundary(boundary: int) -> list[str]:
        async with semaphore:
            return await _cluster(trial, boundary, expected, scales=scales, deletes=deletes)

    numbers = range(1, max(boundaries.values(), default=0) + 1)
    problems_by_boundary = await asyncio.gather(*(try_boundary(number) for number in numbers))
    problems = [
        problem for cluster_problems in problems_by_boundary for problem in cluster_problems
    ]
    if any(trial.overrun(_name(number)) for number in numbers):
        return skipped("crash", SEE_BOUNDS)
    killed = sum(run.was_killed for number in numbers for run in trial.runs(_name(number)))
    if problems:
        return failed("crash", f"{count(killed, 'kill')}, and not the same end", problems, _REMEDY)
    if not killed:
        return skipped("crash", "no part that could be killed was run")
    return passed("crash", f"{count(killed, 'kill')}, at every task of {', '.join(boundaries)}")


def _name(number: int) -> str:
    return f"crash-{number}"


async def _cluster(
    trial: Trial, number: int, expected: Mapping[str, Run], *, scales: bool, deletes: bool
) -> list[str]:
    """Creates, scales and deletes one cluster whose parts are each killed once.

    Returns what differs from the undisturbed cluster.
    """
    name = _name(number)
    trial.yard.roles.doomed[name] = number
    id = await trial.order(name)
    end = await trial.yard.ready(id)
    if isinstance(end, Stuck):
        return [_told(trial, number, end)]
    problems: list[str] = []
    twin_items = await trial.yard.held(id)
    for place in sorted({*twin_items, *trial.held}):
        if twin_items.get(place, 0) != trial.held.get(place, 0):
            problems.append(
                f"{_when(trial, number)}: the data centre holds {twin_items.get(place, 0)} of {place} "
                f"instead of {trial.held.get(place, 0)}"
            )
    external_state = await trial.look_outside(name)
    if external_state != trial.made:
        problems.append(
            f"{_when(trial, number)}: outside there is {external_state!r} instead of {trial.made!r}"
        )
    if scales and "scale" in expected:
        node_set, default_set = min(trial.role.about.node_sets.items())
        await trial.yard.client.scale_cluster(id, {node_set: default_set.size + 1})
        end = await trial.yard.ready(id)
        if isinstance(end, Stuck):
            return [*problems, _told(trial, number, end)]
    if deletes:
        await trial.yard.client.delete_cluster(id)
        problems += [
            f"{_when(trial, number)}: {problem}" for problem in await see_gone(trial, name, id)
        ]
    return [*problems, *_compared(trial, number, expected)]


def _compared(trial: Trial, number: int, expected: Mapping[str, Run]) -> list[str]:
    problems = []
    runs_by_part = {run.part: run for run in reversed(trial.runs(_name(number)))}
    for part, undisturbed in expected.items():
        run = runs_by_part.get(part)
        if run is None:
            problems.append(f"{part} was not run in cluster {_name(number)!r}")
            continue
        if number <= len(undisturbed.tasks) + 1 and not run.was_killed:
            problems.append(
                f"{part} did not come to its task {number} in cluster {_name(number)!r}"
            )
        for fact in trial.differing(undisturbed, run):
            problems.append(
                f"{part}, killed {_where(undisturbed, number)}: the fact {fact!r} is "
                f"{run.facts.get(fact)!r} instead of {undisturbed.facts.get(fact)!r}"
            )
    return problems


def _told(trial: Trial, number: int, end: Stuck) -> str:
    return f"{_when(trial, number)}: {why(_name(number), end)}"


def _when(trial: Trial, number: int) -> str:
    """Which runs of the cluster were killed so far, and at which task."""
    killed = [run for run in trial.runs(_name(number)) if run.was_killed]
    places = [f"{run.part} {_where(run, number)}" for run in killed]
    return f"killed: {', '.join(places) or 'nothing yet'}"


def _where(run: Run, number: int) -> str:
    tasks = run.tasks
    return f"before task {tasks[number - 1]!r}" if number <= len(tasks) else "after its last task"

"""The crash question: a run that is killed at any task starts again and ends like an undisturbed run.

One cluster per boundary between tasks: in the third cluster, every part is killed as it reaches its third task. So
each kill happens in a cluster where the part has not run before, and several clusters are tried at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from boatyard.cli.text_format import format_count
from boatyard.template_test.environment import StuckCluster
from boatyard.template_test.instrumented_runs import RecordedRun
from boatyard.template_test.questions import SEE_BOUNDS, check_deleted
from boatyard.template_test.report import QuestionResult
from boatyard.template_test.trial import (
    MAXIMAL_CLUSTER,
    RoleTrial,
    describe_stuck,
    failed_result,
    passed_result,
    skipped_result,
)

_CONCURRENT_CLUSTERS = 4
_REMEDY = (
    "a part may be killed at any task and begins anew: it must find what it has begun and go on from there, "
    "whether that is whole, half made or gone"
)


async def check_crash(trial: RoleTrial) -> QuestionResult:
    scales = trial.has_passed("scale")
    deletes = trial.has_passed("delete")
    expected = {
        run.part: run
        for run in trial.list_runs(MAXIMAL_CLUSTER)
        if (run.part != "scale" or scales) and (run.part != "delete" or deletes)
    }
    # A part that cannot run twice cannot continue after a kill. `again` has reported it; the other parts are tried.
    trial.environment.roles.unkilled_parts = set(trial.unrepeatable_parts)
    expected = {part: run for part, run in expected.items() if part not in trial.unrepeatable_parts}
    # A boundary before each task, and one after the last.
    boundaries = {part: len(run.tasks) + 1 for part, run in expected.items()}
    semaphore = asyncio.Semaphore(_CONCURRENT_CLUSTERS)

    async def try_boundary(boundary: int) -> list[str]:
        async with semaphore:
            return await _try_cluster(trial, boundary, expected, scales=scales, deletes=deletes)

    numbers = range(1, max(boundaries.values(), default=0) + 1)
    problems_by_boundary = await asyncio.gather(*(try_boundary(number) for number in numbers))
    problems = [
        problem for cluster_problems in problems_by_boundary for problem in cluster_problems
    ]
    if any(trial.list_overruns(_cluster_name(number)) for number in numbers):
        return skipped_result("crash", SEE_BOUNDS)
    killed = sum(
        run.was_killed for number in numbers for run in trial.list_runs(_cluster_name(number))
    )
    if problems:
        return failed_result(
            "crash", f"{format_count(killed, 'kill')}, and not the same end", problems, _REMEDY
        )
    if not killed:
        return skipped_result("crash", "no part that could be killed was run")
    return passed_result(
        "crash", f"{format_count(killed, 'kill')}, at every task of {', '.join(boundaries)}"
    )


def _cluster_name(number: int) -> str:
    return f"crash-{number}"


async def _try_cluster(
    trial: RoleTrial,
    number: int,
    expected: Mapping[str, RecordedRun],
    *,
    scales: bool,
    deletes: bool,
) -> list[str]:
    """Creates, scales and deletes one cluster whose parts are each killed once.

    Returns what differs from the undisturbed cluster.
    """
    name = _cluster_name(number)
    trial.environment.roles.kill_tasks[name] = number
    id = await trial.order(name)
    end = await trial.environment.wait_until_ready(id)
    if isinstance(end, StuckCluster):
        return [_describe_stuck(trial, number, end)]
    problems: list[str] = []
    twin_items = await trial.environment.count_held_items(id)
    for place in sorted({*twin_items, *trial.held_items}):
        if twin_items.get(place, 0) != trial.held_items.get(place, 0):
            problems.append(
                f"{_describe_kills(trial, number)}: the data centre holds {twin_items.get(place, 0)} of {place} "
                f"instead of {trial.held_items.get(place, 0)}"
            )
    external_state = await trial.read_external_state(name)
    if external_state != trial.external_state:
        problems.append(
            f"{_describe_kills(trial, number)}: outside there is {external_state!r} instead of {trial.external_state!r}"
        )
    if scales and "scale" in expected:
        node_set, default_set = min(trial.role.metadata.node_sets.items())
        await trial.environment.client.scale_cluster(id, {node_set: default_set.size + 1})
        end = await trial.environment.wait_until_ready(id)
        if isinstance(end, StuckCluster):
            return [*problems, _describe_stuck(trial, number, end)]
    if deletes:
        await trial.environment.client.delete_cluster(id)
        problems += [
            f"{_describe_kills(trial, number)}: {problem}"
            for problem in await check_deleted(trial, name, id)
        ]
    return [*problems, *_compare_runs(trial, number, expected)]


def _compare_runs(trial: RoleTrial, number: int, expected: Mapping[str, RecordedRun]) -> list[str]:
    problems = []
    runs_by_part = {run.part: run for run in reversed(trial.list_runs(_cluster_name(number)))}
    for part, undisturbed in expected.items():
        run = runs_by_part.get(part)
        if run is None:
            problems.append(f"{part} was not run in cluster {_cluster_name(number)!r}")
            continue
        if number <= len(undisturbed.tasks) + 1 and not run.was_killed:
            problems.append(
                f"{part} did not come to its task {number} in cluster {_cluster_name(number)!r}"
            )
        for fact in trial.find_differing_facts(undisturbed, run):
            problems.append(
                f"{part}, killed {_describe_boundary(undisturbed, number)}: the fact {fact!r} is "
                f"{run.facts.get(fact)!r} instead of {undisturbed.facts.get(fact)!r}"
            )
    return problems


def _describe_stuck(trial: RoleTrial, number: int, end: StuckCluster) -> str:
    return f"{_describe_kills(trial, number)}: {describe_stuck(_cluster_name(number), end)}"


def _describe_kills(trial: RoleTrial, number: int) -> str:
    """Which runs of the cluster were killed so far, and at which task."""
    killed = [run for run in trial.list_runs(_cluster_name(number)) if run.was_killed]
    places = [f"{run.part} {_describe_boundary(run, number)}" for run in killed]
    return f"killed: {', '.join(places) or 'nothing yet'}"


def _describe_boundary(run: RecordedRun, number: int) -> str:
    tasks = run.tasks
    return f"before task {tasks[number - 1]!r}" if number <= len(tasks) else "after its last task"

"""The questions about undisturbed runs: form, install, again, scale, delete. Asked by the runner."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from boatyard.automation.port import RunSpec
from boatyard.cli.text_format import format_count
from boatyard.model.errors import BoatyardError, Refused
from boatyard.model.outcome import Waiting
from boatyard.proof import invariants
from boatyard.proof.evidence import gather_evidence
from boatyard.resources.cluster_templates.parameters import PARAMETERS_PATH
from boatyard.roles import phases
from boatyard.template_test.environment import HUB_ID, StuckCluster
from boatyard.template_test.form_values import BadValues, ValueGenerator
from boatyard.template_test.instrumented_runs import RecordedRun
from boatyard.template_test.report import QuestionResult
from boatyard.template_test.trial import (
    MAXIMAL_CLUSTER,
    MINIMAL_CLUSTER,
    RoleTrial,
    describe_stuck,
    failed_result,
    passed_result,
    skipped_result,
)

_GOOD_SETS_COUNT = 40
_CONCURRENT_ORDERS = 8
ZONE_WITHOUT_HUBS = "nowhere"  # a zone without hubs: an order there is admitted and waits

SEE_BOUNDS = "a part did not come to its end, see bounds"


async def check_form(trial: RoleTrial) -> QuestionResult:
    """The API admits good values and refuses bad ones with the path of the mistake."""
    fuzz = ValueGenerator(trial.role.form, trial.random, trial.options.values)
    least, most = fuzz.make_minimal(), fuzz.make_maximal()
    if least is None or most is None:
        return failed_result(
            "form",
            "no values can be found that it takes",
            [],
            "its relations contradict each other: look at required, mutually_exclusive and required_if",
        )
    trial.values = {MINIMAL_CLUSTER: least, MAXIMAL_CLUSTER: most}
    good = [least, most, *fuzz.iter_good(_GOOD_SETS_COUNT)]
    bad = list(fuzz.iter_bad(PARAMETERS_PATH))
    semaphore = asyncio.Semaphore(_CONCURRENT_ORDERS)

    async def try_good(number: int, values: Mapping[str, Any]) -> str:
        async with semaphore:
            return await _try_good_values(trial, f"good-{number}", values)

    async def try_bad(number: int, bad_set: BadValues) -> str:
        async with semaphore:
            return await _try_bad_values(trial, f"bad-{number}", bad_set)

    problems = [
        *await asyncio.gather(*(try_good(number, values) for number, values in enumerate(good))),
        *await asyncio.gather(*(try_bad(number, bad_set) for number, bad_set in enumerate(bad))),
    ]
    if failures := [problem for problem in problems if problem]:
        remedy = "mend meta/argument_specs.yml; `boatyard template lint` tells what it means"
        return failed_result(
            "form", f"{len(failures)} of {len(problems)} sets went wrong", failures, remedy
        )
    return passed_result("form", f"{len(good)} good sets taken, {len(bad)} bad ones refused")


async def _try_good_values(trial: RoleTrial, name: str, values: Mapping[str, Any]) -> str:
    try:
        id = await trial.environment.order(
            name, trial.template, trial.role.form, values, zone=ZONE_WITHOUT_HUBS
        )
    except BoatyardError as error:
        return f"refused, although the form allows it: {error}"
    await trial.environment.client.delete_cluster(id)
    return ""


async def _try_bad_values(trial: RoleTrial, name: str, bad: BadValues) -> str:
    try:
        id = await trial.environment.order(
            name, trial.template, trial.role.form, bad.values, zone=ZONE_WITHOUT_HUBS
        )
    except Refused as error:
        paths = [violation.path for violation in error.violations]
        if any(path == bad.path or path.startswith(f"{bad.path}.") for path in paths):
            return ""
        return f"{bad.reason}: refused for {', '.join(paths) or error} and not for {bad.path}"
    except BoatyardError as error:
        return f"{bad.reason}: not refused, but {error}"
    await trial.environment.client.delete_cluster(id)
    return f"{bad.reason}: taken, although the form forbids it"


async def check_install(trial: RoleTrial) -> QuestionResult:
    """Two clusters become READY: one with the required values only, one with all values."""
    if not trial.values:
        fuzz = ValueGenerator(trial.role.form, trial.random, trial.options.values)
        least, most = fuzz.make_minimal(), fuzz.make_maximal()
        if least is None or most is None:
            return skipped_result("install", "no values can be found that the form takes")
        trial.values = {MINIMAL_CLUSTER: least, MAXIMAL_CLUSTER: most}
    remedy = (
        "give every option that a task uses a default, or make it required; values that only you "
        "can know go into --values FILE"
    )
    problems = []
    for name in (MINIMAL_CLUSTER, MAXIMAL_CLUSTER):
        try:
            await trial.order(name)
        except BoatyardError as error:
            problems.append(f"cluster {name!r} cannot be ordered: {error}")
    if problems:
        return failed_result("install", "it cannot be ordered", problems, remedy)
    ends = await asyncio.gather(
        *(trial.environment.wait_until_ready(id) for id in trial.ids.values())
    )
    for name, end in zip(trial.ids, ends, strict=True):
        if isinstance(end, StuckCluster):
            problems.append(
                f"{describe_stuck(name, end)} (with {_describe_values(trial.values[name])})"
            )
    if problems and trial.list_overruns():
        return skipped_result("install", SEE_BOUNDS)
    if problems:
        return failed_result("install", "the order does not become READY", problems, remedy)
    trial.held_items = await trial.environment.count_held_items(trial.ids[MAXIMAL_CLUSTER])
    trial.external_state = await trial.read_external_state(MAXIMAL_CLUSTER)
    runs = trial.list_runs(MAXIMAL_CLUSTER)
    tasks = sum(len(run.tasks) for run in runs)
    parts = ", ".join(run.part for run in runs) or "none"
    return passed_result(
        "install", f"READY twice; parts {parts} with {format_count(tasks, 'task')}"
    )


def _describe_values(values: Mapping[str, Any]) -> str:
    return f"{', '.join(values)} given" if values else "nothing given"


async def check_again(trial: RoleTrial) -> QuestionResult:
    """Each part runs a second time with the same values: it changes nothing and reports the same facts."""
    problems: list[str] = []
    for run in trial.list_runs(MAXIMAL_CLUSTER):
        problems += await run_part_again(trial, run)
    if trial.list_overruns(MAXIMAL_CLUSTER):
        return skipped_result("again", SEE_BOUNDS)
    if await trial.environment.count_held_items(trial.ids[MAXIMAL_CLUSTER]) != trial.held_items:
        problems.append("what the data centre holds for the order is another")
    external_state = await trial.read_external_state(MAXIMAL_CLUSTER)
    if external_state != trial.external_state:
        problems.append(
            f"outside there is now {external_state!r} instead of {trial.external_state!r}"
        )
    if problems:
        remedy = (
            "a part may be run again at any time: look before you change, use modules that do, "
            "set changed_when, and report facts that do not depend on the moment"
        )
        return failed_result("again", "a second run is not like the first", problems, remedy)
    return passed_result("again", "every part ran twice; the second time nothing changed")


async def run_part_again(trial: RoleTrial, run: RecordedRun) -> list[str]:
    """Runs the part once more under its key. Returns what differs from the first run."""
    spec = replace(run.spec, attempt=run.spec.attempt + 1)
    failure = await _run_second_time(trial, run, spec)
    if failure:
        trial.unrepeatable_parts.add(run.part)
        return [f"{run.part} fails when it is run again: {failure}"]
    second = trial.environment.roles.runs[run.key, spec.attempt]
    problems = [
        f"{run.part}: task {event.task!r} has changed something again"
        for event in second.list_changes()
    ]
    for name in trial.find_differing_facts(run, second):
        trial.unstable_facts.add((run.part, name))
        values = f"{run.facts.get(name)!r}, then {second.facts.get(name)!r}"
        problems.append(f"{run.part}: the fact {name!r} is another each time: {values}")
    return problems


async def _run_second_time(trial: RoleTrial, run: RecordedRun, spec: RunSpec) -> str:
    """Why the second run failed; empty when it went well."""
    if run.part == phases.INSTALL:
        id = run.key.partition("/")[0]
        stuck = await trial.environment.run_part_again(id, run.key, spec.attempt)
        return stuck.reason if stuck else ""
    automation = trial.environment.roles.for_hub(HUB_ID)
    try:
        outcome = await automation.ensure_run(run.key, spec)
        while isinstance(outcome, Waiting):
            await asyncio.sleep(outcome.look_again)
            outcome = await automation.ensure_run(run.key, spec)
    except Refused as error:
        return str(error)
    return ""


async def check_scale(trial: RoleTrial) -> QuestionResult:
    """A node is added and removed; the facts that the role reported before are the same afterwards."""
    node_set = next(iter(sorted(trial.role.metadata.node_sets.items())), None)
    if node_set is None:
        return skipped_result("scale", "it has no node sets")
    name, size = node_set[0], node_set[1].size
    id = trial.ids[MAXIMAL_CLUSTER]
    before = _stable_facts(trial, trial.list_runs(MAXIMAL_CLUSTER))
    problems: list[str] = []
    for new_size in (size + 1, size):
        await trial.environment.client.scale_cluster(id, {name: new_size})
        end = await trial.environment.wait_until_ready(id)
        if isinstance(end, StuckCluster):
            problems.append(f"with {name}={new_size}: {end.reason}")
            break
        for run in trial.list_runs(MAXIMAL_CLUSTER):
            if run.part == "scale" and (run.key, 2) not in trial.environment.roles.runs:
                problems += await run_part_again(trial, run)
    if trial.list_overruns(MAXIMAL_CLUSTER):
        return skipped_result("scale", SEE_BOUNDS)
    if not problems:
        after = _stable_facts(trial, trial.list_runs(MAXIMAL_CLUSTER))
        problems = [
            f"the fact {fact!r} was {before[fact]!r} and is {after.get(fact)!r}, with as many nodes as before"
            for fact in sorted(before)
            if after.get(fact) != before[fact]
        ]
    if problems:
        remedy = (
            "tasks/scale.yaml sees the order as it is now: work out from it what has to be so, "
            "and report the same facts for the same size"
        )
        return failed_result("scale", "the cluster is not as before", problems, remedy)
    return passed_result("scale", f"{name} {size} → {size + 1} → {size}, and the same facts")


def _stable_facts(trial: RoleTrial, runs: list[RecordedRun]) -> dict[str, str]:
    """The facts that the parts reported, later ones over earlier ones, without those that differ in every run."""
    return {
        name: value
        for run in runs
        for name, value in run.facts.items()
        if (run.part, name) not in trial.unstable_facts
    }


async def check_delete(trial: RoleTrial) -> QuestionResult:
    """Both clusters are deleted: the receipts list no leftovers, the twin is empty, no run is recorded."""
    problems: list[str] = []
    for id in trial.ids.values():
        await trial.environment.client.delete_cluster(id)
    for name, id in trial.ids.items():
        problems += await check_deleted(trial, name, id)
    if trial.list_overruns():
        return skipped_result("delete", SEE_BOUNDS)
    if not problems:
        evidence = await gather_evidence(trial.environment.ledger, trial.environment.twin)
        problems = [str(breach) for breach in invariants.find_breaches(evidence, acknowledged=())]
    if problems:
        remedy = (
            "tasks/delete.yaml takes back what the other parts have made outside, also when it is "
            "half made or gone; what is in the cluster or was made by Boatyard goes by itself"
        )
        return failed_result("delete", "something is left", problems, remedy)
    return passed_result("delete", "the receipts are complete, and nothing is left")


async def check_deleted(trial: RoleTrial, name: str, id: str) -> list[str]:
    """Waits until a deleted cluster is gone. Returns what is left of it."""
    end = await trial.environment.wait_until_gone(id)
    if end is not None:
        return [describe_stuck(name, end)]
    receipt = await trial.environment.client.get_receipt(id)
    problems = [
        f"cluster {name!r}: the receipt lists {leftover.kind} {leftover.name}"
        for leftover in receipt.left
    ]
    problems += [
        f"cluster {name!r}: {item} is still there"
        for item in await trial.environment.count_held_items(id)
    ]
    owned = await trial.environment.roles.for_hub(HUB_ID).list_owned(f"{id}/")
    problems += [f"cluster {name!r}: a record of the run {record.name} is kept" for record in owned]
    external_state = await trial.external_command.read_state(name)
    if external_state != trial.external_state_before[name]:
        before = trial.external_state_before[name]
        problems.append(
            f"cluster {name!r}: outside there is {external_state!r}, before it was {before!r}"
        )
    return problems

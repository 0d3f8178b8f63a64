"""The questions about undisturbed runs: form, install, again, scale, delete. Asked by the runner."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from boatyard.automation.port import RunWanted
from boatyard.cli.words import count
from boatyard.model.errors import BoatyardError, Refused
from boatyard.model.outcome import Waiting
from boatyard.proof import invariants
from boatyard.proof.evidence import gather
from boatyard.resources.cluster_templates.parameters import PATH
from boatyard.roles import phases
from boatyard.template_test.environment import HUB, Stuck
from boatyard.template_test.form_values import Bad, Fuzz
from boatyard.template_test.instrumented_runs import Run
from boatyard.template_test.report import Answer
from boatyard.template_test.trial import LEAST, MOST, Trial, failed, passed, skipped, why

_GOOD_SETS = 40
_AT_ONCE = 8
NOWHERE = "nowhere"  # a zone without hubs: an order there is admitted and waits

SEE_BOUNDS = "a part did not come to its end, see bounds"


async def ask_form(trial: Trial) -> Answer:
    """The API admits good values and refuses bad ones with the path of the mistake."""
    fuzz = Fuzz(trial.role.form, trial.chance, trial.options.values)
    least, most = fuzz.least(), fuzz.most()
    if least is None or most is None:
        return failed(
            "form",
            "no values can be found that it takes",
            [],
            "its relations contradict each other: look at required, mutually_exclusive and required_if",
        )
    trial.values = {LEAST: least, MOST: most}
    good = [least, most, *fuzz.good(_GOOD_SETS)]
    bad = list(fuzz.bad(PATH))
    semaphore = asyncio.Semaphore(_AT_ONCE)

    async def try_good(number: int, values: Mapping[str, Any]) -> str:
        async with semaphore:
            return await _taken(trial, f"good-{number}", values)

    async def try_bad(number: int, bad_set: Bad) -> str:
        async with semaphore:
            return await _refused(trial, f"bad-{number}", bad_set)

    problems = [
        *await asyncio.gather(*(try_good(number, values) for number, values in enumerate(good))),
        *await asyncio.gather(*(try_bad(number, bad_set) for number, bad_set in enumerate(bad))),
    ]
    if failures := [problem for problem in problems if problem]:
        remedy = "mend meta/argument_specs.yml; `boatyard template lint` tells what it means"
        return failed(
            "form", f"{len(failures)} of {len(problems)} sets went wrong", failures, remedy
        )
    return passed("form", f"{len(good)} good sets taken, {len(bad)} bad ones refused")


async def _taken(trial: Trial, name: str, values: Mapping[str, Any]) -> str:
    try:
        id = await trial.yard.order(name, trial.template, trial.role.form, values, zone=NOWHERE)
    except BoatyardError as error:
        return f"refused, although the form allows it: {error}"
    await trial.yard.client.delete_cluster(id)
    return ""


async def _refused(trial: Trial, name: str, bad: Bad) -> str:
    try:
        id = await trial.yard.order(name, trial.template, trial.role.form, bad.values, zone=NOWHERE)
    except Refused as error:
        paths = [violation.path for violation in error.violations]
        if any(path == bad.path or path.startswith(f"{bad.path}.") for path in paths):
            return ""
        return f"{bad.why}: refused for {', '.join(paths) or error} and not for {bad.path}"
    except BoatyardError as error:
        return f"{bad.why}: not refused, but {error}"
    await trial.yard.client.delete_cluster(id)
    return f"{bad.why}: taken, although the form forbids it"


async def ask_install(trial: Trial) -> Answer:
    """Two clusters become READY: one with the required values only, one with all values."""
    if not trial.values:
        fuzz = Fuzz(trial.role.form, trial.chance, trial.options.values)
        least, most = fuzz.least(), fuzz.most()
        if least is None or most is None:
            return skipped("install", "no values can be found that the form takes")
        trial.values = {LEAST: least, MOST: most}
    remedy = (
        "give every option that a task uses a default, or make it required; values that only you "
        "can know go into --values FILE"
    )
    problems = []
    for name in (LEAST, MOST):
        try:
            await trial.order(name)
        except BoatyardError as error:
            problems.append(f"cluster {name!r} cannot be ordered: {error}")
    if problems:
        return failed("install", "it cannot be ordered", problems, remedy)
    ends = await asyncio.gather(*(trial.yard.ready(id) for id in trial.ids.values()))
    for name, end in zip(trial.ids, ends, strict=True):
        if isinstance(end, Stuck):
            problems.append(f"{why(name, end)} (with {_given(trial.values[name])})")
    if problems and trial.overrun():
        return skipped("install", SEE_BOUNDS)
    if problems:
        return failed("install", "the order does not become READY", problems, remedy)
    trial.held = await trial.yard.held(trial.ids[MOST])
    trial.made = await trial.look_outside(MOST)
    runs = trial.runs(MOST)
    tasks = sum(len(run.tasks) for run in runs)
    parts = ", ".join(run.part for run in runs) or "none"
    return passed("install", f"READY twice; parts {parts} with {count(tasks, 'task')}")


def _given(values: Mapping[str, Any]) -> str:
    return f"{', '.join(values)} given" if values else "nothing given"


async def ask_again(trial: Trial) -> Answer:
    """Each part runs a second time with the same values: it changes nothing and reports the same facts."""
    problems: list[str] = []
    for run in trial.runs(MOST):
        problems += await run_again(trial, run)
    if trial.overrun(MOST):
        return skipped("again", SEE_BOUNDS)
    if await trial.yard.held(trial.ids[MOST]) != trial.held:
        problems.append("what the data centre holds for the order is another")
    external_state = await trial.look_outside(MOST)
    if external_state != trial.made:
        problems.append(f"outside there is now {external_state!r} instead of {trial.made!r}")
    if problems:
        remedy = (
            "a part may be run again at any time: look before you change, use modules that do, "
            "set changed_when, and report facts that do not depend on the moment"
        )
        return failed("again", "a second run is not like the first", problems, remedy)
    return passed("again", "every part ran twice; the second time nothing changed")


async def run_again(trial: Trial, run: Run) -> list[str]:
    """Runs the part once more under its key. Returns what differs from the first run."""
    spec = replace(run.wanted, attempt=run.wanted.attempt + 1)
    failure = await _second(trial, run, spec)
    if failure:
        trial.once_only.add(run.part)
        return [f"{run.part} fails when it is run again: {failure}"]
    second = trial.yard.roles.runs[run.key, spec.attempt]
    problems = [
        f"{run.part}: task {event.task!r} has changed something again" for event in second.changed()
    ]
    for name in trial.differing(run, second):
        trial.unsteady.add((run.part, name))
        values = f"{run.facts.get(name)!r}, then {second.facts.get(name)!r}"
        problems.append(f"{run.part}: the fact {name!r} is another each time: {values}")
    return problems


async def _second(trial: Trial, run: Run, spec: RunWanted) -> str:
    """Why the second run failed; empty when it went well."""
    if run.part == phases.INSTALL:
        id = run.key.partition("/")[0]
        stuck = await trial.yard.begin_anew(id, run.key, spec.attempt)
        return stuck.why if stuck else ""
    automation = trial.yard.roles.for_hub(HUB)
    try:
        outcome = await automation.ensure_run(run.key, spec)
        while isinstance(outcome, Waiting):
            await asyncio.sleep(outcome.look_again)
            outcome = await automation.ensure_run(run.key, spec)
    except Refused as error:
        return str(error)
    return ""


async def ask_scale(trial: Trial) -> Answer:
    """A node is added and removed; the facts that the role reported before are the same afterwards."""
    node_set = next(iter(sorted(trial.role.about.node_sets.items())), None)
    if node_set is None:
        return skipped("scale", "it has no node sets")
    name, size = node_set[0], node_set[1].size
    id = trial.ids[MOST]
    before = _reported(trial, trial.runs(MOST))
    problems: list[str] = []
    for new_size in (size + 1, size):
        await trial.yard.client.scale_cluster(id, {name: new_size})
        end = await trial.yard.ready(id)
        if isinstance(end, Stuck):
            problems.append(f"with {name}={new_size}: {end.why}")
            break
        for run in trial.runs(MOST):
            if run.part == "scale" and (run.key, 2) not in trial.yard.roles.runs:
                problems += await run_again(trial, run)
    if trial.overrun(MOST):
        return skipped("scale", SEE_BOUNDS)
    if not problems:
        after = _reported(trial, trial.runs(MOST))
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
        return failed("scale", "the cluster is not as before", problems, remedy)
    return passed("scale", f"{name} {size} → {size + 1} → {size}, and the same facts")


def _reported(trial: Trial, runs: list[Run]) -> dict[str, str]:
    """The facts that the parts reported, later ones over earlier ones, without those that differ in every run."""
    return {
        name: value
        for run in runs
        for name, value in run.facts.items()
        if (run.part, name) not in trial.unsteady
    }


async def ask_delete(trial: Trial) -> Answer:
    """Both clusters are deleted: the receipts list no leftovers, the twin is empty, no run is recorded."""
    problems: list[str] = []
    for id in trial.ids.values():
        await trial.yard.client.delete_cluster(id)
    for name, id in trial.ids.items():
        problems += await see_gone(trial, name, id)
    if trial.overrun():
        return skipped("delete", SEE_BOUNDS)
    if not problems:
        evidence = await gather(trial.yard.ledger, trial.yard.twin)
        problems = [str(breach) for breach in invariants.judge(evidence, acknowledged=())]
    if problems:
        remedy = (
            "tasks/delete.yaml takes back what the other parts have made outside, also when it is "
            "half made or gone; what is in the cluster or was made by Boatyard goes by itself"
        )
        return failed("delete", "something is left", problems, remedy)
    return passed("delete", "the receipts are complete, and nothing is left")


async def see_gone(trial: Trial, name: str, id: str) -> list[str]:
    """Waits until a deleted cluster is gone. Returns what is left of it."""
    end = await trial.yard.gone(id)
    if end is not None:
        return [why(name, end)]
    receipt = await trial.yard.client.receipt(id)
    problems = [
        f"cluster {name!r}: the receipt lists {leftover.kind} {leftover.name}"
        for leftover in receipt.left
    ]
    problems += [f"cluster {name!r}: {item} is still there" for item in await trial.yard.held(id)]
    owned = await trial.yard.roles.for_hub(HUB).list_owned(f"{id}/")
    problems += [f"cluster {name!r}: a record of the run {record.name} is kept" for record in owned]
    external_state = await trial.outside.look(name)
    if external_state != trial.before[name]:
        problems.append(
            f"cluster {name!r}: outside there is {external_state!r}, before it was {trial.before[name]!r}"
        )
    return problems

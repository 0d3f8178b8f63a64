"""The questions about the results of all runs: bounds and secrets. Asked last by the runner."""

from __future__ import annotations

from collections.abc import Iterator

from boatyard.cli.words import count
from boatyard.proof.evidence import gather
from boatyard.roles.form import secrets
from boatyard.template_test.leaks import Leaks
from boatyard.template_test.report import Answer
from boatyard.template_test.trial import Trial, failed, passed, skipped

LOG = "log"  # file in the directory of the trial


async def ask_bounds(trial: Trial) -> Answer:
    """No part had to be ended because it took too long or printed too much."""
    overrun = trial.overrun()
    if overrun:
        problems = dict.fromkeys(
            f"{run.part}, at task {run.last_task!r}: {_last_words(run.failure)}" for run in overrun
        )
        remedy = (
            "give waiting tasks `retries` and a `timeout`, and print little; a part that needs longer "
            "is tried with --part-seconds"
        )
        return failed("bounds", "a part knows no end", list(problems), remedy)
    runs = trial.yard.roles.runs
    return passed(
        "bounds", f"{count(len(runs), 'run')}, none longer than {trial.options.part_seconds:g} s"
    )


def _last_words(failure: str) -> str:
    return failure.rpartition(": ")[2]


async def ask_secrets(trial: Trial) -> Answer:
    """No value of a `no_log` option is in any event, fact, document or log, in any known encoding."""
    names = set(secrets(trial.role.form))
    if not names:
        return skipped("secrets", "the form asks for none")
    secrets_by_cluster = [
        {name: value for name, value in values.items() if name in names}
        for values in trial.values.values()
    ]
    problems: dict[str, None] = {}
    finders = [Leaks(cluster_secrets) for cluster_secrets in secrets_by_cluster]
    for place, text in [*_told_by_runs(trial), *await _kept(trial)]:
        for finder in finders:
            for name, encoding in finder.find(text):
                problems[f"{place}: the value of {name!r} can be read {encoding}"] = None
    if problems:
        remedy = (
            "set no_log: true on tasks that handle it, and put it into no name, message or fact, "
            "also not encoded"
        )
        return failed("secrets", "a secret can be read", list(problems), remedy)
    return passed("secrets", f"nothing of {', '.join(sorted(names))} can be read anywhere")


def _told_by_runs(trial: Trial) -> Iterator[tuple[str, str]]:
    for run in trial.yard.roles.runs.values():
        for event in run.events:
            yield f"{run.part}, event of task {event.task!r}", f"{event.task}\n{event.text}"
        for name, value in run.facts.items():
            yield f"{run.part}, fact {name!r}", value
        yield f"{run.part}, its failure", run.failure


async def _kept(trial: Trial) -> list[tuple[str, str]]:
    """Everything in the database that is not sealed, and the log."""
    evidence = await gather(trial.yard.ledger, trial.yard.twin)
    texts = [
        (f"{row.kind} in the database", row.data.decode(errors="replace"))
        for row in (*evidence.documents, *evidence.archive)
    ]
    texts += [
        (f"event of a {row.kind}", f"{row.message}\n{row.data.decode(errors='replace')}")
        for row in evidence.events
    ]
    log = trial.yard.directory / LOG
    if log.exists():
        texts.append(("the log", log.read_text(errors="replace")))
    return texts

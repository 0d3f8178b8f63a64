"""The questions about the results of all runs: bounds and secrets. Asked last by the runner."""

from __future__ import annotations

from collections.abc import Iterator

from boatyard.cli.text_format import format_count
from boatyard.proof.evidence import gather_evidence
from boatyard.roles.form import list_secret_options
from boatyard.template_test.leaks import SecretFinder
from boatyard.template_test.report import QuestionResult
from boatyard.template_test.trial import RoleTrial, failed_result, passed_result, skipped_result

LOG_FILE = "log"  # file in the directory of the trial


async def check_bounds(trial: RoleTrial) -> QuestionResult:
    """No part had to be ended because it took too long or printed too much."""
    overrun = trial.list_overruns()
    if overrun:
        problems = dict.fromkeys(
            f"{run.part}, at task {run.last_task!r}: {_last_part(run.failure)}" for run in overrun
        )
        remedy = (
            "give waiting tasks `retries` and a `timeout`, and print little; a part that needs longer "
            "is tried with --part-seconds"
        )
        return failed_result("bounds", "a part knows no end", list(problems), remedy)
    runs = trial.environment.roles.runs
    return passed_result(
        "bounds",
        f"{format_count(len(runs), 'run')}, none longer than {trial.options.part_seconds:g} s",
    )


def _last_part(failure: str) -> str:
    return failure.rpartition(": ")[2]


async def check_secrets(trial: RoleTrial) -> QuestionResult:
    """No value of a `no_log` option is in any event, fact, document or log, in any known encoding."""
    names = set(list_secret_options(trial.role.form))
    if not names:
        return skipped_result("secrets", "the form asks for none")
    secrets_by_cluster = [
        {name: value for name, value in values.items() if name in names}
        for values in trial.values.values()
    ]
    problems: dict[str, None] = {}
    finders = [SecretFinder(cluster_secrets) for cluster_secrets in secrets_by_cluster]
    for place, text in [*_iter_run_texts(trial), *await _read_stored_texts(trial)]:
        for finder in finders:
            for name, encoding in finder.find(text):
                problems[f"{place}: the value of {name!r} can be read {encoding}"] = None
    if problems:
        remedy = (
            "set no_log: true on tasks that handle it, and put it into no name, message or fact, "
            "also not encoded"
        )
        return failed_result("secrets", "a secret can be read", list(problems), remedy)
    return passed_result("secrets", f"nothing of {', '.join(sorted(names))} can be read anywhere")


def _iter_run_texts(trial: RoleTrial) -> Iterator[tuple[str, str]]:
    for run in trial.environment.roles.runs.values():
        for event in run.events:
            yield f"{run.part}, event of task {event.task!r}", f"{event.task}\n{event.text}"
        for name, value in run.facts.items():
            yield f"{run.part}, fact {name!r}", value
        yield f"{run.part}, its failure", run.failure


async def _read_stored_texts(trial: RoleTrial) -> list[tuple[str, str]]:
    """Everything in the database that is not sealed, and the log."""
    evidence = await gather_evidence(trial.environment.ledger, trial.environment.twin)
    texts = [
        (f"{row.kind} in the database", row.data.decode(errors="replace"))
        for row in (*evidence.documents, *evidence.archive)
    ]
    texts += [
        (f"event of a {row.kind}", f"{row.message}\n{row.data.decode(errors='replace')}")
        for row in evidence.events
    ]
    log = trial.environment.directory / LOG_FILE
    if log.exists():
        texts.append(("the log", log.read_text(errors="replace")))
    return texts

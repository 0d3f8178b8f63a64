"""Runs `template test`: lists the questions and their dependencies, and asks them one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from boatyard.cli.text_format import format_count
from boatyard.client.local_roles import LocalRole
from boatyard.model.errors import BoatyardError, Refused
from boatyard.template_test.crash import check_crash
from boatyard.template_test.environment import open_environment
from boatyard.template_test.limits_and_secrets import check_bounds, check_secrets
from boatyard.template_test.questions import (
    check_again,
    check_delete,
    check_form,
    check_install,
    check_scale,
)
from boatyard.template_test.report import FAILED, QuestionResult, RoleTestReport
from boatyard.template_test.trial import (
    CheckRole,
    ExternalCommand,
    RoleTestOptions,
    RoleTrial,
    failed_result,
    passed_result,
    skipped_result,
)
from boatyard.template_test.upgrade import check_upgrade

OnBegin = Callable[[str], None]  # called with the name of a question before it is asked
OnResult = Callable[[QuestionResult], None]
LINT = "lint"
_BASE_TIMEOUT_SECONDS = 60.0  # for all work that is not a part of the role


@dataclass(frozen=True)
class RoleQuestion:
    """One question. It is asked only when the questions in `needs` have passed."""

    name: str
    check: CheckRole
    needs: tuple[str, ...] = ()


QUESTIONS = (
    RoleQuestion("form", check_form),
    RoleQuestion("install", check_install),
    RoleQuestion("again", check_again, needs=("install",)),
    RoleQuestion("scale", check_scale, needs=("install",)),
    RoleQuestion("delete", check_delete, needs=("install",)),
    RoleQuestion("crash", check_crash, needs=("install",)),
    RoleQuestion("upgrade", check_upgrade, needs=("install",)),
    RoleQuestion("bounds", check_bounds),
    RoleQuestion("secrets", check_secrets),
)
QUESTION_NAMES = (LINT, *(question.name for question in QUESTIONS))
# The crash question compares with the results of these.
_RUN_BEFORE = {"crash": ("scale", "delete")}


def select_questions(only: Sequence[str]) -> set[str]:
    """The questions to ask, including those they depend on. Refused when there is no question of that name."""
    unknown = [name for name in only if name not in QUESTION_NAMES]
    if unknown:
        raise Refused(f"there is no question {unknown[0]!r}; there are {', '.join(QUESTION_NAMES)}")
    if not only:
        return set(QUESTION_NAMES)
    needs = {question.name: question.needs for question in QUESTIONS}
    selected = {LINT, "bounds"}  # a part that does not end is reported in any case
    pending = list(only)
    while pending:
        name = pending.pop()
        if name not in selected or name in only:
            selected.add(name)
            pending += [
                needed
                for needed in (*needs.get(name, ()), *_RUN_BEFORE.get(name, ()))
                if needed not in selected
            ]
    return selected


async def try_role(
    role_files: LocalRole,
    directory: Path,
    options: RoleTestOptions,
    on_result: OnResult,
    begin: OnBegin = lambda _: None,
) -> RoleTestReport:
    """Asks all selected questions. Calls `tell` with each answer as soon as it is known."""
    start = time.monotonic()
    selected = select_questions(options.only)
    answers: list[QuestionResult] = []

    def hear(answer: QuestionResult) -> None:
        answers.append(answer)
        on_result(answer)

    hear(_check_lint(role_files))
    role = role_files.role
    if role is not None and selected - {LINT, "bounds"}:
        begin("making a yard to try it in")
        patience = _BASE_TIMEOUT_SECONDS + options.part_seconds * (len(role.phases) + 1)
        async with open_environment(
            directory, role, part_seconds=options.part_seconds, patience=patience
        ) as yard:
            await yard.publish(role_files.name, role_files.files)
            trial = RoleTrial(
                role_files=role_files,
                role=role,
                environment=yard,
                random=Random(options.seed),
                options=options,
                external_command=ExternalCommand(options.outside),
            )
            for question in QUESTIONS:
                if question.name in selected:
                    begin(question.name)
                    answer = await _run_question(question, trial)
                    trial.results[question.name] = answer
                    hear(answer)
    return RoleTestReport(
        role=role_files.name,
        template=role.metadata.id if role else "",
        digest=role.digest if role else "",
        seed=options.seed,
        results=tuple(answers),
        seconds=time.monotonic() - start,
    )


async def _run_question(question: RoleQuestion, trial: RoleTrial) -> QuestionResult:
    for need in question.needs:
        if not trial.has_passed(need):
            return skipped_result(question.name, f"not asked: {need} did not go well")
    start = time.monotonic()
    try:
        answer = await question.check(trial)
    except BoatyardError as error:
        answer = QuestionResult(
            question.name,
            FAILED,
            "it could not be asked",
            (str(error),),
            "see the log with --keep",
        )
    return replace(answer, seconds=time.monotonic() - start)


def _check_lint(role_files: LocalRole) -> QuestionResult:
    if role_files.role is None:
        mistakes = list(role_files.mistakes)
        return failed_result(
            LINT, format_count(len(mistakes), "mistake"), mistakes, "mend them first"
        )
    options = format_count(len(role_files.role.form.options), "parameter")
    return passed_result(
        LINT, f"no mistakes; {options}, runs {', '.join(role_files.role.phases) or 'nothing'}"
    )

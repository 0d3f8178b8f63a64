"""Runs `template test`: lists the questions and their dependencies, and asks them one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from boatyard.cli.words import count
from boatyard.client.roles import Found
from boatyard.model.errors import BoatyardError, Refused
from boatyard.template_test.crash import ask_crash
from boatyard.template_test.environment import open_yard
from boatyard.template_test.limits_and_secrets import ask_bounds, ask_secrets
from boatyard.template_test.questions import ask_again, ask_delete, ask_form, ask_install, ask_scale
from boatyard.template_test.report import FAILED, Answer, Report
from boatyard.template_test.trial import Ask, Options, Outside, Trial, failed, passed, skipped
from boatyard.template_test.upgrade import ask_upgrade

Begin = Callable[[str], None]  # called with the name of a question before it is asked
Tell = Callable[[Answer], None]
LINT = "lint"
_PATIENCE_SECONDS = 60.0  # for all work that is not a part of the role


@dataclass(frozen=True)
class Question:
    """One question. It is asked only when the questions in `needs` have passed."""

    name: str
    ask: Ask
    needs: tuple[str, ...] = ()


QUESTIONS = (
    Question("form", ask_form),
    Question("install", ask_install),
    Question("again", ask_again, needs=("install",)),
    Question("scale", ask_scale, needs=("install",)),
    Question("delete", ask_delete, needs=("install",)),
    Question("crash", ask_crash, needs=("install",)),
    Question("upgrade", ask_upgrade, needs=("install",)),
    Question("bounds", ask_bounds),
    Question("secrets", ask_secrets),
)
NAMES = (LINT, *(question.name for question in QUESTIONS))
# The crash question compares with the results of these.
_BEFORE = {"crash": ("scale", "delete")}


def asked(only: Sequence[str]) -> set[str]:
    """The questions to ask, including those they depend on. Refused when there is no question of that name."""
    unknown = [name for name in only if name not in NAMES]
    if unknown:
        raise Refused(f"there is no question {unknown[0]!r}; there are {', '.join(NAMES)}")
    if not only:
        return set(NAMES)
    needs = {question.name: question.needs for question in QUESTIONS}
    selected = {LINT, "bounds"}  # a part that does not end is reported in any case
    pending = list(only)
    while pending:
        name = pending.pop()
        if name not in selected or name in only:
            selected.add(name)
            pending += [
                needed
                for needed in (*needs.get(name, ()), *_BEFORE.get(name, ()))
                if needed not in selected
            ]
    return selected


async def try_role(
    role_files: Found,
    directory: Path,
    options: Options,
    tell: Tell,
    begin: Begin = lambda _: None,
) -> Report:
    """Asks all selected questions. Calls `tell` with each answer as soon as it is known."""
    start = time.monotonic()
    selected = asked(options.only)
    answers: list[Answer] = []

    def hear(answer: Answer) -> None:
        answers.append(answer)
        tell(answer)

    hear(_lint(role_files))
    role = role_files.role
    if role is not None and selected - {LINT, "bounds"}:
        begin("making a yard to try it in")
        patience = _PATIENCE_SECONDS + options.part_seconds * (len(role.phases) + 1)
        async with open_yard(
            directory, role, part_seconds=options.part_seconds, patience=patience
        ) as yard:
            await yard.publish(role_files.name, role_files.files)
            trial = Trial(
                found=role_files,
                role=role,
                yard=yard,
                chance=Random(options.seed),
                options=options,
                outside=Outside(options.outside),
            )
            for question in QUESTIONS:
                if question.name in selected:
                    begin(question.name)
                    answer = await _ask(question, trial)
                    trial.answers[question.name] = answer
                    hear(answer)
    return Report(
        role=role_files.name,
        template=role.about.id if role else "",
        digest=role.digest if role else "",
        seed=options.seed,
        answers=tuple(answers),
        seconds=time.monotonic() - start,
    )


async def _ask(question: Question, trial: Trial) -> Answer:
    for need in question.needs:
        if not trial.passed(need):
            return skipped(question.name, f"not asked: {need} did not go well")
    start = time.monotonic()
    try:
        answer = await question.ask(trial)
    except BoatyardError as error:
        answer = Answer(
            question.name,
            FAILED,
            "it could not be asked",
            (str(error),),
            "see the log with --keep",
        )
    return replace(answer, seconds=time.monotonic() - start)


def _lint(role_files: Found) -> Answer:
    if role_files.role is None:
        mistakes = list(role_files.mistakes)
        return failed(LINT, count(len(mistakes), "mistake"), mistakes, "mend them first")
    options = count(len(role_files.role.form.options), "parameter")
    return passed(
        LINT, f"no mistakes; {options}, runs {', '.join(role_files.role.phases) or 'nothing'}"
    )

"""What the questions share: the environment, the values, the results so far. Made by the runner."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from boatyard.client.roles import Found
from boatyard.model.errors import Refused
from boatyard.roles.role import Role
from boatyard.template_test.environment import Stuck, Yard, masked
from boatyard.template_test.instrumented_runs import Run
from boatyard.template_test.report import FAILED, PASSED, SKIPPED, Answer

LEAST, MOST = "least", "most"  # the two clusters that most questions are about
_LOOK_SECONDS = 60.0
_OUT_OF_BOUNDS = ("it took longer than", "it printed more than")


@dataclass(frozen=True)
class Options:
    seed: int = 1
    only: Sequence[str] = ()
    part_seconds: float = 120.0
    values: Mapping[str, Any] = field(default_factory=dict)  # part of every set of values
    outside: str = ""  # a command that prints what the role has created outside Boatyard
    older: Found | None = None  # the content that was published before
    no_older: str = "there is no older content; name it with --from FOLDER"


class Outside:
    """Shows what the role has created where Boatyard cannot look, by running a command per cluster."""

    def __init__(self, command: str) -> None:
        self._words = shlex.split(command)

    async def look(self, cluster: str) -> str:
        return await asyncio.to_thread(self._run, cluster) if self._words else ""

    def _run(self, cluster: str) -> str:
        try:
            process = subprocess.run(
                self._words,
                env={**os.environ, "BOATYARD_CLUSTER": cluster},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LOOK_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise Refused(f"--outside: {self._words[0]} did not work: {error}") from error
        return process.stdout


@dataclass
class Trial:
    """One role under test. The questions read it and add to it."""

    found: Found
    role: Role
    yard: Yard
    chance: Random
    options: Options
    outside: Outside
    answers: dict[str, Answer] = field(default_factory=dict)
    values: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # of the two clusters
    ids: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)  # outside, before each cluster was ordered
    held: dict[str, int] = field(default_factory=dict)  # by the twin, for an undisturbed cluster
    made: str = ""  # outside, for an undisturbed cluster
    once_only: set[str] = field(default_factory=set)  # parts that fail when they are run again
    unsteady: set[tuple[str, str]] = field(default_factory=set)  # part and fact: differs each time

    @property
    def template(self) -> str:
        return self.role.about.id

    def passed(self, question: str) -> bool:
        return question in self.answers and self.answers[question].state == PASSED

    async def order(self, name: str) -> str:
        """Orders a cluster of this name, with the values of that name or else with all values. Returns its id."""
        self.before[name] = await self.outside.look(name)
        values = self.values.get(name, self.values[MOST])
        self.ids[name] = await self.yard.order(name, self.template, self.role.form, values)
        return self.ids[name]

    async def look_outside(self, name: str) -> str:
        """What the role has created outside for the cluster, with id and name masked for comparison."""
        order = {"id": self.ids[name], "name": name}
        return masked(order, await self.outside.look(name))

    def runs(self, name: str, *, attempt: int = 1) -> list[Run]:
        return [run for run in self.yard.roles.of(name) if run.wanted.attempt == attempt]

    def overrun(self, name: str = "") -> list[Run]:
        """Runs that were ended because they took too long or printed too much."""
        return [run for run in self.yard.roles.runs.values() if is_overrun(run, name)]

    def differing(self, run: Run, other: Run) -> list[str]:
        """Names of facts that the two runs report differently, apart from values of their orders."""
        first_facts, second_facts = _plain_facts(run), _plain_facts(other)
        names = sorted({*first_facts, *second_facts})
        return [
            name
            for name in names
            if first_facts.get(name) != second_facts.get(name)
            and (run.part, name) not in self.unsteady
        ]


def _plain_facts(run: Run) -> dict[str, str]:
    return {name: masked(run.wanted.order, value) for name, value in run.facts.items()}


def is_overrun(run: Run, cluster: str = "") -> bool:
    exceeded = any(phrase in run.failure for phrase in _OUT_OF_BOUNDS)
    return exceeded and cluster in ("", run.cluster)


def why(name: str, stuck: Stuck) -> str:
    return f"cluster {name!r}: {stuck.why}"


def passed(question: str, summary: str) -> Answer:
    return Answer(question, PASSED, summary)


def failed(question: str, summary: str, problems: Sequence[str], remedy: str) -> Answer:
    return Answer(question, FAILED, summary, tuple(problems), remedy)


def skipped(question: str, summary: str) -> Answer:
    return Answer(question, SKIPPED, summary)


Ask = Callable[[Trial], Awaitable[Answer]]

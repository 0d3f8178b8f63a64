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

from boatyard.client.local_roles import LocalRole
from boatyard.model.errors import Refused
from boatyard.roles.role import TemplateRole
from boatyard.template_test.environment import RoleEnvironment, StuckCluster, mask_order_values
from boatyard.template_test.instrumented_runs import RecordedRun
from boatyard.template_test.report import FAILED, PASSED, SKIPPED, QuestionResult

MINIMAL_CLUSTER, MAXIMAL_CLUSTER = "least", "most"  # the two clusters that most questions are about
_LOOK_SECONDS = 60.0
_OVERRUN_PHRASES = ("it took longer than", "it printed more than")


@dataclass(frozen=True)
class RoleTestOptions:
    seed: int = 1
    only: Sequence[str] = ()
    part_seconds: float = 120.0
    values: Mapping[str, Any] = field(default_factory=dict)  # part of every set of values
    outside: str = ""  # a command that prints what the role has created outside Boatyard
    older: LocalRole | None = None  # the content that was published before
    no_older: str = "there is no older content; name it with --from FOLDER"


class ExternalCommand:
    """Shows what the role has created where Boatyard cannot look, by running a command per cluster."""

    def __init__(self, command: str) -> None:
        self._command = shlex.split(command)

    async def read_state(self, cluster: str) -> str:
        return await asyncio.to_thread(self._run, cluster) if self._command else ""

    def _run(self, cluster: str) -> str:
        try:
            process = subprocess.run(
                self._command,
                env={**os.environ, "BOATYARD_CLUSTER": cluster},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LOOK_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise Refused(f"--outside: {self._command[0]} did not work: {error}") from error
        return process.stdout


@dataclass
class RoleTrial:
    """One role under test. The questions read it and add to it."""

    role_files: LocalRole
    role: TemplateRole
    environment: RoleEnvironment
    random: Random
    options: RoleTestOptions
    external_command: ExternalCommand
    results: dict[str, QuestionResult] = field(default_factory=dict)
    values: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # of the two clusters
    ids: dict[str, str] = field(default_factory=dict)
    external_state_before: dict[str, str] = field(
        default_factory=dict
    )  # outside, before each cluster was ordered
    held_items: dict[str, int] = field(
        default_factory=dict
    )  # by the twin, for an undisturbed cluster
    external_state: str = ""  # outside, for an undisturbed cluster
    unrepeatable_parts: set[str] = field(
        default_factory=set
    )  # parts that fail when they are run again
    unstable_facts: set[tuple[str, str]] = field(
        default_factory=set
    )  # part and fact: differs each time

    @property
    def template(self) -> str:
        return self.role.metadata.id

    def has_passed(self, question: str) -> bool:
        return question in self.results and self.results[question].state == PASSED

    async def order(self, name: str) -> str:
        """Orders a cluster of this name, with the values of that name or else with all values. Returns its id."""
        self.external_state_before[name] = await self.external_command.read_state(name)
        values = self.values.get(name, self.values[MAXIMAL_CLUSTER])
        self.ids[name] = await self.environment.order(name, self.template, self.role.form, values)
        return self.ids[name]

    async def read_external_state(self, name: str) -> str:
        """What the role has created outside for the cluster, with id and name masked for comparison."""
        order = {"id": self.ids[name], "name": name}
        return mask_order_values(order, await self.external_command.read_state(name))

    def list_runs(self, name: str, *, attempt: int = 1) -> list[RecordedRun]:
        return [run for run in self.environment.roles.runs_of(name) if run.spec.attempt == attempt]

    def list_overruns(self, name: str = "") -> list[RecordedRun]:
        """Runs that were ended because they took too long or printed too much."""
        return [run for run in self.environment.roles.runs.values() if is_overrun(run, name)]

    def find_differing_facts(self, run: RecordedRun, other: RecordedRun) -> list[str]:
        """Names of facts that the two runs report differently, apart from values of their orders."""
        first_facts, second_facts = _masked_facts(run), _masked_facts(other)
        names = sorted({*first_facts, *second_facts})
        return [
            name
            for name in names
            if first_facts.get(name) != second_facts.get(name)
            and (run.part, name) not in self.unstable_facts
        ]


def _masked_facts(run: RecordedRun) -> dict[str, str]:
    return {name: mask_order_values(run.spec.order, value) for name, value in run.facts.items()}


def is_overrun(run: RecordedRun, cluster: str = "") -> bool:
    exceeded = any(phrase in run.failure for phrase in _OVERRUN_PHRASES)
    return exceeded and cluster in ("", run.cluster)


def describe_stuck(name: str, stuck: StuckCluster) -> str:
    return f"cluster {name!r}: {stuck.reason}"


def passed_result(question: str, summary: str) -> QuestionResult:
    return QuestionResult(question, PASSED, summary)


def failed_result(
    question: str, summary: str, problems: Sequence[str], remedy: str
) -> QuestionResult:
    return QuestionResult(question, FAILED, summary, tuple(problems), remedy)


def skipped_result(question: str, summary: str) -> QuestionResult:
    return QuestionResult(question, SKIPPED, summary)


CheckRole = Callable[[RoleTrial], Awaitable[QuestionResult]]

"""Records runs, bounds their time, and kills them where a question needs it. Sits between worker and driver."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boatyard.automation.drivers.local.run_plan import RunCapabilities
from boatyard.automation.drivers.local.run_records import PLAN, RUN, write_durably
from boatyard.automation.drivers.local.starters import Starter
from boatyard.automation.port import Automation, RunEvent, RunSpec
from boatyard.model.errors import Refused
from boatyard.model.outcome import Done, Outcome, OwnedObject, Waiting
from boatyard.wiring.role_runner import RoleRunner

DIE_AT_TASK = "BOATYARD_DIES_AT"  # read by the callback plugin that reports events
_LOOK_SECONDS = 0.05
_INTERRUPTED_TEXT = "the run was interrupted and begins again"


@dataclass(frozen=True)
class RecordedRun:
    """One attempt of a run that has ended."""

    key: str
    spec: RunSpec
    events: Sequence[RunEvent]
    facts: Mapping[str, str]
    failure: str = ""

    @property
    def part(self) -> str:
        return self.spec.action

    @property
    def cluster(self) -> str:
        return str(self.spec.order.get("name", ""))

    @property
    def tasks(self) -> list[str]:
        return [event.task for event in self.events if event.kind == "task"]

    @property
    def last_task(self) -> str:
        return (self.tasks or [""])[-1]

    @property
    def was_killed(self) -> bool:
        return any(event.text == _INTERRUPTED_TEXT for event in self.events)

    def list_changes(self) -> list[RunEvent]:
        return [event for event in self.events if event.kind == "changed"]


class RecordingRoleRunner:
    """Replaces the worker's role runner. `doomed`: cluster → task at which the first start of each part is killed."""

    def __init__(self, runner: RoleRunner, *, part_seconds: float) -> None:
        self._runner = runner
        self.part_seconds = part_seconds
        self.kill_tasks: dict[str, int] = {}
        self.unkilled_parts: set[str] = set()  # parts that are not killed
        self.runs: dict[
            tuple[str, int], RecordedRun
        ] = {}  # by key and attempt, in the order of their end
        self._automations: dict[str, RecordingAutomation] = {}
        self._kill_tasks_by_key: dict[str, int] = {}
        workshop = runner.local_runner
        workshop.starter = _KillingStarter(workshop.starter, self._kill_tasks_by_key)

    def for_hub(self, hub_id: str) -> RecordingAutomation:
        if hub_id not in self._automations:
            self._automations[hub_id] = RecordingAutomation(self._runner.for_hub(hub_id), self)
        return self._automations[hub_id]

    async def close(self) -> None:
        """Called by a worker that stops; does nothing. Runs still under way are ended by `end_all`, which follows."""

    async def end_all(self) -> None:
        """Ends the runs under way and closes the runner: otherwise they would outlive the trial."""
        for automation in self._automations.values():
            for owned in await automation.list_owned():
                if (owned.key, int(owned.facts["attempt"])) in self.runs:
                    continue  # it has ended; its log stays for a user who keeps the directory
                outcome = await automation.release_run(owned.key)
                while isinstance(outcome, Waiting):
                    await asyncio.sleep(outcome.look_again)
                    outcome = await automation.release_run(owned.key)
        await self._runner.close()

    def runs_of(self, cluster: str) -> Iterator[RecordedRun]:
        """The ended runs of the cluster of that name."""
        return (run for run in list(self.runs.values()) if run.cluster == cluster)

    def limit_run(self, key: str, spec: RunSpec) -> RunSpec:
        task_number = self.kill_tasks.get(str(spec.order.get("name", "")))
        if task_number is not None and spec.action not in self.unkilled_parts:
            self._kill_tasks_by_key[key] = task_number
        return replace(spec, time_limit=self.part_seconds)


class RecordingAutomation:
    """The automation port of one hub. Passes every call on and records the result of each run."""

    def __init__(self, inner: Automation, roles: RecordingRoleRunner) -> None:
        self._inner = inner
        self._roles = roles
        self._specs: dict[str, RunSpec] = {}

    async def check_ready(self) -> None:
        await self._inner.check_ready()

    async def get_isolation_warning(self) -> str:
        return await self._inner.get_isolation_warning()

    async def ensure_run(self, key: str, spec: RunSpec) -> Outcome:
        spec = self._specs[key] = self._roles.limit_run(key, spec)
        try:
            outcome = await self._inner.ensure_run(key, spec)
        except Refused as error:
            await self._record_run(key, spec, failure=str(error))
            raise
        if isinstance(outcome, Waiting):
            return replace(outcome, look_again=min(outcome.look_again, _LOOK_SECONDS))
        await self._record_run(key, spec, facts=outcome.facts)
        return outcome

    async def release_run(self, key: str) -> Outcome:
        spec = self._specs.get(key)
        if spec is not None and (key, spec.attempt) not in self._roles.runs:
            await self._record_run(key, spec, failure="it was ended before its end")
        outcome = await self._inner.release_run(key)
        if isinstance(outcome, Done):
            self._specs.pop(key, None)
        return outcome

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return await self._inner.events(key, after)

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        return await self._inner.list_owned(prefix)

    async def close(self) -> None:
        await self._inner.close()

    async def _record_run(
        self,
        key: str,
        spec: RunSpec,
        *,
        facts: Mapping[str, str] | None = None,
        failure: str = "",
    ) -> None:
        events: list[RunEvent] = []
        while page := await self._inner.events(key, events[-1].number if events else 0):
            events += page
        earlier = self._roles.runs.get((key, spec.attempt - 1))
        if earlier is not None:  # the events of one key are numbered across attempts
            events = [event for event in events if event.number > len(earlier.events)]
        self._roles.runs[key, spec.attempt] = RecordedRun(key, spec, events, facts or {}, failure)


class _KillingStarter:
    """Starts runs; tells the first start of a doomed run at which task it is killed."""

    def __init__(self, inner: Starter, dooms: Mapping[str, int]) -> None:
        self._inner = inner
        self._kill_tasks = dooms

    def start(self, run_directory: Path, capabilities: RunCapabilities) -> bool:
        record = json.loads((run_directory / RUN).read_bytes())
        task_number = self._kill_tasks.get(record["key"])
        if task_number is not None and record["start"] == 1:
            plan = json.loads((run_directory / PLAN).read_bytes())
            plan["environ"][DIE_AT_TASK] = str(task_number)
            write_durably(run_directory / PLAN, json.dumps(plan).encode())
        return self._inner.start(run_directory, capabilities)

    def close(self) -> None:
        self._inner.close()

"""Records runs, bounds their time, and kills them where a question needs it. Sits between worker and driver."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boatyard.automation.drivers.local.planning import Ground
from boatyard.automation.drivers.local.records import PLAN, RUN, write_durably
from boatyard.automation.drivers.local.starting import Starter
from boatyard.automation.port import Automation, RunEvent, RunWanted
from boatyard.model.errors import Refused
from boatyard.model.outcome import Done, Outcome, Owned, Waiting
from boatyard.wiring.role_runner import RoleRunner

DIES_AT = "BOATYARD_DIES_AT"  # read by the callback plugin that reports events
_LOOK_SECONDS = 0.05
_AGAIN = "the run was interrupted and begins again"


@dataclass(frozen=True)
class Run:
    """One attempt of a run that has ended."""

    key: str
    wanted: RunWanted
    events: Sequence[RunEvent]
    facts: Mapping[str, str]
    failure: str = ""

    @property
    def part(self) -> str:
        return self.wanted.action

    @property
    def cluster(self) -> str:
        return str(self.wanted.order.get("name", ""))

    @property
    def tasks(self) -> list[str]:
        return [event.task for event in self.events if event.kind == "task"]

    @property
    def last_task(self) -> str:
        return (self.tasks or [""])[-1]

    @property
    def was_killed(self) -> bool:
        return any(event.text == _AGAIN for event in self.events)

    def changed(self) -> list[RunEvent]:
        return [event for event in self.events if event.kind == "changed"]


class WatchedRoles:
    """Replaces the worker's role runner. `doomed`: cluster → task at which the first start of each part is killed."""

    def __init__(self, runner: RoleRunner, *, part_seconds: float) -> None:
        self._runner = runner
        self.part_seconds = part_seconds
        self.doomed: dict[str, int] = {}
        self.spared: set[str] = set()  # parts that are not killed
        self.runs: dict[tuple[str, int], Run] = {}  # by key and attempt, in the order of their end
        self._made: dict[str, Watched] = {}
        self._dooms: dict[str, int] = {}
        workshop = runner.workshop
        workshop.starter = _Killing(workshop.starter, self._dooms)

    def for_hub(self, hub_id: str) -> Watched:
        if hub_id not in self._made:
            self._made[hub_id] = Watched(self._runner.for_hub(hub_id), self)
        return self._made[hub_id]

    async def close(self) -> None:
        """Called by a worker that stops; does nothing. Runs still under way are ended by `end_all`, which follows."""

    async def end_all(self) -> None:
        """Ends the runs under way and closes the runner: otherwise they would outlive the trial."""
        for automation in self._made.values():
            for owned in await automation.list_owned():
                if (owned.key, int(owned.facts["attempt"])) in self.runs:
                    continue  # it has ended; its log stays for a user who keeps the directory
                outcome = await automation.release_run(owned.key)
                while isinstance(outcome, Waiting):
                    await asyncio.sleep(outcome.look_again)
                    outcome = await automation.release_run(owned.key)
        await self._runner.close()

    def of(self, cluster: str) -> Iterator[Run]:
        """The ended runs of the cluster of that name."""
        return (run for run in list(self.runs.values()) if run.cluster == cluster)

    def bounded(self, key: str, spec: RunWanted) -> RunWanted:
        task_number = self.doomed.get(str(spec.order.get("name", "")))
        if task_number is not None and spec.action not in self.spared:
            self._dooms[key] = task_number
        return replace(spec, time_limit=self.part_seconds)


class Watched:
    """The automation port of one hub. Passes every call on and records the result of each run."""

    def __init__(self, inner: Automation, roles: WatchedRoles) -> None:
        self._inner = inner
        self._roles = roles
        self._wanted: dict[str, RunWanted] = {}

    async def check_ready(self) -> None:
        await self._inner.check_ready()

    async def caution(self) -> str:
        return await self._inner.caution()

    async def ensure_run(self, key: str, spec: RunWanted) -> Outcome:
        spec = self._wanted[key] = self._roles.bounded(key, spec)
        try:
            outcome = await self._inner.ensure_run(key, spec)
        except Refused as error:
            await self._remember(key, spec, failure=str(error))
            raise
        if isinstance(outcome, Waiting):
            return replace(outcome, look_again=min(outcome.look_again, _LOOK_SECONDS))
        await self._remember(key, spec, facts=outcome.facts)
        return outcome

    async def release_run(self, key: str) -> Outcome:
        spec = self._wanted.get(key)
        if spec is not None and (key, spec.attempt) not in self._roles.runs:
            await self._remember(key, spec, failure="it was ended before its end")
        outcome = await self._inner.release_run(key)
        if isinstance(outcome, Done):
            self._wanted.pop(key, None)
        return outcome

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return await self._inner.events(key, after)

    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        return await self._inner.list_owned(prefix)

    async def close(self) -> None:
        await self._inner.close()

    async def _remember(
        self,
        key: str,
        spec: RunWanted,
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
        self._roles.runs[key, spec.attempt] = Run(key, spec, events, facts or {}, failure)


class _Killing:
    """Starts runs; tells the first start of a doomed run at which task it is killed."""

    def __init__(self, inner: Starter, dooms: Mapping[str, int]) -> None:
        self._inner = inner
        self._dooms = dooms

    def start(self, run_directory: Path, ground: Ground) -> bool:
        record = json.loads((run_directory / RUN).read_bytes())
        task_number = self._dooms.get(record["key"])
        if task_number is not None and record["start"] == 1:
            plan = json.loads((run_directory / PLAN).read_bytes())
            plan["environ"][DIES_AT] = str(task_number)
            write_durably(run_directory / PLAN, json.dumps(plan).encode())
        return self._inner.start(run_directory, ground)

    def close(self) -> None:
        self._inner.close()

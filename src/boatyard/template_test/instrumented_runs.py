"""Runs that are watched, bounded, and killed where a question asks for it. Stands between worker and driver."""

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

DIES_AT = "BOATYARD_DIES_AT"  # read by the callback that tells events
_LOOK_SECONDS = 0.05
_AGAIN = "the run was interrupted and begins again"


@dataclass(frozen=True)
class Run:
    """One attempt that has come to its end."""

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
        return [one.task for one in self.events if one.kind == "task"]

    @property
    def last_task(self) -> str:
        return (self.tasks or [""])[-1]

    @property
    def was_killed(self) -> bool:
        return any(one.text == _AGAIN for one in self.events)

    def changed(self) -> list[RunEvent]:
        return [one for one in self.events if one.kind == "changed"]


class WatchedRoles:
    """Given to the worker in place of its own. `doomed`: cluster → at which task each part's first start is killed."""

    def __init__(self, runner: RoleRunner, *, part_seconds: float) -> None:
        self._runner = runner
        self.part_seconds = part_seconds
        self.doomed: dict[str, int] = {}
        self.spared: set[str] = set()  # parts that are not killed
        self.runs: dict[tuple[str, int], Run] = {}  # by key and attempt, in the order of their end
        self._made: dict[str, Watched] = {}
        self._dooms: dict[str, int] = {}
        shop = runner.workshop
        shop.starter = _Killing(shop.starter, self._dooms)

    def for_hub(self, hub_id: str) -> Watched:
        if hub_id not in self._made:
            self._made[hub_id] = Watched(self._runner.for_hub(hub_id), self)
        return self._made[hub_id]

    async def close(self) -> None:
        """Said by a worker that ends. Whoever ends the trial ends what is still under way first: `end_all`."""

    async def end_all(self) -> None:
        """Ends what is still under way, and lets go. Runs outlive who has started them; those of a trial must not."""
        for one in self._made.values():
            for owned in await one.list_owned():
                if (owned.key, int(owned.facts["attempt"])) in self.runs:
                    continue  # it has ended, and its story is for whoever keeps the yard
                outcome = await one.release_run(owned.key)
                while isinstance(outcome, Waiting):
                    await asyncio.sleep(outcome.look_again)
                    outcome = await one.release_run(owned.key)
        await self._runner.close()

    def of(self, cluster: str) -> Iterator[Run]:
        """Ended runs of the cluster of that name."""
        return (run for run in list(self.runs.values()) if run.cluster == cluster)

    def bounded(self, key: str, wanted: RunWanted) -> RunWanted:
        number = self.doomed.get(str(wanted.order.get("name", "")))
        if number is not None and wanted.action not in self.spared:
            self._dooms[key] = number
        return replace(wanted, time_limit=self.part_seconds)


class Watched:
    """The automation port; everything passes through, and what came of a run is remembered."""

    def __init__(self, inner: Automation, roles: WatchedRoles) -> None:
        self._inner = inner
        self._roles = roles
        self._wanted: dict[str, RunWanted] = {}

    async def check_ready(self) -> None:
        await self._inner.check_ready()

    async def caution(self) -> str:
        return await self._inner.caution()

    async def ensure_run(self, key: str, wanted: RunWanted) -> Outcome:
        wanted = self._wanted[key] = self._roles.bounded(key, wanted)
        try:
            outcome = await self._inner.ensure_run(key, wanted)
        except Refused as error:
            await self._remember(key, wanted, failure=str(error))
            raise
        if isinstance(outcome, Waiting):
            return replace(outcome, look_again=min(outcome.look_again, _LOOK_SECONDS))
        await self._remember(key, wanted, facts=outcome.facts)
        return outcome

    async def release_run(self, key: str) -> Outcome:
        wanted = self._wanted.get(key)
        if wanted is not None and (key, wanted.attempt) not in self._roles.runs:
            await self._remember(key, wanted, failure="it was ended before its end")
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
        wanted: RunWanted,
        *,
        facts: Mapping[str, str] | None = None,
        failure: str = "",
    ) -> None:
        told: list[RunEvent] = []
        while page := await self._inner.events(key, told[-1].number if told else 0):
            told += page
        earlier = self._roles.runs.get((key, wanted.attempt - 1))
        if earlier is not None:  # the story of a key goes on
            told = [one for one in told if one.number > len(earlier.events)]
        self._roles.runs[key, wanted.attempt] = Run(key, wanted, told, facts or {}, failure)


class _Killing:
    """Starts runs; the first start of a doomed one is told at which task it dies."""

    def __init__(self, inner: Starter, dooms: Mapping[str, int]) -> None:
        self._inner = inner
        self._dooms = dooms

    def start(self, place: Path, ground: Ground) -> bool:
        record = json.loads((place / RUN).read_bytes())
        number = self._dooms.get(record["key"])
        if number is not None and record["start"] == 1:
            plan = json.loads((place / PLAN).read_bytes())
            plan["environ"][DIES_AT] = str(number)
            write_durably(place / PLAN, json.dumps(plan).encode())
        return self._inner.start(place, ground)

    def close(self) -> None:
        self._inner.close()

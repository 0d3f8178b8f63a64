"""One lane of the proof: a database, a twin, and the worker processes that live and die between them.

PostgreSQL and the twin outlive every worker. Clusters go through a lane one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import asyncpg
import msgspec

from boatyard.app import catalogue, invariants
from boatyard.app.proving.asking import Tenant
from boatyard.app.proving.compare import EndState, end_state
from boatyard.app.proving.crew import CrewMember
from boatyard.app.proving.worker import WorkerSpec
from boatyard.app.settings import Settings
from boatyard.app.twins import start_twin
from boatyard.ledger import schema
from boatyard.ledger.changes import Due
from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from boatyard.model.errors import Unavailable
from boatyard.model.generated.osac import Cluster, ClusterState, Hub, HubState
from boatyard.twin.client import TwinClient
from boatyard.twin.layout import HubLayout, Layout, write_layout

KEY = bytes(range(32))
TEMPLATE = "prove_template"
LOOK_SECONDS = 0.02
Done = Callable[[Cluster | None], bool]


@dataclass(frozen=True)
class Pace:
    """Seconds. The lease is long, so that a busy machine loses none by accident, and is not sat out: see `_bury`."""

    lease: float = 15.0
    poll: float = 0.1
    patience: float = 30.0
    short_lease: float = 1.0  # of a worker that stands still past it


def layout() -> Layout:
    """Two hubs with room for a few small clusters."""
    return Layout(
        hubs={
            f"hub-{number}": HubLayout(
                hosts={"bm-small": 8},
                subnets=f"10.{number}.0.0/16",
                floating=f"198.51.{number}.0/24",
                zone=f"zone-{number}.example",
            )
            for number in (1, 2)
        }
    )


class Lane:
    """Made by `open_lane`. At most one worker is armed at a time; `crew` is whoever is alive."""

    def __init__(
        self,
        spec: WorkerSpec,
        ledger: Ledger,
        twin: TwinClient,
        database: asyncpg.Connection[asyncpg.Record],
        pace: Pace,
    ) -> None:
        self.spec = spec
        self.ledger = ledger
        self.twin = twin
        self._database = database
        self.pace = pace
        self.tenant = Tenant(ledger)
        self.crew: list[CrewMember] = []

    async def hire(self, **changed: object) -> CrewMember:
        """Starts a worker, of another kind when something is `changed`."""
        member = await CrewMember.start(replace(self.spec, **changed))  # type: ignore[arg-type]
        self.crew.append(member)
        return member

    async def outsider(self) -> CrewMember:
        """A worker beside the crew: nobody counts on it, and nobody replaces it."""
        return await CrewMember.start(replace(self.spec, lease=self.pace.short_lease))

    async def worker(self) -> CrewMember:
        """The one that is alive; a new one when there is none."""
        for member in self.crew:
            if member.gone.is_set():
                await self._bury(member)
        self.crew = [member for member in self.crew if not member.gone.is_set()]
        return self.crew[0] if self.crew else await self.hire()

    async def _bury(self, member: CrewMember, kind: str = "") -> None:
        """The leases of the dead have run out: that time has passed is all that is told to PostgreSQL."""
        passed = (
            "update work set due = clock_timestamp() - interval '1 millisecond'"
            " where token is not null and worker like '%/' || $1 and $2 in ('', kind)"
        )
        await self._database.execute(passed, str(member.pid), kind)

    async def hand_over_deletion(self, member: CrewMember, cluster_id: str) -> None:
        """A new worker comes while the dead one's lease on the order lasts: first of all the order learns its end."""
        await self._bury(member, kind="Cluster")
        await self.hire()
        query = (
            "select not exists (select from documents where kind = 'Cluster' and id = $1) or exists ("
            "select from documents where kind = 'Order' and id = $1"
            " and data #> '{metadata,deletion_timestamp}' is not null)"
        )

        async def handed_over() -> bool:
            return bool(await self._database.fetchval(query, cluster_id))

        await self._wait_for(
            handed_over, f"the order of {cluster_id} did not learn of its deletion"
        )

    async def _wait_for(self, so: Callable[[], Awaitable[bool]], otherwise: str) -> None:
        try:
            async with asyncio.timeout(self.pace.patience):
                while True:
                    if await so():
                        return
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError as error:
            raise Unavailable(f"{otherwise} in {self.pace.patience:g} s") from error

    async def dismiss_all(self) -> None:
        for member in self.crew:
            member.signal(signal.SIGCONT)
            await member.dismiss()
        self.crew = []

    async def kill_all(self) -> None:
        for member in self.crew:
            member.kill()
            await member.dismiss()
            await self._bury(member)
        self.crew = []

    async def open_for_business(self) -> None:
        """Until every hub has been looked at: before that nothing can be placed."""
        await self.worker()

        async def ready() -> bool:
            hubs = (await self.ledger.list(Hub)).items
            return all(hub.status.state == HubState.READY for hub in hubs)

        await self._wait_for(ready, "the hubs did not become ready")

    async def reach(self, cluster_id: str, done: Done) -> None:
        """Until the cluster is as it should be and nothing is under way. Dead workers are replaced.

        Unavailable when that does not come about in the time there is.
        """
        await self._until(cluster_id, done)

    async def see_death_or(self, member: CrewMember, cluster_id: str, done: Done) -> None:
        """Until that worker has died, or all is done and at rest without its death. Nobody is replaced."""
        await self._until(cluster_id, done, mourned=member)

    async def _until(self, cluster_id: str, done: Done, mourned: CrewMember | None = None) -> None:
        try:
            async with asyncio.timeout(self.pace.patience):
                while mourned is None or not mourned.gone.is_set():
                    if mourned is None:
                        await self.worker()
                    busy, cluster = await self._look(cluster_id)
                    if done(cluster) and not busy:
                        return
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError as error:
            raise Unavailable(
                f"{cluster_id} did not get there in {self.pace.patience:g} s: {await self._why()}"
            ) from error

    async def _look(self, cluster_id: str) -> tuple[bool, Cluster | None]:
        rows = await self.ledger.read(
            "looking at the yard",
            "select exists (select from work where kind <> 'Hub'"
            " and (token is not null or due <= clock_timestamp())) as busy,"
            " (select data from documents where kind = 'Cluster' and id = $1) as data",
            cluster_id,
        )
        data = rows[0]["data"]
        cluster = msgspec.json.decode(data, type=Cluster) if data else None
        return rows[0]["busy"], cluster

    async def _why(self) -> str:
        rows = await self.ledger.read(
            "looking at the yard",
            "select id, data #> '{status,steps}' as steps from documents where kind = 'Order'",
        )
        words = []
        for row in rows:
            for step in msgspec.json.decode(row["steps"] or b"[]"):
                if step.get("message"):
                    words.append(f"{row['id']} {step['name']}: {step['message']}")
        return "; ".join(words) or "no step says why"

    async def poke(self, kind: str, id: str) -> None:
        """Makes something due now."""
        now = self.ledger.clock.now()
        await self.ledger.commit([Due(kind, id, now)], now=now)

    async def end_state(self, cluster_id: str) -> EndState:
        return await end_state(self.ledger, self.twin, cluster_id, cluster_id)

    async def breaches(self) -> list[str]:
        """What the invariant checker says of the whole lane."""
        found = await invariants.check(
            self.ledger, self.twin, acknowledged=self.tenant.acknowledged
        )
        return [str(breach) for breach in found]


def is_ready(cluster: Cluster | None) -> bool:
    """The cluster is as its owner asked for, and says so."""
    return (
        cluster is not None
        and cluster.status.state == ClusterState.READY
        and cluster.status.observed_generation == cluster.metadata.generation
    )


def is_failed(cluster: Cluster | None) -> bool:
    return cluster is not None and cluster.status.state == ClusterState.FAILED


def is_gone(cluster: Cluster | None) -> bool:
    return cluster is None


@asynccontextmanager
async def open_lane(
    postgres: EmbeddedPostgres, directory: Path, name: str, *, pace: Pace, plant: str = ""
) -> AsyncIterator[Lane]:
    """A lane with a small catalogue, two hubs and nobody at work yet. Its twin takes no time for anything."""
    await asyncio.to_thread(directory.mkdir, parents=True)
    database = f"lane_{os.getpid()}_{time.monotonic_ns()}_{name}"
    await _execute(postgres, f"create database {database} template {TEMPLATE}")
    (directory / "layout.json").write_bytes(write_layout(layout()))
    settings = Settings(
        data=str(directory), twin_delays="instant", twin_layout=str(directory / "layout.json")
    )
    ledger = await Ledger.open(
        postgres.url(database), seal=Seal.from_bytes(KEY), application="prove parent", pool_size=2
    )
    try:
        await catalogue.fill(ledger, layout(), now=ledger.clock.now())
        async with start_twin(settings) as socket:
            spec = WorkerSpec(
                url=postgres.url(database),
                key=KEY,
                twin_socket=socket,
                log=str(directory / "workers.log"),
                lease=pace.lease,
                poll=pace.poll,
                plant=plant,
            )
            twin = TwinClient(Path(socket))
            connection = await asyncpg.connect(postgres.url(database))
            lane = Lane(spec, ledger, twin, connection, pace)
            try:
                await lane.open_for_business()
                yield lane
            finally:
                await lane.kill_all()
                await twin.close()
                await connection.close()
    finally:
        await ledger.close()
        await _execute(postgres, f"drop database {database} with (force)")


async def make_template(postgres: EmbeddedPostgres) -> None:
    """A migrated database that lanes are cloned from in milliseconds. May be called again."""
    with contextlib.suppress(asyncpg.DuplicateDatabaseError):
        await _execute(postgres, f"create database {TEMPLATE}")
    await schema.migrate(postgres.url(TEMPLATE))


async def _execute(postgres: EmbeddedPostgres, statement: str) -> None:
    connection = await asyncpg.connect(postgres.url("postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()

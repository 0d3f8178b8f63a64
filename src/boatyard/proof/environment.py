"""One environment of the proof: a database, a twin, and worker processes that are started and killed.

PostgreSQL, the twin and, where clusters are real, their keeper outlive every worker. An environment handles one
cluster after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import asyncpg
import msgspec

from boatyard.ledger.changes import Due
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import Order
from boatyard.model.generated.osac import Cluster, ClusterState, Hub, HubState
from boatyard.proof import invariants
from boatyard.proof.end_state import EndState, read_end_state
from boatyard.proof.environment_keeper import EnvironmentKeeper
from boatyard.proof.evidence import Effect, gather_evidence
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.kube_hub import EnvironmentHub
from boatyard.proof.role_runs import EnvironmentRuns, find_run_keys
from boatyard.proof.tenant_requests import ClusterRequest, TenantRequests
from boatyard.proof.worker import WorkerSpec
from boatyard.proof.worker_process import ProofWorker
from boatyard.twin.client import TwinClient

SETTLE_SECONDS = 0.1
_ALL_EVENTS = 100_000
_KEEPER_CHECK_INTERVAL = (
    5  # every fifth time: looking at processes costs more than looking at the ledger
)
ClusterPredicate = Callable[[Cluster | None], bool]


@dataclass(frozen=True)
class ProofTimings:
    """Durations in seconds.

    The lease is long, so that a busy machine loses none by accident. Nobody waits for it to end: see `_bury`.
    """

    lease: float = 15.0
    poll: float = 0.1
    look_seconds: float = 0.02  # between two looks at the cluster
    timeout_seconds: float = 30.0
    settle_seconds: float = (
        10.0  # for processes to come to rest after the cluster is reported as done
    )
    short_lease: float = 1.0  # of a worker that is stopped for longer than its lease


class ProofEnvironment:
    """Made by `open_environment`. At most one worker has a target at a time; `crew` are the workers that live."""

    def __init__(
        self,
        spec: WorkerSpec,
        ledger: Ledger,
        twin: TwinClient,
        database: asyncpg.Connection[asyncpg.Record],
        timings: ProofTimings,
        request: ClusterRequest,
        keeper: EnvironmentKeeper | None,
        hub: EnvironmentHub | None = None,
        runs: EnvironmentRuns | None = None,
    ) -> None:
        self.spec = spec
        self.ledger = ledger
        self.twin = twin
        self._database = database
        self.timings = timings
        self.tenant = TenantRequests(ledger, request)
        self._keeper = keeper
        self._hub = hub
        self._runs = runs
        self.workers: list[ProofWorker] = []
        self._targeted_workers: list[tuple[KillPoint, ProofWorker]] = []
        self._next_targets: list[KillPoint] = []  # targets of the workers that replace them

    @property
    def keeper(self) -> EnvironmentKeeper:
        """The keeper of the clusters. Only for environments whose clusters are real."""
        assert self._keeper is not None
        return self._keeper

    async def start_worker(
        self, *, target: KillPoint | None = None, ignores_notifications: bool = False
    ) -> ProofWorker:
        """Starts a worker, which dies at `target` if one is given."""
        spec = replace(self.spec, target=target, ignores_notifications=ignores_notifications)
        worker = await ProofWorker.start(spec)
        self.workers.append(worker)
        return worker

    async def start_short_lease_worker(self) -> ProofWorker:
        """Starts a worker with a short lease that is not part of the crew and is not replaced when it dies."""
        return await ProofWorker.start(replace(self.spec, lease=self.timings.short_lease))

    async def ensure_worker(self) -> ProofWorker:
        """The worker that lives, or a new one. The next target, if there is one, is given to a new one."""
        for worker in self.workers:
            if worker.ended.is_set():
                await self._expire_leases(worker)
        self.workers = [worker for worker in self.workers if not worker.ended.is_set()]
        if self.workers:
            return self.workers[0]
        if not self._next_targets:
            return await self.start_worker()
        target = self._next_targets.pop(0)
        worker = await self.start_worker(target=target)
        self._targeted_workers.append((target, worker))
        return worker

    async def set_targets(self, worker: ProofWorker, targets: Sequence[KillPoint]) -> None:
        """Makes the worker die at the first target, its replacement at the second, and so on."""
        await worker.set_target(targets[0] if targets else None)
        self._targeted_workers = [(targets[0], worker)] if targets else []
        self._next_targets = list(targets[1:])

    async def collect_kills(self) -> tuple[list[KillPoint], list[KillPoint]]:
        """The targets at which workers have died, and those that none reached. Clears all targets."""
        killed: list[KillPoint] = []
        unmet = self._next_targets
        for point, worker in self._targeted_workers:
            (unmet if await worker.clear_target() else killed).append(point)
        self._targeted_workers, self._next_targets = [], []
        return killed, unmet

    async def _expire_leases(self, worker: ProofWorker, kind: str = "") -> None:
        """Expires the leases of a dead worker, as waiting for their end would. Changes nothing else in PostgreSQL."""
        query = (
            "update work set due = clock_timestamp() - interval '1 millisecond'"
            " where token is not null and worker like '%/' || $1 and $2 in ('', kind)"
        )
        await self._database.execute(query, str(worker.pid), kind)
        if self._hub is not None:
            await self._hub.expire_operator_lease()

    async def hand_over_deletion(self, worker: ProofWorker, cluster_id: str) -> None:
        """Starts a new worker while the dead one has its lease on the order; waits until the order is to be deleted."""
        await self._expire_leases(worker, kind="Cluster")
        await self.start_worker()
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

    async def _wait_for(self, condition: Callable[[], Awaitable[bool]], error_text: str) -> None:
        try:
            async with asyncio.timeout(self.timings.timeout_seconds):
                while True:
                    if await condition():
                        return
                    await asyncio.sleep(self.timings.look_seconds)
        except TimeoutError as error:
            raise Unavailable(f"{error_text} in {self.timings.timeout_seconds:g} s") from error

    async def stop_all(self) -> None:
        for worker in self.workers:
            worker.signal(signal.SIGCONT)
            await worker.stop()
        self.workers = []

    async def kill_all(self) -> None:
        for worker in self.workers:
            worker.kill()
            await worker.stop()
            await self._expire_leases(worker)
        self.workers = []

    async def wait_until_hubs_ready(self) -> None:
        """Waits until every hub is ready; before that no cluster can be placed."""
        await self.ensure_worker()

        async def ready() -> bool:
            hubs = (await self.ledger.documents.list(Hub)).items
            for hub in hubs:
                if hub.status.state not in (HubState.READY, HubState.UNSPECIFIED):
                    await self.make_due("Hub", hub.id)
            return all(hub.status.state == HubState.READY for hub in hubs)

        await self._wait_for(ready, "the hubs did not become ready")

    async def wait_until(self, cluster_id: str, done: ClusterPredicate) -> None:
        """Waits until `done` holds for the cluster and no work is in progress. Replaces dead workers.

        Unavailable when that takes longer than `pace.patience`.
        """
        await self._wait_until_done(cluster_id, done)

    async def wait_for_death_or(
        self, worker: ProofWorker, cluster_id: str, done: ClusterPredicate
    ) -> None:
        """Waits until the worker has died, or until all is done without its death. Replaces nobody."""
        await self._wait_until_done(cluster_id, done, victim=worker)

    async def _wait_until_done(
        self, cluster_id: str, done: ClusterPredicate, victim: ProofWorker | None = None
    ) -> None:
        try:
            async with asyncio.timeout(self.timings.timeout_seconds):
                for attempt in itertools.count():
                    if victim is not None and victim.ended.is_set():
                        return
                    if victim is None:
                        await self.ensure_worker()
                    if self._keeper and attempt % _KEEPER_CHECK_INTERVAL == 0:
                        await self._keeper.check_duplicates()
                    busy, cluster = await self._read_cluster(cluster_id)
                    if done(cluster) and not busy:
                        return
                    await asyncio.sleep(self.timings.look_seconds)
        except TimeoutError as error:
            raise Unavailable(
                f"{cluster_id} did not get there in {self.timings.timeout_seconds:g} s:"
                f" {await self._explain(cluster_id)}"
            ) from error

    async def _read_cluster(self, cluster_id: str) -> tuple[bool, Cluster | None]:
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

    async def _explain(self, cluster_id: str) -> str:
        rows = await self.ledger.read(
            "looking at the yard",
            "select id, data #> '{status,steps}' as steps from documents where kind = 'Order'",
        )
        messages = []
        for row in rows:
            for step in msgspec.json.decode(row["steps"] or b"[]"):
                if step.get("message"):
                    messages.append(f"{row['id']} {step['name']}: {step['message']}")
        _, cluster = await self._read_cluster(cluster_id)
        state = cluster.status.state.name if cluster else "gone"
        return f"it is {state}; {'; '.join(messages) or 'no step says why'}"

    async def make_due(self, kind: str, id: str) -> None:
        """Makes an object due now."""
        now = self.ledger.clock.now()
        await self.ledger.commit([Due(kind, id, now)], now=now)

    async def read_end_state(self, cluster_id: str) -> EndState:
        keeper_state = await self._keeper.read_state() if self._keeper else None
        end = await read_end_state(self.ledger, self.twin, cluster_id, cluster_id, keeper_state)
        if self._runs is not None:
            items = await self._find_run_keys(cluster_id)
            runs, strays = await asyncio.to_thread(self._runs.read_runs, cluster_id, items)
            end = replace(end, kept={**end.kept, **runs}, strays=(*end.strays, *strays))
        if self._hub is None:
            return end
        # The log of an order's copy has only the phases that the service happened to see.
        story = {kind: reasons for kind, reasons in end.story.items() if kind != "Order"}
        return replace(end, story=story, kept=await self._hub.read_objects(cluster_id))

    async def _find_run_keys(self, cluster_id: str) -> set[str]:
        """The keys of every run that the order ever had, from the log. Processes of a removed run may be left."""
        run_keys: set[str] = set()
        for event in await self.ledger.events.list_history([("Order", cluster_id)], _ALL_EVENTS):
            if event.doc:
                run_keys |= find_run_keys(msgspec.json.decode(event.doc, type=Order))
        return run_keys

    async def read_settled_end(self, cluster_id: str, expected: EndState | None = None) -> EndState:
        """The end state once real processes are at rest: as expected, or equal twice; else as it is after a while."""
        end = await self.read_end_state(cluster_id)
        if self._keeper is None and self._hub is None and self._runs is None:
            return end
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.timings.settle_seconds):
                while end != expected:
                    await asyncio.sleep(SETTLE_SECONDS)
                    before, end = end, await self.read_end_state(cluster_id)
                    if expected is None and end == before:
                        break
        return end

    async def read_end_after_delete(self, cluster_id: str) -> EndState:
        """The end state of a deleted cluster once nothing of it is kept; else as it is after a while."""
        end = await self.read_end_state(cluster_id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.timings.settle_seconds):
                while end.kept or end.strays:
                    await asyncio.sleep(SETTLE_SECONDS)
                    end = await self.read_end_state(cluster_id)
        return end

    async def find_breaches(self) -> list[str]:
        """What the invariant checker finds in the whole environment, in words."""
        evidence = await gather_evidence(self.ledger, self.twin)
        contradictions: list[str] = []
        if self._keeper:
            keeper_state = await self._keeper.read_state()
            contradictions = keeper_state.find_contradictions()
            keeper_effects = [
                Effect(item.key, item.kind, applied=1, removed=0, calls=1)
                for item in keeper_state.held
            ]
            evidence = replace(
                evidence,
                held_items=(*evidence.held_items, *keeper_state.held),
                effects=(*evidence.effects, *keeper_effects),
            )
        if self._hub:
            evidence = replace(evidence, claims=(*evidence.claims, *await self._hub.list_claims()))
        breaches = invariants.find_breaches(evidence, acknowledged=self.tenant.acknowledged)
        return [*contradictions, *(str(breach) for breach in breaches)]


def is_ready(cluster: Cluster | None) -> bool:
    """Whether the cluster is READY in its latest generation."""
    return (
        cluster is not None
        and cluster.status.state == ClusterState.READY
        and cluster.status.observed_generation == cluster.metadata.generation
    )


def is_resting(cluster: Cluster | None) -> bool:
    """Whether the cluster is HIBERNATED in its latest generation."""
    return (
        cluster is not None
        and cluster.status.state == ClusterState.HIBERNATED
        and cluster.status.observed_generation == cluster.metadata.generation
    )


def is_failed(cluster: Cluster | None) -> bool:
    return cluster is not None and cluster.status.state == ClusterState.FAILED


def is_gone(cluster: Cluster | None) -> bool:
    return cluster is None

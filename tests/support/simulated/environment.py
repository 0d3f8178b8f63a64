"""The whole product in one process, on the twin and on stepped time. For journeys.

What is input: what a tenant or operator asks for, and the twin's moods and faults. What is observed: the
ledger's documents and events, and the twin's own truth. How many passes it takes is nobody's business.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime, timedelta
from typing import Any

import msgspec

from boatyard.engine.queue import SqlQueue
from boatyard.engine.worker import Worker, WorkerLimits
from boatyard.ledger.changes import Archive, Due, Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from boatyard.model.generated.boatyard import Explanation, Leftover, Order, Receipt
from boatyard.model.generated.osac import (
    Cluster,
    ClusterNodeSet,
    ClusterSpec,
    ClusterState,
    ClusterStatus,
    ClusterTemplateReference,
    ClusterVersionReference,
    HostTypeReference,
    Hub,
    Metadata,
)
from boatyard.proof import invariants
from boatyard.proof.evidence import ClaimRow
from boatyard.proof.invariants import Breach
from boatyard.resources.orders import rules
from boatyard.resources.orders.explain import explain
from boatyard.resources.orders.hibernation import LONGEST_FREEZE
from boatyard.twin.calls import LocalTwin
from boatyard.twin.layout import Layout
from boatyard.twin.world import TwinWorld
from boatyard.wiring import seed_catalogue
from boatyard.wiring.driver_factory import LocalServers
from boatyard.wiring.hub_cache import HubCache
from boatyard.wiring.hub_clients import HubClients
from boatyard.wiring.hub_order_books import HubOrderBooks
from boatyard.wiring.worker import HubDirectory, make_reconcilers
from tests.support.memory_automation import Roles
from tests.support.simulated.twin import (
    AnnouncingTwin,
    OnEffect,
    SteppedClock,
    no_effect,
    no_write,
    small_layout,
)

Opened = Callable[[Any], AbstractAsyncContextManager[Any]]


class SimulatedEnvironment:
    """One Boatyard. `run` lets it work until something is so, jumping from due moment to due moment."""

    form = "embedded"  # where its hubs keep their orders

    def __init__(
        self, ledger: Ledger, world: TwinWorld, clock: SteppedClock, database_url: str = ""
    ) -> None:
        self.ledger = ledger
        self.world = world
        self.clock = clock
        self.database_url = database_url
        self.on_effect: OnEffect = no_effect
        self.on_hub_write: Callable[[], None] = no_write  # before and after, where a hub has an API
        self.twin = LocalTwin(world, clock)
        self.announcing_twin = AnnouncingTwin(self.twin, lambda *what: self.on_effect(*what))
        self.roles = Roles()
        site = LocalServers(
            twin_socket="",
            connect_twin=lambda _: self.announcing_twin,
            automation=lambda _: self.roles,
        )
        hubs = HubCache(ledger)
        hubs.fresh_seconds = 0.0
        self.hubs = HubDirectory(HubOrderBooks(hubs, HubClients()), site)
        self.acknowledged: list[tuple[str, str, int]] = []
        self._count = 0
        self.freeze_for = LONGEST_FREEZE
        self.worker = self.make_worker()

    def make_worker(self, only: Sequence[str] = (), name: str = "journey") -> Worker:
        """A worker for every kind, or `only` for some."""
        made = make_reconcilers(
            self.ledger,
            self.hubs,
            delete_within=timedelta(minutes=15),
            freeze_for=self.freeze_for,
        )
        reconcilers = {kind: one for kind, one in made.items() if kind in only or not only}
        queue = SqlQueue(self.ledger, kinds=tuple(reconcilers), worker=name, lease_seconds=30.0)

        async def no_hint(seconds: float) -> None:
            raise AssertionError("a journey never waits")

        return Worker(
            queue=queue,
            reconcilers=reconcilers,
            clock=self.clock,
            wait_for_hint=no_hint,
            limits=WorkerLimits(),
        )

    def worker_for(self, *kinds: str) -> Worker:
        return self.make_worker(only=kinds)

    async def replace_worker(self, name: str) -> None:
        """The worker has died; another goes on."""
        self.worker = self.make_worker(name=name)

    async def next_due(self) -> datetime | None:
        return await self.ledger.work.next_due()

    async def call(self, verb: str, /, **args: Any) -> Any:
        """Asks the twin itself, past every fault."""
        reply = self.world.call(f"twin.{verb}", args, self.clock.now().timestamp())
        if reply.error is not None:
            raise reply.error
        return reply.value

    async def break_service(self, service: str, profile: str, hub: str = "*", **how: Any) -> None:
        await self.call("set_fault", hub=hub, service=service, profile=profile, **how)

    async def heal(self) -> None:
        await self.call("clear_faults")

    async def order(
        self,
        name: str,
        *,
        tenant: str = "acme",
        sizes: Mapping[str, int] | None = None,
        **spec: Any,
    ) -> str:
        """What the API does for `create cluster`: one write."""
        self._count += 1
        cluster_id = f"c-{self._count:04}-{name}"
        node_sets = {
            node_set: ClusterNodeSet(
                host_type=HostTypeReference(id="bm-small", name="bm-small"), size=size
            )
            for node_set, size in (sizes or {"compute": 3}).items()
        }
        now = self.clock.now()
        cluster = Cluster(
            id=cluster_id,
            metadata=Metadata(
                name=name,
                tenant=tenant,
                creator="ann",
                creation_timestamp=now,
                generation=1,
                finalizers=("boatyard.io/order",),
            ),
            spec=ClusterSpec(
                template=ClusterTemplateReference(id="small", name="small"),
                version=ClusterVersionReference(id="version-4.17.9", name="4-17-9"),
                node_sets=node_sets,
                pull_secret="pull-secret-of-" + name,
                **spec,
            ),
            status=ClusterStatus(state=ClusterState.PROGRESSING),
        )
        await self.ledger.commit(
            [Insert(cluster), Due("Cluster", cluster_id, now, tenant=tenant)], now=now
        )
        self.acknowledged.append(("Cluster", cluster_id, 0))
        return cluster_id

    async def scale(self, cluster_id: str, **sizes: int) -> None:
        cluster = await self.cluster(cluster_id)
        node_sets = {
            name: msgspec.structs.replace(node_set, size=sizes.get(name, node_set.size))
            for name, node_set in cluster.spec.node_sets.items()
        }
        await self.change(cluster_id, node_sets=node_sets)

    async def set_version(self, cluster_id: str, version: str) -> None:
        reference = ClusterVersionReference(id=f"version-{version}", name=version.replace(".", "-"))
        await self.change(cluster_id, version=reference)

    async def change(self, cluster_id: str, **fields: Any) -> None:
        """What the API does for an update of the spec: one write, one generation more."""
        cluster = await self.cluster(cluster_id)
        spec = msgspec.structs.replace(cluster.spec, **fields)
        metadata = msgspec.structs.replace(
            cluster.metadata, generation=cluster.metadata.generation + 1
        )
        await self._replace(msgspec.structs.replace(cluster, spec=spec, metadata=metadata))

    async def delete(self, cluster_id: str) -> None:
        cluster = await self.cluster(cluster_id)
        if cluster.metadata.deletion_timestamp is None:
            metadata = msgspec.structs.replace(
                cluster.metadata, deletion_timestamp=self.clock.now()
            )
            await self._replace(msgspec.structs.replace(cluster, metadata=metadata))

    async def retry(self, cluster_id: str) -> None:
        order = await self.order_of(cluster_id)
        now = self.clock.now()
        await self.ledger.commit(
            [Replace(rules.retry(order, now)), Due("Order", cluster_id, now)], now=now
        )

    async def retry_if_ordered(self, cluster_id: str) -> None:
        if await self.ledger.documents.get(Order, cluster_id) is not None:
            await self.retry(cluster_id)

    async def change_hub(self, hub_id: str, **fields: Any) -> None:
        """What the API does when an operator changes a hub."""
        hub = await self.ledger.documents.get(Hub, hub_id)
        assert hub is not None
        metadata = msgspec.structs.replace(hub.metadata, generation=hub.metadata.generation + 1)
        spec = msgspec.structs.replace(hub.spec, **fields)
        changed = msgspec.structs.replace(hub, metadata=metadata, spec=spec)
        now = self.clock.now()
        await self.ledger.commit([Replace(changed), Due("Hub", hub_id, now, hub=hub_id)], now=now)

    async def forget_hub(self, hub_id: str) -> None:
        """A hub is taken out of the ledger while there are orders on it."""
        hub = await self.ledger.documents.get(Hub, hub_id)
        assert hub is not None
        await self.ledger.commit([Archive(hub)], now=self.clock.now())

    async def _replace(self, cluster: Cluster) -> None:
        now = self.clock.now()
        due = Due("Cluster", cluster.id, now, tenant=cluster.metadata.tenant)
        await self.ledger.commit([Replace(cluster), due], now=now)
        self.acknowledged.append(("Cluster", cluster.id, cluster.metadata.version + 1))

    async def cluster(self, cluster_id: str) -> Cluster:
        cluster = await self.ledger.documents.get(Cluster, cluster_id)
        assert cluster is not None, f"cluster {cluster_id} is gone"
        return cluster

    async def order_of(self, cluster_id: str) -> Order:
        order = await self.ledger.documents.get(Order, cluster_id)
        assert order is not None, f"order {cluster_id} is gone"
        return order

    async def leftover_of(self, cluster_id: str) -> Leftover | None:
        return await self.ledger.documents.get(Leftover, cluster_id)

    async def receipt_of(self, cluster_id: str) -> Receipt:
        """The receipt of a deletion that has ended."""
        order = await self.ledger.documents.get_archived(Order, cluster_id)
        assert order is not None, f"order {cluster_id} has not ended"
        return order.status.receipt

    async def explain(self, cluster_id: str, *, operator: bool = True) -> Explanation:
        cluster = await self.cluster(cluster_id)
        order = await self.ledger.documents.get(Order, cluster_id)
        return explain(cluster, order, now=self.clock.now(), operator=operator)

    async def state(self, cluster_id: str) -> ClusterState | None:
        cluster = await self.ledger.documents.get(Cluster, cluster_id)
        return cluster.status.state if cluster else None

    async def run(
        self, until: Callable[[], Any] | None = None, *, within: timedelta = timedelta(hours=2)
    ) -> None:
        """Works until the condition holds; fails when time or work runs out before. None: until `within` has passed."""
        horizon = self.clock.now() + within
        while True:
            await self.worker.run_until_idle()
            if until is not None and await until():
                return
            due = await self.next_due()
            if due is None or due > horizon:
                assert until is None, await self.story()
                self.clock.step_to(horizon)
                return
            self.clock.step_to(due)

    async def run_to(
        self, cluster_id: str, state: ClusterState, *, within: timedelta = timedelta(hours=2)
    ) -> None:
        async def reached() -> bool:
            return await self.state(cluster_id) == state

        await self.run(reached, within=within)

    async def run_until_gone(
        self, cluster_id: str, *, within: timedelta = timedelta(hours=2)
    ) -> None:
        async def gone() -> bool:
            return await self.state(cluster_id) is None

        await self.run(gone, within=within)

    async def run_until_nothing_is_left(self, *, within: timedelta = timedelta(hours=6)) -> None:
        """Until every cluster being deleted is gone and what their deletions left is released."""

        async def empty() -> bool:
            leaving = [
                cluster
                for cluster in (await self.ledger.documents.list(Cluster)).items
                if cluster.metadata.deletion_timestamp is not None
            ]
            return not leaving and not (await self.ledger.documents.list(Leftover)).items

        await self.run(empty, within=within)

    async def step(self) -> bool:
        """To the next due moment, and all that is due then. False when nothing is due any more."""
        due = await self.next_due()
        if due is None:
            return False
        self.clock.step_to(due)
        await self.turn()
        return True

    async def turn(self) -> int:
        """All that is due now, and nothing later."""
        return await self.worker.run_until_idle()

    async def held(self, cluster_id: str = "") -> dict[str, dict[str, list[str]]]:
        """What the twin holds of one cluster, or of all: by kind, by key, the names under it."""
        found = await self.call("truth", prefix=f"{cluster_id}/" if cluster_id else "")
        merged: dict[str, dict[str, list[str]]] = {}
        for kinds in found.values():
            for kind, keys in kinds.items():
                merged.setdefault(kind, {}).update(keys)
        return merged

    async def names(self, kind: str, cluster_id: str = "") -> list[str]:
        """The names the twin holds of that kind."""
        held = (await self.held(cluster_id)).get(kind, {})
        return sorted(name for names in held.values() for name in names)

    async def claimed(self) -> list[ClaimRow]:
        """Every scarce thing that is held, and by whom."""
        query = "select pool, item, owner from claims order by 1, 2, 3"
        return [ClaimRow(*row) for row in await self.ledger.read("looking", query)]

    async def pool_claims(self, pool: str) -> list[ClaimRow]:
        return [claim for claim in await self.claimed() if claim.pool == pool]

    async def breaches(self) -> list[Breach]:
        """What must never be so, and is."""
        elsewhere = await self.claimed() if self.form != "embedded" else ()
        return await invariants.check_invariants(
            self.ledger, self.twin, acknowledged=self.acknowledged, elsewhere=elsewhere
        )

    async def happenings(self) -> list[tuple[str, str, int]]:
        """What the twin made (+1) and took away (-1), in order: kind, key, change."""
        rows = (await self.call("history"))["happenings"]
        return [(row["kind"], row["key"], row["change"]) for row in rows]

    async def assert_nothing_left(self) -> None:
        """The twin holds nothing, nothing is claimed, reserved, ordered or left over."""
        assert await self.held() == {}, await self.story()
        assert await self.ledger.claims.sum_reserved_by_pool() == {}
        assert await self.claimed() == []
        for kind in (Cluster, Order, Leftover):
            assert (await self.ledger.documents.list(kind)).items == ()

    async def story(self) -> str:
        """Everything about every order, for the message of a failed journey."""
        orders = (await self.ledger.documents.list(Order)).items
        lines = [f"at {self.clock.now():%d %H:%M:%S}"]
        for order in orders:
            lines.append(f"{order.id} {order.status.phase.name}")
            for step in order.status.steps:
                lines.append(f"  {step.name} {step.state.name} {step.reason} {step.message}")
        return "\n".join(lines)


@asynccontextmanager
async def open_environment(
    database_url: str,
    layout: Layout | None = None,
    delays: str = "instant",
    overrides: Mapping[str, float] | None = None,
    *,
    kind: type[SimulatedEnvironment] | None = None,
    opened: Opened | None = None,
) -> AsyncIterator[SimulatedEnvironment]:
    """`kind` and `opened`: another form of environment, and what makes it one."""
    clock = SteppedClock()
    layout = layout or small_layout()
    world = TwinWorld(layout)
    how_long = {"profile": delays, "overrides": dict(overrides or {})}
    world.call("twin.set_delays", how_long, clock.now().timestamp())
    ledger = await Ledger.open(
        database_url, seal=Seal.from_bytes(b"k" * 32), application="journey", pool_size=2
    )
    try:
        await seed_catalogue.fill_catalogue(ledger, layout, now=clock.now())
        environment = (kind or SimulatedEnvironment)(ledger, world, clock, database_url)
        async with opened(environment) if opened else nullcontext():
            await environment.turn()
            yield environment
    finally:
        await ledger.close()

"""A hub for tests of faults: a real API server, a twin, and real `boatyard operator` processes, by way of a proxy.

The twin is served from this process; operators reach it whatever happens to their way to the API server. That is the
unkind case: an operator that no longer sees the hub could still act.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import LEASES, SECRETS
from boatyard.model.errors import Conflict
from boatyard.model.generated.boatyard import OrderNodeSet, OrderPhase
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.twin.client import TwinClient
from boatyard.twin.process import serve_twin
from tests.contracts.order_books import SPEC
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import admin, hang_up, new_place
from tests.support.kube_hub.environment import KubeHubEnvironment
from tests.support.kube_hub.fault_proxy import FaultProxy
from tests.support.processes import BOATYARD, Program, planted
from tests.support.simulated.twin import small_layout

ROOT = Path(__file__).parents[3]
PATIENCE = 120.0  # seconds; for what comes by itself on two busy cores
BACK = 60.0  # seconds from the end of a fault until all is well again
# Each step takes a moment, so that there is a middle to break; nothing takes long.
BRISK = dict.fromkeys(("host", "-host", "cluster", "-cluster", "node", "-node"), 0.4)


async def until(
    holds: Callable[[], Awaitable[Any] | Any], what: str, seconds: float = PATIENCE
) -> float:
    """Looks again and again until it is so; how long that took. What takes long is looked at less often."""
    began, pause = time.monotonic(), 0.05
    while True:
        answer = holds()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return time.monotonic() - began
        assert time.monotonic() - began < seconds, f"not in {seconds:g} s: {what}"
        await asyncio.sleep(pause)
        pause = min(pause * 1.2, 0.25)


class FaultyHubEnvironment(KubeHubEnvironment):
    """A hub whose operators are processes of their own."""

    def __init__(
        self,
        plane: ControlPlane,
        client: KubeClient,
        order_settings: HubOrderSettings,
        system: str,
        folder: Path,
    ) -> None:
        super().__init__(plane, client, order_settings, system)
        self.folder = folder
        self.socket = folder / "twin.sock"
        self.proxy: FaultProxy
        self.credentials: dict[str, Any] = {}
        self.outside: TwinClient
        self._replicas: list[Program] = []

    @classmethod
    @asynccontextmanager
    async def open_faulty(
        cls,
        plane: ControlPlane,
        *,
        hosts: int = 8,
        delays: Mapping[str, float] | None = None,
        seed: int = 1,
    ) -> AsyncIterator[FaultyHubEnvironment]:
        client = admin(plane)
        folder = Path(tempfile.mkdtemp(prefix="fh-"))  # short: it holds a socket
        stop, ready = asyncio.Event(), asyncio.Event()
        try:
            place, system = await new_place(client)
            hub = cls(plane, client, place, system, folder)
            await hub.register()
            hub.credentials = await hub.account("boatyard-operator")
            async with FaultProxy.open(plane, seed) as hub.proxy, asyncio.TaskGroup() as tasks:
                tasks.create_task(
                    serve_twin(
                        folder / "twin",
                        hub.socket,
                        layout=small_layout(hosts),
                        delays="instant",
                        stop=stop,
                        on_ready=ready.set,
                    )
                )
                await ready.wait()
                hub.outside = TwinClient(hub.socket)
                await hub.outside.call("twin.set_delays", overrides=dict(delays or BRISK))
                try:
                    yield hub
                finally:
                    for replica in hub._replicas:
                        replica.__exit__()
                    await hub.outside.close()
                    stop.set()
        finally:
            await hang_up(client)
            shutil.rmtree(folder, ignore_errors=True)

    # --- operators -------------------------------------------------------------------------------

    async def start(self, *, direct: bool = False, plant: str = "") -> Program:
        """One more replica, by way of the proxy unless `direct`; it has said that it runs."""
        number = len(self._replicas) + 1
        home = self.folder / f"replica-{number}"
        home.mkdir()
        way = self.credentials if direct else self.proxy.kubeconfig(self.credentials)
        (home / "kubeconfig").write_text(json.dumps(way))
        command = BOATYARD
        if plant:
            command = planted(plant)
        replica = Program(
            "operator",
            home=home,
            environ={
                "PYTHONPATH": str(ROOT),
                "BOATYARD_KUBECONFIG": str(home / "kubeconfig"),
                "BOATYARD_SYSTEM_NAMESPACE": self.system,
                "BOATYARD_TWIN_SOCKET": str(self.socket),
                "BOATYARD_PROBES": "127.0.0.1:0",
                "BOATYARD_POLL_SECONDS": "0.2",
            },
            command=command,
        )
        self._replicas.append(replica)
        await asyncio.to_thread(replica.ready)
        return replica

    async def leader_pid(self) -> int:
        """Of whom the Lease names; 0 while it names nobody."""
        listed = await self.client.list(LEASES, self.system)
        holder = str(listed.items[0]["spec"].get("holderIdentity") or "") if listed.items else ""
        return int(holder.split("_")[-2]) if holder else 0

    async def until_leading(self, *replicas: Program, seconds: float = PATIENCE) -> float:
        """Until one of them leads; how long it took."""
        pids = {replica.pid for replica in replicas}

        async def leads() -> bool:
            return await self.leader_pid() in pids

        return await until(leads, "one of them leads", seconds)

    def log(self) -> str:
        return "\n".join(replica.log.read_text() for replica in self._replicas)

    # --- orders, as the service places them ------------------------------------------------------

    async def put(
        self, order_id: str, size: int = 2, generation: int = 1, *, tenant: str = "acme"
    ) -> None:
        wish = {"compute": OrderNodeSet(host_type="bm-small", size=size)}
        spec = msgspec.structs.replace(SPEC, node_sets=wish, generation=generation)
        while True:
            try:
                await self.book.put(order_id, tenant=tenant, spec=spec, now=datetime.now(UTC))
                return
            except Conflict:  # the operator was quicker: look again, as the service does
                continue

    async def until_ready(
        self, order_id: str, size: int, generation: int = 1, seconds: float = PATIENCE
    ) -> float:
        async def settled() -> bool:
            status = (await self.order(order_id)).status
            follows = status.observed_generation == generation
            nodes = status.ready_nodes.get("compute", 0) == size
            return follows and nodes and status.phase == OrderPhase.READY

        try:
            return await until(settled, f"{order_id} is ready with {size} nodes", seconds)
        except AssertionError as error:
            status = (await self.order(order_id)).status
            steps = [(step.name, step.state.name, step.message) for step in status.steps]
            raise AssertionError(f"{error}: it is {status.phase.name}, {steps}") from error

    async def until_deleted(self, order_id: str, seconds: float = PATIENCE) -> float:
        """Until its end is told; then the service forgets it, as it does once it has heard."""

        async def ended() -> bool:
            order = await self.book.get(order_id)
            return order is None or order.status.phase == OrderPhase.DELETED

        try:
            took = await until(ended, f"{order_id} is deleted", seconds)
        except AssertionError as error:
            status = (await self.order(order_id)).status
            steps = [(step.name, step.state.name, step.message) for step in status.steps]
            raise AssertionError(f"{error}: it is {status.phase.name}, {steps}") from error
        while True:
            try:
                await self.book.forget(order_id, now=datetime.now(UTC))
                return took
            except Conflict:
                continue

    async def delete(self, order_id: str, *, within: timedelta = timedelta(minutes=15)) -> None:
        await super().delete(order_id, within=within)

    async def life(self, order_id: str, seconds: float = PATIENCE) -> None:
        """Created, grown, shrunk, deleted."""
        await self.put(order_id, 1)
        await self.until_ready(order_id, 1, seconds=seconds)
        for size, generation in ((3, 2), (2, 3)):
            await self.put(order_id, size, generation)
            await self.until_ready(order_id, size, generation, seconds)
        await self.delete(order_id)
        await self.until_deleted(order_id, seconds)

    # --- what must hold --------------------------------------------------------------------------

    async def truth(self) -> dict[str, Any]:
        found = await self.outside.call("twin.truth")
        return {hub: kinds for hub, kinds in found.items() if kinds}

    async def twin_does(self, verb: str, **args: Any) -> None:
        await self.outside.call(f"twin.{verb}", **args)

    async def doubled(self, *order_ids: str) -> list[Any]:
        """What was made more than once, or taken away more than once, for one key."""
        rows = [
            row
            for order_id in order_ids
            for row in await self.outside.call("twin.effects", prefix=f"{order_id}/")
        ]
        return [row for row in rows if row["applied"] > 1 or row["removed"] > row["applied"]]

    async def claims_held_twice(self) -> list[Any]:
        """Owners with two items of a pool. That an item has one owner is the API server's doing."""
        held = Counter(
            (claim["spec"]["pool"], claim["spec"]["owner"])
            for claim in (await self.client.list(CLAIMS, self.system)).items
        )
        return [key for key, count in held.items() if count > 1]

    async def left(self) -> dict[str, Any]:
        """All that is still there of any order, on the hub and outside. Empty is well."""
        found: dict[str, Any] = {"outside": await self.truth()}
        for kind, namespace in (
            (CLUSTER_ORDERS, self.place.shared_namespace),
            (LEFTOVERS, self.place.shared_namespace),
            (SECRETS, self.place.shared_namespace),
            (CLAIMS, self.system),
        ):
            items = (await self.client.list(kind, namespace)).items
            found[kind.plural] = [item["metadata"]["name"] for item in items]
        return {name: things for name, things in found.items() if things}

    async def until_nothing_is_left(self, seconds: float = PATIENCE) -> None:
        async def nothing() -> bool:
            return await self.left() == {}

        try:
            await until(nothing, "nothing is left", seconds)
        except AssertionError as error:
            raise AssertionError(f"still there: {await self.left()}\n{self.log()}") from error


def kill(replica: Program) -> None:
    """As if its machine had lost its power."""
    replica.end(signal.SIGKILL)

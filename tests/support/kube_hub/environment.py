"""An operator in this process on a real API server, with a simulated data centre. For tests of the operator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
)
from boatyard.model import hub_names
from boatyard.model.generated.boatyard import Order, OrderPhase
from boatyard.operator.leadership import ElectionTiming
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.twin.calls import LocalTwin
from boatyard.twin.world import TwinWorld
from boatyard.wiring.driver_factory import LocalServers
from boatyard.wiring.operator_process import OperatorProcess
from boatyard.wiring.settings import Settings
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import admin, hang_up, new_place, until
from tests.support.simulated.twin import small_layout

DEPLOY = Path(__file__).parents[3] / "deploy"
QUICK = ElectionTiming(duration=2.0, renew=0.2, retry=0.1, margin=0.4)
KINDS = {
    "ServiceAccount": SERVICE_ACCOUNTS,
    "ClusterRole": CLUSTER_ROLES,
    "Role": ROLES,
    "ClusterRoleBinding": CLUSTER_ROLE_BINDINGS,
    "RoleBinding": ROLE_BINDINGS,
}


class WallTime:
    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class KubeHubEnvironment:
    """A hub on a shared API server; operators of it are started and ended by the test."""

    def __init__(
        self, plane: ControlPlane, client: KubeClient, order_settings: HubOrderSettings, system: str
    ) -> None:
        self.plane = plane
        self.client = client
        self.place = order_settings
        self.system = system
        self.world = TwinWorld(small_layout())
        self.twin = LocalTwin(self.world, WallTime())
        self.book = KubeOrderBook(HubConnection(client, order_settings, system_namespace=system))

    @classmethod
    @asynccontextmanager
    async def open(cls, plane: ControlPlane) -> AsyncIterator[KubeHubEnvironment]:
        client = admin(plane)
        try:
            place, system = await new_place(client)
            hub = cls(plane, client, place, system)
            await hub.register()
            yield hub
        finally:
            await hang_up(client)

    async def register(self, drivers: Mapping[str, str] | None = None, **settings: str) -> None:
        """What the service writes when the hub is registered."""
        told = {
            "id": self.place.hub,
            "drivers": drivers or {},
            "settings": {"kube.namespace": self.place.shared_namespace, **settings},
        }
        body = {"data": {hub_names.HUB_CONFIG_KEY: json.dumps(told)}}
        await self.client.apply(CONFIG_MAPS, hub_names.HUB_CONFIG, body, self.system)

    @asynccontextmanager
    async def operator(
        self,
        kubeconfig: Mapping[str, Any] | None = None,
        *,
        timing: ElectionTiming = QUICK,
        callbacks: str = "",
    ) -> AsyncIterator[OperatorProcess]:
        """One that works until left, and then ends in good order."""
        site = LocalServers(twin_socket="", connect_twin=lambda _: self.twin)
        settings = Settings(
            system_namespace=self.system,
            probes="127.0.0.1:0",
            callbacks=callbacks,
            poll_seconds=0.2,
            lease_seconds=3,
        )
        config = read_kubeconfig(kubeconfig or self.plane.kubeconfig())
        stop = asyncio.Event()
        async with (
            OperatorProcess(config, site, settings, timing=timing) as office,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(office.operator.run(stop))
            try:
                yield office
            finally:
                stop.set()

    async def order(self, order_id: str) -> Order:
        order = await self.book.get(order_id)
        assert order is not None, f"order {order_id} is gone"
        return order

    async def until_phase(self, order_id: str, phase: OrderPhase) -> Order:
        async def reached() -> bool:
            order = await self.book.get(order_id)
            return order is not None and order.status.phase == phase

        await until(reached, f"{order_id} is {phase.name}")
        return await self.order(order_id)

    async def delete(self, order_id: str, *, within: timedelta = timedelta(minutes=5)) -> None:
        now = datetime.now(UTC)
        await self.book.request_delete(order_id, delete_by=now + within, now=now)

    async def truth(self) -> dict[str, Any]:
        """What the twin holds, past every fault."""
        reply = self.world.call("twin.truth", {}, datetime.now(UTC).timestamp())
        return {hub: kinds for hub, kinds in reply.value.items() if kinds}

    async def twin_does(self, verb: str, **args: Any) -> None:
        reply = self.world.call(f"twin.{verb}", args, datetime.now(UTC).timestamp())
        assert reply.error is None

    async def account(self, name: str) -> dict[str, Any]:
        """Installs the shipped roles for a service account here; a kubeconfig with its token."""
        for manifest in self.manifests(f"{DEPLOY}/rbac/operator.yaml"):
            kind = KINDS.get(manifest["kind"])
            if kind is not None:
                about = manifest["metadata"]
                await self.client.apply(kind, about["name"], manifest, about.get("namespace", ""))
        path = SERVICE_ACCOUNTS.path(self.system, name, "token")
        made = await self.client.call("POST", path, body={"spec": {"expirationSeconds": 600}})
        return self.plane.kubeconfig_for({"token": made["status"]["token"]})

    def manifests(self, path: str) -> list[dict[str, Any]]:
        """As shipped, but for this hub's own system namespace."""
        text = Path(path).read_text().replace("boatyard-system", self.system)
        made = [one for one in yaml.safe_load_all(text) if one]
        for one in made:  # cluster-wide names are shared by all hubs on this API server
            if one["kind"] in ("ClusterRoleBinding",):
                one["metadata"]["name"] += f"-{self.system}"
        return made


async def probe(port: int, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as answer,
    ):
        return answer.status, await answer.text()

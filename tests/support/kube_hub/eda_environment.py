"""A hub whose HostedClusters are made by Event-Driven Ansible: API server, HyperShift played, order book, door.

Everything but the rulebook, which is somebody else's: a test gives its address.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from boatyard.automation.drivers.eda.driver import EdaAutomation
from boatyard.automation.external_runs import ExternalRunStore
from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    LEASES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from boatyard.model import hub_names
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import OrderNodeSet, OrderSpec
from boatyard.model.outcome import Done
from boatyard.operator.callbacks import RunResultHandler, serve_run_results
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.platforms.drivers.hosted.driver import HostedPlatform
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS, NODE_POOLS
from boatyard.wiring.automated_clusters import AutomatedClusters
from tests.support.control_plane import ControlPlane, control_plane
from tests.support.kube_hub.api_server import admin, hang_up, install, new_place
from tests.support.kube_hub.audit import audit_flags
from tests.support.kube_hub.crds import crds
from tests.support.kube_hub.fake_hypershift import Kubectl, playing
from tests.support.kube_hub.hosted_values import SETTINGS, image_of, wish
from tests.support.kube_hub.hypershift_crds import install_crds, read_crds

RIGHTS = Path(__file__).parents[3] / "deploy" / "rbac" / "eda.yaml"
SYSTEM = "boatyard-system"
SECRET = "eda-webhook"
TOKEN = secrets.token_hex(16)  # that the webhook wants to see
ENOUGH_SECONDS = 150
_KINDS = {
    one.kind: one
    for one in (SERVICE_ACCOUNTS, CLUSTER_ROLES, ROLES, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS)
}


@contextmanager
def eda_hub() -> Iterator[ControlPlane]:
    """With HyperShift's kinds and ours, an audit log, and HyperShift played without delays."""
    with control_plane(api_flags=audit_flags) as plane:
        install_crds(plane.kubeconfig(), read_crds())
        asyncio.run(install(plane, crds()))
        plane.start_controller_manager(
            "--controllers=namespace-controller,garbage-collector-controller,"
            "serviceaccount-controller",
            "--concurrent-namespace-syncs=10",
        )
        with playing(Kubectl(plane).kubeconfig, "--pace", "instant"):
            yield plane


async def automation_token(plane: ControlPlane, client: KubeClient, system: str) -> str:
    """A token of the account that playbooks have, under the shipped rights."""
    for one in yaml.safe_load_all(RIGHTS.read_text().replace(SYSTEM, system)):
        about = one["metadata"]
        await client.apply(_KINDS[one["kind"]], about["name"], one, about.get("namespace", ""))
    path = SERVICE_ACCOUNTS.path(system, "boatyard-automation", "token")
    made = await client.call("POST", path, body={"spec": {"expirationSeconds": 3600}})
    return str(made["status"]["token"])


@dataclass
class EdaEnvironment:
    """One hub with one cluster on it, its platform driver, and the door that results come in by."""

    client: KubeClient
    place: HubOrderSettings
    system: str
    settings: Mapping[str, str]
    runs: ExternalRunStore
    platform: HostedPlatform
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.id}/cluster"

    @property
    def order(self) -> str:
        return hub_names.order_name(self.id)

    @property
    def namespace(self) -> str:
        return hub_names.cluster_namespace(self.place.shared_namespace, self.order)

    def another_platform(self) -> HostedPlatform:
        """As another process would have it: it remembers nothing."""
        return make_platform(self.client, self.settings, self.place.hub, self.system)

    async def put_order(self, **changes: Any) -> None:
        spec = OrderSpec(
            cluster_name="one",
            hub=self.place.hub,
            template="osac.templates.ocp_small",
            template_parameters=self.parameters,
            node_sets={"compute": OrderNodeSet(host_type="large", size=2)},
            version="4.17.1",
            release_image=image_of("4.17.1"),
            pull_secret='{"auths":{"registry.invalid":{"auth":"c2VjcmV0"}}}',
            generation=1,
        )
        book = KubeOrderBook(HubConnection(self.client, self.place, system_namespace=self.system))
        await book.put(self.id, tenant="acme", spec=spec, now=datetime.now(UTC))

    async def ensure(self, version: str = "4.17.1") -> Any:
        return await self.platform.ensure_cluster(self.key, wish("KubeVirt", version))

    async def release(self) -> Any:
        return await self.platform.release_cluster(self.key)

    async def clusters(self) -> list[dict[str, Any]]:
        return (await self.client.list(HOSTED_CLUSTERS, self.namespace)).items

    async def pools(self) -> list[dict[str, Any]]:
        return (await self.client.list(NODE_POOLS, self.namespace)).items

    async def order_object(self) -> dict[str, Any]:
        return await self.client.get(CLUSTER_ORDERS, self.order, self.place.shared_namespace)

    async def is_over(self) -> bool:
        """Whether the run has its result."""
        run = await self.run()
        return run is not None and run.is_over

    async def is_unlocked(self) -> bool:
        return await self.locks() == []

    async def locks(self) -> list[str]:
        leases = (await self.client.list(LEASES, self.place.shared_namespace)).items
        return [one["metadata"]["name"] for one in leases]

    async def run(self) -> Any:
        """What is kept of the cluster's run; None when there is none."""
        kept = await self.runs.get(f"{self.key}/run")
        return kept.run if kept is not None else None


def make_platform(
    client: KubeClient, settings: Mapping[str, str], hub: str, system: str
) -> HostedPlatform:
    automation = EdaAutomation(
        client,
        settings,
        hub,
        namespace=system,
        now=lambda: datetime.now(UTC),
        new_secret=lambda: secrets.token_hex(32),
    )
    return HostedPlatform(client, settings, hub, automation=AutomatedClusters(automation))


@asynccontextmanager
async def eda_environment(
    plane: ControlPlane, url: str, token: str, **settings: str
) -> AsyncIterator[EdaEnvironment]:
    client = admin(plane)
    try:
        place, system = await new_place(client)
        data = {"stringData": {"token": token}}
        await client.create(SECRETS, {"metadata": {"name": SECRET}, **data}, system)
        runs = ExternalRunStore(client, system)
        door = RunResultHandler(runs, lambda: datetime.now(UTC))
        async with serve_run_results("127.0.0.1:0", door) as port:
            told = {
                **SETTINGS["KubeVirt"],
                "kube.namespace": place.shared_namespace,
                "eda.url": url,
                "eda.callback-url": f"http://127.0.0.1:{port}",
                "eda.secret": SECRET,
                "eda.per-second": "20",
                **{
                    name.replace("__", ".").replace("_", "-"): value
                    for name, value in settings.items()
                },
            }
            platform = make_platform(client, told, place.hub, system)
            yield EdaEnvironment(client, place, system, told, runs, platform)
    finally:
        await hang_up(client)


async def until_done(ask: Callable[[], Awaitable[Any]], why: Callable[[], str] = str) -> Done:
    """Asks until it is Done, as a worker does: what is away for a moment is asked again."""
    last: Any = None
    try:
        async with asyncio.timeout(ENOUGH_SECONDS):
            while not isinstance(last, Done):
                try:
                    last = await ask()
                except Unavailable as error:
                    last = error
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"still {last}: {why()}") from None
    return last


async def until(holds: Callable[[], Awaitable[Any]], why: Callable[[], str] = str) -> Any:
    found: Any = None
    try:
        async with asyncio.timeout(ENOUGH_SECONDS):
            while not found:
                found = await holds()
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"it did not come true: {why()}") from None
    return found


def as_text(thing: object) -> str:
    return json.dumps(thing, default=str)

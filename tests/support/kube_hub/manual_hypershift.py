"""Plays HyperShift by hand, one word at a time, for tests of the driver `hosted` that need an exact moment."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import CONFIG_MAPS, NAMESPACES, SECRETS, KubeKind
from boatyard.model import hub_names
from boatyard.platforms.drivers.hosted.driver import HostedPlatform
from boatyard.platforms.drivers.hosted.kinds import (
    AGENT_MACHINE_LABEL,
    AGENTS,
    HOSTED_CLUSTERS,
    NODE_POOL_ANNOTATION,
    NODE_POOLS,
    make_machines_kind,
)
from boatyard.platforms.drivers.hosted.slots import read_slots
from boatyard.platforms.port import DesiredCluster, DesiredNode
from tests.support.control_plane import base64
from tests.support.kube_hub.hosted_values import SETTINGS, condition, well, wish

MACHINES = make_machines_kind("v1beta1")
ORDERS = "orders"
FINALIZER = "test.boatyard.io/hypershift"
Object = dict[str, Any]


class ManualHyperShift:
    """One cluster with an id of its own, its driver, and what HyperShift would do with it."""

    def __init__(
        self, client: KubeClient, platform: str = "None", settings: Mapping[str, str] | None = None
    ) -> None:
        self.client = client
        self.id = str(uuid.uuid4())
        self.key = f"{self.id}/cluster"
        self.order = hub_names.order_name(self.id)
        self.namespace = hub_names.cluster_namespace(ORDERS, self.order)
        self.home = hub_names.control_plane_namespace(self.namespace, self.order)
        self.hub = f"hub-{self.id[:8]}"
        self.settings = {"kube.namespace": ORDERS, **(settings or {})}
        self.agents = "default"
        hosts = {"hosted.agent-namespace": self.agents} if platform == "Agent" else {}
        self.wanted = wish(platform, settings={**SETTINGS[platform], **hosts})
        self.driver = self.another_driver()

    def another_driver(self) -> HostedPlatform:
        """As another process would have: it remembers nothing."""
        return HostedPlatform(self.client, self.settings, self.hub)

    async def ensure(self, wanted: DesiredCluster | None = None) -> Any:
        return await self.driver.ensure_cluster(self.key, wanted or self.wanted)

    # --- looking -------------------------------------------------------------------------------

    async def all(self, kind: KubeKind, namespace: str = "") -> list[Object]:
        return (await self.client.list(kind, namespace or self.namespace)).items

    async def cluster(self) -> Object:
        return await self.client.get(HOSTED_CLUSTERS, self.order, self.namespace)

    async def pool(self, node_set: str = "compute") -> Object:
        name = hub_names.node_pool_name(self.order, node_set)
        return await self.client.get(NODE_POOLS, name, self.namespace)

    async def namespaces(self) -> list[str]:
        """The namespaces of this cluster, by name: labels may have been taken away."""
        found = [one["metadata"]["name"] for one in (await self.client.list(NAMESPACES)).items]
        return [name for name in found if self.order in name]

    async def slots(self, node_set: str = "compute") -> dict[str, bool]:
        """Which slots the pool has, and which of them leave."""
        return {name: slot.leaving for name, slot in read_slots(await self.pool(node_set)).items()}

    async def host_versions(self, *minors: str) -> None:
        """What HyperShift says it can host here."""
        await self.client.apply(NAMESPACES, "hypershift", {})
        data = {"supported-versions": json.dumps({"versions": minors})}
        await self.client.apply(CONFIG_MAPS, "supported-versions", {"data": data}, "hypershift")

    # --- what HyperShift says ------------------------------------------------------------------

    async def say(self, status: Object) -> None:
        await self.client.apply(
            HOSTED_CLUSTERS,
            self.order,
            {"status": status},
            self.namespace,
            subresource="status",
            manager="hypershift",
        )

    async def up(self, version: str = "4.17.1", **more: Any) -> None:
        """The cluster is made, its API answers, and its first version is complete."""
        await self.ensure(more.pop("wanted", None))
        await self.say(well(history=[(version, "Completed")]))
        await self.client.apply(NAMESPACES, self.home, {}, manager="hypershift")

    async def give_access(self, kubeconfig: str, password: str = "pass") -> None:
        names = {"kubeconfig": kubeconfig, "password": password}
        for name, text in names.items():
            body = {"data": {name: base64(text.encode())}}
            await self.client.apply(SECRETS, f"{self.order}-{name}", body, self.namespace)
        status = well()
        status["kubeconfig"] = {"name": f"{self.order}-kubeconfig"}
        status["kubeadminPassword"] = {"name": f"{self.order}-password"}
        await self.say(status)

    async def say_of_pool(self, status: Object, node_set: str = "compute") -> None:
        await self.client.apply(
            NODE_POOLS,
            hub_names.node_pool_name(self.order, node_set),
            {"status": {"replicas": 0, **status}},
            self.namespace,
            subresource="status",
            manager="hypershift",
        )

    async def machine(
        self, name: str, *, agent: str = "", ready: bool = True, finalizer: bool = True
    ) -> None:
        """A machine of the pool `compute`, with its node when it is ready."""
        pool = hub_names.node_pool_name(self.order, "compute")
        about: Object = {"annotations": {NODE_POOL_ANNOTATION: f"{self.namespace}/{pool}"}}
        if finalizer:
            about["finalizers"] = [FINALIZER]
        spec: Object = {
            "clusterName": self.order,
            "bootstrap": {"dataSecretName": "x"},
            "infrastructureRef": {"kind": "M", "name": name, "apiVersion": "x.io/v1"},
        }
        if agent:
            spec["providerID"] = f"agent://{agent}"
        body = {"metadata": about, "spec": spec}
        await self.client.apply(MACHINES, name, body, self.home, manager="hypershift")
        status: Object = {"conditions": [condition("NodeHealthy", str(ready))]}
        if ready:
            status["nodeRef"] = {"kind": "Node", "name": f"node-{name}"}
        await self.client.apply(
            MACHINES,
            name,
            {"status": status},
            self.home,
            subresource="status",
            manager="hypershift",
        )

    async def machine_gone(self, name: str) -> None:
        """Its deletion has been asked for; now it is carried out."""
        await self.client.merge_patch(MACHINES, name, {"metadata": {"finalizers": None}}, self.home)

    async def machines(self) -> dict[str, bool]:
        """Machines by name, and whether their deletion has been asked for."""
        return {
            one["metadata"]["name"]: "deletionTimestamp" in one["metadata"]
            for one in await self.all(MACHINES, self.home)
        }

    async def agent(self, name: str, **more: Any) -> None:
        spec = {"approved": False, "role": "worker"}
        body = {"metadata": {"name": name, **more}, "spec": spec}
        await self.client.create(AGENTS, body, self.agents)

    async def bind(self, name: str, *, bound: bool = True) -> None:
        """What the provider does with an agent it takes, or lets go."""
        reference = {"name": self.order, "namespace": self.home} if bound else None
        label = {AGENT_MACHINE_LABEL: "uid" if bound else None}
        patch = {
            "metadata": {"labels": label},
            "spec": {"clusterDeploymentName": reference},
        }
        await self.client.merge_patch(AGENTS, name, patch, self.agents)

    async def look_at_agent(self, name: str) -> Object:
        return await self.client.get(AGENTS, name, self.agents)

    # --- nodes ---------------------------------------------------------------------------------

    def node_key(self, slot: str) -> str:
        return f"{self.id}/node/{slot}"

    async def join(self, slot: str, host: str, *, key: str = "", host_type: str = "") -> Any:
        node = DesiredNode(slot, "compute", host, "10.4.0.9", host_type)
        return await self.driver.ensure_node(key or self.node_key(slot), self.key, node)

    async def leave(self, slot: str, *, drain: bool = True) -> Any:
        return await self.driver.release_node(self.node_key(slot), self.key, slot, drain=drain)


class RecordingWriter(KubeClient):
    """Another's client that tells what it is asked to write, in order; and fails where a test wants it to."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.written: list[tuple[str, str, str]] = []  # verb, kind, name
        self.fails: Callable[[str, KubeKind], Exception | None] = lambda verb, kind: None

    def __getattribute__(self, name: str) -> Any:
        if name in ("_client", "written", "fails", "forget"):
            return object.__getattribute__(self, name)
        found = getattr(self._client, name)
        if name not in ("get", "list", "create", "apply", "merge_patch", "delete"):
            return found

        async def recorded(kind: KubeKind, *args: Any, **words: Any) -> Any:
            failure = self.fails(name, kind)
            if failure is not None:
                raise failure
            if name not in ("get", "list"):
                self.written.append((name, kind.plural, str(args[0])))
            return await found(kind, *args, **words)

        return recorded

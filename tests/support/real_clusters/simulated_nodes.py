"""A real control plane, machines of a twin, an agent that plays them, and kubectl to look at it all."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import LEASES, NAMESPACES, NODES, PODS
from boatyard.platforms.drivers.local.nodes.agent import NodeAgent
from boatyard.platforms.drivers.local.nodes.machines import TwinMachineSource
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState
from boatyard.twin.layout import HubLayout, Layout
from boatyard.twin.world import TwinWorld
from tests.support.control_plane import ControlPlane

HUB = "boston-1"
HEARTBEAT = 1.0
LONGEST = 60.0
_FIELDS = itertools.count(1)


class WallTwin:
    """The twin in this process, by the clock on the wall."""

    def __init__(self, hosts: int) -> None:
        layout = HubLayout(hosts={"bm-small": hosts}, zone="boston.example")
        self.world = TwinWorld(Layout(hubs={HUB: layout}))

    def do(self, verb: str, **args: Any) -> Any:
        reply = self.world.call(verb, {"hub": HUB, **args}, time.time())
        self.world.take_changes()
        if reply.error is not None:
            raise reply.error
        return reply.value

    async def call(self, verb: str, /, **args: Any) -> Any:
        return self.do(verb, **args)

    async def close(self) -> None:
        return None

    def set_boot(self, seconds: float) -> None:
        self.world.call("twin.set_delays", {"overrides": {"node": seconds}}, time.time())


class NodeEnvironment:
    """Some nodes of one cluster. Leaves nothing behind in the control plane, which others use after it."""

    def __init__(self, plane: ControlPlane, client: KubeClient, kubeconfig: Path) -> None:
        self.plane = plane
        self.client = client
        self.number = next(_FIELDS)
        self.namespace = f"nodes-{self.number}"
        self.twin = WallTwin(hosts=8)
        self.agent = self.new_agent()
        self.specs: dict[str, NodeSpec] = {}
        self._kubeconfig = kubeconfig
        self._running: asyncio.Task[None] | None = None

    def new_agent(self) -> NodeAgent:
        machines = TwinMachineSource(self.twin, HUB)
        return NodeAgent(self.client, machines, heartbeat=HEARTBEAT)

    def add(self, count: int, **changes: Any) -> list[str]:
        """So many hosts are taken, put on a network and asked to become nodes."""
        names = []
        self.twin.do("l2.ensure_network", key="o/l2", vlan=100)
        for _ in range(count):
            place = len(self.specs)
            host = list(self.twin.world.state.hubs[HUB].hosts)[place]
            self.twin.do("inventory.ensure_held", key=f"o/host/{place}", host=host)
            self.twin.do("l2.ensure_port", key=f"o/port/{place}", network_key="o/l2", host=host)
            name = f"f{self.number}-{place}"
            self.specs[name] = NodeSpec(
                name=name,
                node_set="compute",
                host=host,
                address=f"10.1.{self.number}.{10 + place}",
                version="1.36.3",
                pod_cidr=f"10.{128 + self.number}.{place}.0/24",
                **{"since": time.time(), **changes},
            )
            names.append(name)
        self.agent.set_nodes(self.specs)
        return names

    def host_of(self, name: str) -> str:
        return self.specs[name].host

    def start(self) -> None:
        self._running = asyncio.create_task(self.agent.run())

    async def stop(self) -> None:
        task, self._running = self._running, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def state(self, name: str) -> NodeState:
        return self.agent.node_states()[name]

    async def until_ready(self, *names: str) -> float:
        """Waits until the agent says so; the seconds it took."""
        began = time.monotonic()
        async with asyncio.timeout(LONGEST):
            while not all(self.state(name).ready for name in names or self.specs):
                self.check_running()
                await self.agent.wait_changed()
        return time.monotonic() - began

    def check_running(self) -> None:
        if self._running is not None and self._running.done():
            self._running.result()

    async def until(
        self, so: Callable[[], Awaitable[bool]], what: str, longest: float = LONGEST
    ) -> None:
        """Asks again and again: for what only the cluster itself can say."""
        end = time.monotonic() + longest
        while not await so():
            self.check_running()
            assert time.monotonic() < end, f"not in {longest:g} s: {what}"
            await asyncio.sleep(0.1)

    async def kubectl(self, *words: str, text: str = "", fails: bool = False) -> str:
        """What the real kubectl says, in this environment's namespace."""
        process = await asyncio.create_subprocess_exec(
            str(self.plane.programs / "kubectl"),
            *("--kubeconfig", str(self._kubeconfig), "--namespace", self.namespace),
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate(text.encode())
        said = out.decode() + error.decode()
        assert (process.returncode != 0) is fails, f"kubectl {' '.join(words)}: {said}"
        return said if fails else out.decode()

    async def apply(self, *objects: Mapping[str, Any]) -> None:
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        await self.kubectl("apply", "-f", "-", text=json.dumps(body))

    async def node(self, name: str) -> dict[str, Any]:
        return await self.client.get(NODES, name)

    async def condition(self, name: str, kind: str = "Ready") -> str:
        conditions = (await self.node(name))["status"]["conditions"]
        return next(str(one["status"]) for one in conditions if one["type"] == kind)

    async def until_it_beats(self, name: str) -> None:
        """Waits for the node's next heartbeat."""
        before = await self._beat(name)

        async def beats() -> bool:
            return await self._beat(name) > before

        await self.until(beats, f"a heartbeat of {name}")

    async def _beat(self, name: str) -> str:
        about = f"metadata.name={name}"
        found = await self.client.list(LEASES, "kube-node-lease", fields=about)
        return "".join(str(lease["spec"]["renewTime"]) for lease in found.items)

    async def pods(self, node: str = "") -> list[dict[str, Any]]:
        fields = f"spec.nodeName={node}" if node else ""
        return (await self.client.list(PODS, self.namespace, fields=fields)).items

    async def clean_up(self) -> None:
        await self.stop()
        await self.client.delete(NAMESPACES, self.namespace)
        for name in self.specs:
            await self.client.delete(NODES, name)
            await self.client.delete(LEASES, name, "kube-node-lease")
        for pod in await self.pods():
            about = pod["metadata"]
            await self.client.delete(PODS, about["name"], about["namespace"], grace=0)


@asynccontextmanager
async def open_node_environment(
    plane: ControlPlane, *, managed: bool = True
) -> AsyncIterator[NodeEnvironment]:
    """`managed`: the control plane has a controller-manager."""
    kubeconfig = plane.kubeconfig()
    client = KubeClient(read_kubeconfig(kubeconfig), timeout=5)
    environment = NodeEnvironment(plane, client, write_kubeconfig(plane, kubeconfig))
    await client.create(NAMESPACES, {"metadata": {"name": environment.namespace}})
    if managed:
        await environment.until(lambda: _has_account(environment), "a service account")
    try:
        yield environment
    finally:
        await environment.clean_up()
        await client.close()


def write_kubeconfig(plane: ControlPlane, content: Mapping[str, Any]) -> Path:
    path = plane.folder / "admin.kubeconfig"
    path.write_text(json.dumps(content))
    return path


async def _has_account(environment: NodeEnvironment) -> bool:
    return "default" in await environment.kubectl("get", "serviceaccounts", "-o", "name")


def deployment(name: str, replicas: int, **pod: Any) -> dict[str, Any]:
    """A Deployment whose pods leave a lost node after a second."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": pod.pop("annotations", {})},
                "spec": {
                    "containers": [{"name": "web", "image": "web:1"}],
                    "tolerations": [
                        {
                            "key": f"node.kubernetes.io/{why}",
                            "operator": "Exists",
                            "effect": "NoExecute",
                            "tolerationSeconds": 1,
                        }
                        for why in ("unreachable", "not-ready")
                    ],
                    **pod,
                },
            },
        },
    }

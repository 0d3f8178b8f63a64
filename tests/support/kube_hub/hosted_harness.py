"""A hub for the platform driver `hosted`: a real API server, HyperShift's real CRDs, and the player of HyperShift.

Its hosts are those of a twin of its own; on the Agent platform each of them has an Agent beside it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig, read_kubeconfig
from boatyard.kube.kinds import NAMESPACES, KubeKind
from boatyard.platforms.drivers.hosted.driver import HostedPlatform
from boatyard.platforms.drivers.hosted.kinds import AGENTS
from boatyard.twin.calls import LocalTwin
from boatyard.twin.layout import Layout
from boatyard.twin.world import TwinWorld
from tests.contracts.harness import PlatformHarness
from tests.contracts.twin_surroundings import HUB_LAYOUT, TwinSurroundings
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.fake_hypershift import Kubectl, hypershift_hub, playing
from tests.support.simulated.twin import SteppedClock

VM = "cores=2,memory=8Gi,disk=32Gi"
FAULT = "player.boatyard.io/fault"
_NUMBERS = itertools.count(1)
_WRITES = ("create", "replace", "merge_patch", "apply", "delete", "evict")


@contextmanager
def played_hub(*words: str) -> Iterator[ControlPlane]:
    """With the player at work, at once unless `words` set another pace."""
    with hypershift_hub() as plane:
        kubectl = Kubectl(plane)
        with playing(kubectl.kubeconfig, *(words or ("--pace", "instant"))):
            yield plane


class MoodyClient(KubeClient):
    """A client whose server may be dead, or say yes to every write and do nothing."""

    def __init__(self, config: KubeConfig) -> None:
        super().__init__(config, timeout=20, patience=20)
        self.mood = "none"
        self._dead = KubeClient(KubeConfig("http://127.0.0.1:9"), timeout=2, patience=1)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or name in ("mood", "close"):
            return found
        if self.mood == "dead":
            return getattr(self._dead, name)
        if self.mood == "lies" and name in _WRITES:
            return _lie
        return found

    async def close(self) -> None:
        await super().close()
        await self._dead.close()


async def _lie(kind: KubeKind, name: str, *said: Any, **_: Any) -> Any:
    """The answer of a server that has carried out what it was told."""
    body = next((one for one in said if isinstance(one, dict)), {})
    namespace = next((one for one in said if isinstance(one, str)), "")
    about = {**(body.get("metadata") or {}), "name": name, "namespace": namespace}
    return {**body, "metadata": about}


@dataclass
class HostedHarness:
    """The harness of the platform suite on a hub of its own; `take_away` waits until nothing is left of it."""

    harness: PlatformHarness
    client: MoodyClient
    platform: HostedPlatform
    orders: str  # the namespace its clusters' namespaces begin with
    agents: str  # the namespace of its Agents; empty on other platforms

    async def take_away(self) -> None:
        self.client.mood = "none"
        owned = await self.platform.list_owned()
        for order in sorted({one.key.partition("/")[0] for one in owned}):
            await _take_away(self.harness, order)
        assert await self.platform.list_owned() == []
        await self.platform.close()
        await self.client.close()


async def hosted_harness(plane: ControlPlane, platform: str) -> HostedHarness:
    """A hub id of its own on the shared API server, with hosts of its own."""
    number = next(_NUMBERS)
    hub, namespace = f"boston-{number}", f"hosts-{number}"
    client = MoodyClient(read_kubeconfig(plane.kubeconfig()))
    clock = SteppedClock()
    twin = LocalTwin(TwinWorld(Layout(hubs={hub: HUB_LAYOUT})), clock)
    settings = {
        "hosted.platform": platform,
        "hosted.agent-namespace": namespace,
        "hosted.vm.default": VM,
        "kube.namespace": f"orders-{number}",
    }
    hosted = HostedPlatform(client, settings, hub)

    async def wait(seconds: float) -> None:
        await clock.sleep(seconds)
        # A second is somebody's age; anything else is patience, of which a busy machine needs some.
        await asyncio.sleep(1.0 if seconds == 1.0 else 0.25)

    async def misbehave(mood: str) -> None:
        client.mood = mood

    async def break_host(host: str) -> None:
        lost = {"metadata": {"annotations": {FAULT: "lost"}}}
        await client.merge_patch(AGENTS, host, lost, namespace)
        await _until_seen(hosted)

    around = TwinSurroundings(twin, hub, wait)
    harness = PlatformHarness(
        platform=hosted,
        host_with_agent=around.host_with_agent,
        wait=wait,
        misbehave=misbehave,
        break_host=break_host,
    )
    await _make_agents(client, namespace, around)
    agents = namespace if platform == "Agent" else ""
    return HostedHarness(harness, client, hosted, settings["kube.namespace"], agents)


async def _make_agents(client: KubeClient, namespace: str, around: TwinSurroundings) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    for host in await around.free_hosts(12):
        spec = {"approved": False, "role": "worker"}
        await client.create(AGENTS, {"metadata": {"name": host}, "spec": spec}, namespace)


async def _until_seen(platform: HostedPlatform) -> None:
    """Until a lost host is noticed: with real programs that takes a moment."""
    for _ in range(100):
        for owned in await platform.list_owned():
            if owned.kind == "cluster" and (await platform.observe(owned.key)).degraded:
                return
        await asyncio.sleep(0.1)


async def _take_away(harness: PlatformHarness, order: str) -> None:
    for owned in await harness.platform.list_owned(f"{order}/node/"):
        slot = owned.key.rpartition("/")[2]
        release = (owned.key, f"{order}/cluster", slot)
        await harness.until_done(partial(harness.platform.release_node, *release, drain=False))
    await harness.until_done(partial(harness.platform.release_cluster, f"{order}/cluster"))

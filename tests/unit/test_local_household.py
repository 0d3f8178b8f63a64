"""One cluster with its nodes: an agent that ends is followed by another, also when nothing else happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.platforms.drivers.local.control_plane import ControlPlane
from boatyard.platforms.drivers.local.local_cluster import LocalCluster
from boatyard.platforms.drivers.local.nodes.machines import MachineSource, MachineState
from boatyard.platforms.drivers.local.records import NodeRecord
from tests.support.real_clusters.environment import until

NODE = NodeRecord(
    key="order-1/node/compute-0",
    slot="compute-0",
    node_set="compute",
    host="r1-n1",
    address="10.4.0.10",
    number=0,
    made_at=2.0,
)


class OddMachines:
    """Ends whoever looks at them the first time with what nobody expects."""

    def __init__(self) -> None:
        self.looks = 0
        self.looked_again = asyncio.Event()

    def get_machines(self, hub: str) -> MachineSource:
        return self

    def check_real_nodes(self) -> None:
        return

    async def read_states(self, hosts: Sequence[str]) -> Mapping[str, MachineState]:
        self.looks += 1
        if self.looks == 1:
            raise ZeroDivisionError("planted")
        self.looked_again.set()
        return {}


class SteadyPlane:
    """Up, and never changes."""

    slug = "abc"
    is_gone = is_resting = False
    available = True

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        wanted = SimpleNamespace(machine_cidr="10.4.0.0/24", pod_cidr="10.128.0.0/14")
        self.record = SimpleNamespace(
            hub="local", nodes={NODE.key: NODE}, wanted=wanted, version="1.36.3", leaving=False
        )
        self.supervisor = SimpleNamespace(detach_all=lambda: None)

    async def run_passes(self) -> None:
        await asyncio.Event().wait()

    async def wait_changed(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        return


@pytest.fixture
async def client() -> AsyncIterator[KubeClient]:
    client = KubeClient(KubeConfig(server="http://127.0.0.1:1"), patience=0.1)
    yield client
    await client.close()


def house_of(client: KubeClient, follow: Any, *, pause: float) -> LocalCluster:
    plane = cast(ControlPlane, SteadyPlane(client))
    return LocalCluster(plane, follow, real=None, on_gone=lambda: None, agent_pause=pause)


async def test_an_agent_that_ended_with_a_bug_is_followed_by_another(client: KubeClient) -> None:
    follow = OddMachines()
    house = house_of(client, follow, pause=0.01)
    house.start()
    async with asyncio.timeout(10):
        await follow.looked_again.wait()
    await house.close(stop=False)


async def test_nodes_without_an_agent_are_not_called_ready(client: KubeClient) -> None:
    follow = OddMachines()
    house = house_of(client, follow, pause=600)
    house.start()
    await until(lambda: "Nobody" in house.node_states()[NODE.key].message, "the agent has ended")
    seen = house.node_states()[NODE.key]
    assert (seen.joined, seen.ready) == (True, False), "a cluster of which that is so is degraded"
    await house.close(stop=False)

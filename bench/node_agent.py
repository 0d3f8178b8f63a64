"""The node agent alone in a process, so that its memory and CPU can be measured. Started by bench/nodes.py.

Arguments: kubeconfig, the twin's socket, hub, number of nodes, version. Says `ready` when all nodes are.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.platforms.drivers.local.nodes.agent import NodeAgent
from boatyard.platforms.drivers.local.nodes.machines import TwinMachineSource
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec
from boatyard.twin.client import TwinClient


def specs(hosts: list[str], version: str) -> dict[str, NodeSpec]:
    return {
        f"compute-{number}": NodeSpec(
            name=f"compute-{number}",
            node_set="compute",
            host=host,
            address=f"10.64.{number // 250}.{number % 250 + 1}",
            version=version,
            pod_cidr=f"10.{128 + number // 256}.{number % 256}.0/24",
        )
        for number, host in enumerate(hosts)
    }


async def run(kubeconfig: str, socket: Path, hub: str, hosts: list[str], version: str) -> None:
    agent = NodeAgent(
        KubeClient(read_kubeconfig(kubeconfig)), TwinMachineSource(TwinClient(socket), hub)
    )
    async with asyncio.TaskGroup() as group:
        agent.set_nodes(specs(hosts, version))
        group.create_task(agent.run())
        while not all(state.ready for state in agent.node_states().values()):
            await agent.wait_changed()
        print("ready", flush=True)


if __name__ == "__main__":
    config, socket, hub, version = sys.argv[1:]
    asyncio.run(run(Path(config).read_text(), Path(socket), hub, sys.stdin.read().split(), version))

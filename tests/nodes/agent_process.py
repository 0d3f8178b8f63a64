"""An agent in a process of its own, for tests that kill it. Its nodes come as JSON on the standard input."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.platforms.drivers.local.nodes.agent import NodeAgent
from boatyard.platforms.drivers.local.nodes.machines import MachineState
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec


class RunningMachines:
    """Machines that have always run."""

    async def read_states(self, hosts: Sequence[str]) -> Mapping[str, MachineState]:
        return {host: MachineState(started_at=1.0) for host in hosts}


async def run(kubeconfig: str, specs: bytes) -> None:
    client = KubeClient(read_kubeconfig(kubeconfig))
    agent = NodeAgent(client, RunningMachines(), heartbeat=1.0)
    agent.set_nodes(msgspec.json.decode(specs, type=dict[str, NodeSpec]))
    async with asyncio.TaskGroup() as group:
        group.create_task(agent.run())
        while not all(state.ready for state in agent.node_states().values()):
            await agent.wait_changed()
        print("ready", flush=True)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]).read_text(), sys.stdin.buffer.read()))

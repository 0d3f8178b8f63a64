"""One local cluster: its control plane, and the agent that simulates or runs its nodes. Owned by the keeper."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from boatyard.kube.kinds import NODES
from boatyard.model.errors import BoatyardError, Unavailable
from boatyard.model.outcome import Outcome
from boatyard.platforms.drivers.local import allocation
from boatyard.platforms.drivers.local.control_plane import ControlPlane
from boatyard.platforms.drivers.local.nodes.agent import NodeAgent
from boatyard.platforms.drivers.local.nodes.machines import MachineSource
from boatyard.platforms.drivers.local.nodes.node_drain import drain_node
from boatyard.platforms.drivers.local.nodes.objects import NODE_SET_LABEL
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState
from boatyard.platforms.drivers.local.real_nodes import RealNodes
from boatyard.platforms.drivers.local.records import NodeRecord

logger = logging.getLogger(__name__)

AGENT_PAUSE_SECONDS = 10.0  # seconds until an agent that crashed is replaced
_JOINING = NodeState(joined=False, ready=False, message="The node is joining.")
_WITHOUT_AGENT = NodeState(
    joined=True, ready=False, message="Nobody looks after the node right now."
)


class NodeBackend(Protocol):
    """What the nodes of this machine depend on."""

    def get_machines(self, hub: str) -> MachineSource:
        """Returns the machines that the simulated nodes of a hub follow."""

    def check_real_nodes(self) -> None:
        """Refused, with what is missing, when this machine cannot run real nodes."""


class LocalCluster:
    def __init__(
        self,
        plane: ControlPlane,
        node_backend: NodeBackend,
        *,
        real: RealNodes | None,
        on_gone: Callable[[], None],
        agent_pause: float = AGENT_PAUSE_SECONDS,
    ) -> None:
        self.plane = plane
        self._agent_pause = agent_pause
        self._agent_crashed = False  # the agent has crashed and its successor has not started
        self._node_backend = node_backend
        self._on_gone = on_gone
        self._real_nodes = real
        if real is not None:
            plane.node_hooks = real
        self._agent: NodeAgent | RealNodes | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._agent_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        for coroutine in (self._run_control_plane(), self._manage_agent()):
            task = asyncio.create_task(coroutine)
            task.add_done_callback(_log_crash)
            self._tasks.append(task)

    async def close(self, *, stop: bool) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stop_agent()
        if stop:
            await self.plane.stop()
        await self.plane.close()
        self.plane.supervisor.detach_all()

    async def _run_control_plane(self) -> None:
        await self.plane.run_passes()
        await self._stop_agent()
        self._on_gone()

    async def _manage_agent(self) -> None:
        """Runs the agent while the control plane is awake: a frozen API server must not be called."""
        while not self.plane.is_gone:
            if self.plane.is_resting or self.plane.client is None:
                await self._stop_agent()
            elif self.plane.available and (self._agent_task is None or self._agent_task.done()):
                self._start_agent()
                with contextlib.suppress(BoatyardError):  # the next change tries it again
                    await self.delete_orphan_nodes()
            self.nodes_changed()  # their version follows the control plane's
            await self.plane.wait_changed()

    def _start_agent(self) -> None:
        self._agent_crashed = False
        self._agent_task = asyncio.create_task(self._run_agents(self._new_agent()))
        self._agent_task.add_done_callback(_log_crash)

    def _new_agent(self) -> NodeAgent | RealNodes:
        assert self.plane.client is not None
        if self._real_nodes is not None:
            self._agent = self._real_nodes
        else:
            machines = self._node_backend.get_machines(self.plane.record.hub)
            self._agent = NodeAgent(self.plane.client, machines)
        self.nodes_changed()
        return self._agent

    async def _run_agents(self, agent: NodeAgent | RealNodes) -> None:
        """Runs agents until cancelled. An agent that crashes is replaced by a new one with no state."""
        while True:
            try:
                await agent.run()
            except Exception:  # otherwise the cluster would have no nodes until its state changes
                logger.exception("node agent crashed", extra={"cluster": self.plane.slug})
            self._agent = None
            self._agent_crashed = True
            await asyncio.sleep(self._agent_pause)
            if self.plane.client is None:
                return  # `_attend` starts another when the control plane is awake again
            agent = self._new_agent()
            self._agent_crashed = False

    async def _stop_agent(self) -> None:
        task, self._agent_task = self._agent_task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._agent, self._agent_crashed = None, False

    # --- nodes -------------------------------------------------------------------------------

    def _make_node_specs(self) -> dict[str, NodeSpec]:
        record = self.plane.record
        return {
            node.slot: NodeSpec(
                name=node.slot,
                node_set=node.node_set,
                host=node.host,
                address=allocation.node_address(
                    record.wanted.machine_cidr, node.number, otherwise=node.address
                ),
                version=record.version,
                pod_cidr=allocation.pod_range(record.wanted.pod_cidr, node.number),
                since=node.made_at,
            )
            for node in record.nodes.values()
        }

    def nodes_changed(self) -> None:
        match self._agent:
            case NodeAgent():
                self._agent.set_nodes(self._make_node_specs())
            case RealNodes():
                self._agent.wake()

    def node_states(self) -> Mapping[str, NodeState]:
        """Returns the states of the nodes by their keys."""
        # At rest the agent's states are outdated.
        agent = None if self.plane.is_resting else self._agent
        states = agent.node_states() if agent is not None else {}
        unknown = _WITHOUT_AGENT if self._agent_crashed else _JOINING
        return {
            key: states.get(node.slot, unknown) for key, node in self.plane.record.nodes.items()
        }

    async def wait_ready(self, key: str, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.node_states()[key].ready:
                    await self._wait_changed()
        return self.node_states()[key].ready

    async def _wait_changed(self) -> None:
        if self._agent is not None:
            await self._agent.wait_changed()
        else:
            await self.plane.wait_changed()

    async def drain(self, node: NodeRecord, *, late: bool) -> Outcome:
        client = self.plane.client
        if client is None or not self.plane.available:
            raise Unavailable("the cluster does not answer, so its node cannot be drained")
        return await drain_node(client, node.slot, deadline_passed=late)

    async def end_node(self, node: NodeRecord) -> None:
        """Ends all processes of a node."""
        if self._real_nodes is not None:
            await self._real_nodes.end_node(node)

    async def delete_orphan_nodes(self) -> None:
        """Removes Node objects of ours without a node, left by a node that is gone or restored with a backup."""
        client = self.plane.client
        if client is None or not self.plane.available or self.plane.record.leaving:
            return
        slots = {node.slot for node in self.plane.record.nodes.values()}
        for node in (await client.list(NODES, labels=NODE_SET_LABEL)).items:
            if node["metadata"]["name"] not in slots:
                await client.delete(NODES, node["metadata"]["name"])


def _log_crash(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("cluster task crashed", exc_info=task.exception())

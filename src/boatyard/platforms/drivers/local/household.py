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
from boatyard.platforms.drivers.local import places
from boatyard.platforms.drivers.local.control_plane import ControlPlane
from boatyard.platforms.drivers.local.nodes.agent import NodeAgent
from boatyard.platforms.drivers.local.nodes.draining import drain
from boatyard.platforms.drivers.local.nodes.machines import Machines
from boatyard.platforms.drivers.local.nodes.objects import NODE_SET
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState
from boatyard.platforms.drivers.local.real_nodes import RealNodes
from boatyard.platforms.drivers.local.records import NodeRecord

logger = logging.getLogger(__name__)

AGENT_PAUSE = 10.0  # seconds until an agent that crashed is replaced
_JOINING = NodeState(joined=False, ready=False, message="The node is joining.")
_UNTENDED = NodeState(joined=True, ready=False, message="Nobody looks after the node right now.")


class NodeFollower(Protocol):
    """What the nodes of this machine depend on."""

    def machines(self, hub: str) -> Machines:
        """Returns the machines that the simulated nodes of a hub follow."""

    def check_real(self) -> None:
        """Refused, with what is missing, when this machine cannot run real nodes."""


class Household:
    def __init__(
        self,
        plane: ControlPlane,
        follow: NodeFollower,
        *,
        real: RealNodes | None,
        on_gone: Callable[[], None],
        agent_pause: float = AGENT_PAUSE,
    ) -> None:
        self.plane = plane
        self._agent_pause = agent_pause
        self._untended = False  # the agent has crashed and its successor has not started
        self._follow = follow
        self._on_gone = on_gone
        self._real = real
        if real is not None:
            plane.ground = real
        self._agent: NodeAgent | RealNodes | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._agent_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        for coroutine in (self._drive(), self._attend()):
            task = asyncio.create_task(coroutine)
            task.add_done_callback(_complain)
            self._tasks.append(task)

    async def close(self, *, stop: bool) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._dismiss_agent()
        if stop:
            await self.plane.stop()
        await self.plane.close()
        self.plane.crew.forget()

    async def _drive(self) -> None:
        await self.plane.drive()
        await self._dismiss_agent()
        self._on_gone()

    async def _attend(self) -> None:
        """Runs the agent while the control plane is awake: a frozen API server must not be called."""
        while not self.plane.gone:
            if self.plane.gone_to_rest or self.plane.client is None:
                await self._dismiss_agent()
            elif self.plane.available and (self._agent_task is None or self._agent_task.done()):
                self._engage_agent()
                with contextlib.suppress(BoatyardError):  # the next change tries it again
                    await self.forget_strays()
            self.nodes_changed()  # their version follows the control plane's
            await self.plane.changed()

    def _engage_agent(self) -> None:
        self._untended = False
        self._agent_task = asyncio.create_task(self._keep_agent(self._new_agent()))
        self._agent_task.add_done_callback(_complain)

    def _new_agent(self) -> NodeAgent | RealNodes:
        assert self.plane.client is not None
        if self._real is not None:
            self._agent = self._real
        else:
            machines = self._follow.machines(self.plane.record.hub)
            self._agent = NodeAgent(self.plane.client, machines)
        self.nodes_changed()
        return self._agent

    async def _keep_agent(self, agent: NodeAgent | RealNodes) -> None:
        """Runs agents until cancelled. An agent that crashes is replaced by a new one with no state."""
        while True:
            try:
                await agent.run()
            except Exception:  # otherwise the cluster would have no nodes until its state changes
                logger.exception("node agent crashed", extra={"cluster": self.plane.slug})
            self._agent = None
            self._untended = True
            await asyncio.sleep(self._agent_pause)
            if self.plane.client is None:
                return  # `_attend` starts another when the control plane is awake again
            agent = self._new_agent()
            self._untended = False

    async def _dismiss_agent(self) -> None:
        task, self._agent_task = self._agent_task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._agent, self._untended = None, False

    # --- nodes -------------------------------------------------------------------------------

    def _specs(self) -> dict[str, NodeSpec]:
        record = self.plane.record
        return {
            node.slot: NodeSpec(
                name=node.slot,
                node_set=node.node_set,
                host=node.host,
                address=places.node_address(
                    record.wanted.machine_cidr, node.number, otherwise=node.address
                ),
                version=record.version,
                pod_cidr=places.pod_range(record.wanted.pod_cidr, node.number),
                since=node.made_at,
            )
            for node in record.nodes.values()
        }

    def nodes_changed(self) -> None:
        match self._agent:
            case NodeAgent():
                self._agent.set_nodes(self._specs())
            case RealNodes():
                self._agent.wake()

    def seen(self) -> Mapping[str, NodeState]:
        """Returns the states of the nodes by their keys."""
        # At rest the agent's states are outdated.
        agent = None if self.plane.gone_to_rest else self._agent
        states = agent.seen() if agent is not None else {}
        unknown = _UNTENDED if self._untended else _JOINING
        return {
            key: states.get(node.slot, unknown) for key, node in self.plane.record.nodes.items()
        }

    async def wait_ready(self, key: str, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.seen()[key].ready:
                    await self._something_changed()
        return self.seen()[key].ready

    async def _something_changed(self) -> None:
        if self._agent is not None:
            await self._agent.wait_changed()
        else:
            await self.plane.changed()

    async def drain(self, node: NodeRecord, *, late: bool) -> Outcome:
        client = self.plane.client
        if client is None or not self.plane.available:
            raise Unavailable("the cluster does not answer, so its node cannot be drained")
        return await drain(client, node.slot, deadline_passed=late)

    async def end_node(self, node: NodeRecord) -> None:
        """Ends all processes of a node."""
        if self._real is not None:
            await self._real.end_node(node)

    async def forget_strays(self) -> None:
        """Removes Node objects of ours without a node, left by a node that is gone or restored with a backup."""
        client = self.plane.client
        if client is None or not self.plane.available or self.plane.record.leaving:
            return
        slots = {node.slot for node in self.plane.record.nodes.values()}
        for node in (await client.list(NODES, labels=NODE_SET)).items:
            if node["metadata"]["name"] not in slots:
                await client.delete(NODES, node["metadata"]["name"])


def _complain(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("cluster task crashed", exc_info=task.exception())

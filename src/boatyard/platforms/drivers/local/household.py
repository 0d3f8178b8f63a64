"""One cluster with its nodes: a control plane, and whoever plays or runs its nodes. Owned by the keeper."""

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

AGENT_PAUSE = 10.0  # seconds until nodes whose agent ended with a bug have another
_JOINING = NodeState(joined=False, ready=False, message="The node is joining.")
_UNTENDED = NodeState(joined=True, ready=False, message="Nobody looks after the node right now.")


class NodeFollower(Protocol):
    """What stands behind nodes on this machine."""

    def machines(self, hub: str) -> Machines:
        """The machines that simulated nodes of a hub follow."""

    def check_real(self) -> None:
        """Refused, with what is missing, where real nodes cannot be had."""


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
        self._untended = False  # the agent has ended, and the next has not begun
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
        """The nodes live while the control plane is awake; a frozen one must not be spoken to."""
        while not self.plane.gone:
            if self.plane.gone_to_rest or self.plane.client is None:
                await self._dismiss_agent()
            elif self.plane.available and (self._agent_task is None or self._agent_task.done()):
                self._engage_agent()
                with contextlib.suppress(BoatyardError):  # there is another time
                    await self.forget_strays()
            self.nodes_changed()  # their version is the control plane's
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
        """Until cancelled. One that ends with a bug is followed by another, which knows nothing of it."""
        while True:
            try:
                await agent.run()
            except Exception:  # a steady cluster would have no nodes until somebody changes it
                logger.exception("internal error", extra={"cluster": self.plane.slug})
            self._agent = None
            self._untended = True
            await asyncio.sleep(self._agent_pause)
            if self.plane.client is None:
                return  # whoever wakes the control plane engages another
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
        """By the nodes' keys."""
        # Of one that has just gone to rest the agent still says what it saw last.
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
        """Nothing of it runs any more."""
        if self._real is not None:
            await self._real.end_node(node)

    async def forget_strays(self) -> None:
        """Removes Node objects of ours that stand for no node: of one that has left, or of another cluster's backup."""
        client = self.plane.client
        if client is None or not self.plane.available or self.plane.record.leaving:
            return
        slots = {node.slot for node in self.plane.record.nodes.values()}
        for node in (await client.list(NODES, labels=NODE_SET)).items:
            if node["metadata"]["name"] not in slots:
                await client.delete(NODES, node["metadata"]["name"])


def _complain(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("a task of a cluster ended with a bug", exc_info=task.exception())

"""The node agent of one cluster, which simulates its nodes according to their machines. Run by the keeper."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.informer import Informer
from boatyard.kube.kinds import NODES
from boatyard.model.backoff import Backoff
from boatyard.model.errors import BoatyardError, Conflict, Refused, Unavailable
from boatyard.platforms.drivers.local.nodes.delay_queue import DelayQueue
from boatyard.platforms.drivers.local.nodes.machines import MachineSource, MachineState
from boatyard.platforms.drivers.local.nodes.node_reporter import (
    HEARTBEAT_SECONDS,
    NodeReporter,
    RestoreDetected,
    describe_refusal,
)
from boatyard.platforms.drivers.local.nodes.objects import NodeSummary, summarize_node
from boatyard.platforms.drivers.local.nodes.pod_runner import PodRunner
from boatyard.platforms.drivers.local.nodes.simulated_node import SimulatedNode
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState, Now, wall_clock

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
WORKERS = 32
_NODE_PREFIX, _POD_PREFIX = "node/", "pod/"
_RETRY_SECONDS, _MISSING_RETRY_SECONDS, _REFUSED_SECONDS = 0.2, 1.0, 30.0
_BACKOFF = Backoff(first=0.2, longest=2.0)
_NO_MACHINE = MachineState(power=False)


class NodeAgent:
    """Follows the machines of its nodes and simulates their kubelets. One per cluster, with few tasks for all nodes."""

    def __init__(
        self,
        client: KubeClient,
        machines: MachineSource,
        *,
        now: Now = wall_clock,
        heartbeat: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._client = client
        self._machines = machines
        self._now = now
        self._heartbeat = heartbeat
        self._nodes: dict[str, SimulatedNode] = {}
        self._changed = asyncio.Event()
        self._poll_now = asyncio.Event()
        self._current_run: _AgentRun | None = None

    def set_nodes(self, nodes: Mapping[str, NodeSpec]) -> None:
        """Sets the desired nodes by name. A node left out sends no more heartbeats; its Node object stays.

        May be called any number of times, before `run` and while it runs.
        """
        for name in self._nodes.keys() - nodes.keys():
            del self._nodes[name]
            self._changed.set()
        for name, spec in nodes.items():
            node = self._nodes.get(name)
            if node is None:
                self._nodes[name] = SimulatedNode(spec)
                self._changed.set()
            elif node.spec != spec:
                node.set_spec(spec)
            else:
                continue
            if self._current_run is not None:
                self._current_run.spec_changed(name)
            self._poll_now.set()

    def node_states(self) -> Mapping[str, NodeState]:
        """Returns the state of each node by name, before the cluster itself has noticed a change."""
        return {name: node.state for name, node in self._nodes.items()}

    async def wait_changed(self) -> None:
        """Waits until `seen` has changed since the last wait. Call it right after `seen`, with no await between."""
        await self._changed.wait()
        self._changed.clear()

    async def run(self) -> None:
        """Simulates the nodes until cancelled. Waits for an API server or twin that is not reachable."""
        while True:
            tender = NodeReporter(self._client, self._now, heartbeat=self._heartbeat)
            try:
                async with asyncio.TaskGroup() as group:
                    pods = PodRunner(self._client)
                    self._current_run = _AgentRun(
                        self._client, tender, pods, self._nodes, self._now, self._changed
                    )
                    self._current_run.start(group)
                    group.create_task(self._poll_machines(self._current_run))
            except* RestoreDetected:
                logger.warning("cluster restored from a backup; its nodes are read again")
            finally:
                self._current_run = None
                tender.close()

    async def _poll_machines(self, life: _AgentRun) -> None:
        problem = ""
        while True:
            self._poll_now.clear()
            hosts = [node.spec.host for node in self._nodes.values()]
            try:
                machines = await self._machines.read_states(hosts) if hosts else {}
            except BoatyardError as error:
                # Nothing is known about the machines now: the nodes stay as they are.
                if str(error) != problem:
                    problem = str(error)
                    logger.warning("machines cannot be read", extra={"problem": problem})
            else:
                problem = ""
                queried_hosts = set(hosts)
                for name, node in self._nodes.items():
                    machine = machines.get(node.spec.host, _NO_MACHINE)
                    if machine is not node.machine and node.spec.host in queried_hosts:
                        node.machine = machine
                        life.update_health(name)
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._poll_now.wait()
            except TimeoutError:
                continue


class _AgentRun:
    """One run of the agent, with all it knows of the cluster. A restore of the cluster ends it."""

    def __init__(
        self,
        client: KubeClient,
        tender: NodeReporter,
        pods: PodRunner,
        nodes: dict[str, SimulatedNode],
        now: Now,
        changed: asyncio.Event,
    ) -> None:
        self._now = now
        self._nodes = nodes
        self._changed = changed
        self._queue = DelayQueue()
        self._loop = asyncio.get_running_loop()
        self._reporter = tender
        self._pods = pods
        self._node_informer = Informer(
            client, NODES, shape=self._summarize, streaming=True, longest_pause=_BACKOFF.longest
        )
        self._failures = 0
        self._paused_until = 0.0
        for node in nodes.values():
            node.reset_observations()

    def start(self, group: asyncio.TaskGroup) -> None:
        group.create_task(self._node_informer.run())
        group.create_task(self._pods.informer.run())
        group.create_task(self._start_workers(group))

    def update_health(self, name: str) -> None:
        """Updates the state of a node whose machine has changed, or whose time has come."""
        node = self._nodes[name]
        if node.update_health(self._now().timestamp()):
            self._queue.put(_NODE_PREFIX + name)
            for key in self._pods.list_pods_on(name):
                self._queue.put(_POD_PREFIX + key)
        self._publish_state(node)

    def spec_changed(self, name: str) -> None:
        if self._node_informer.get(name) is not None:
            self._object_changed(name)
        self.update_health(name)
        self._queue.put(_NODE_PREFIX + name)

    async def _start_workers(self, group: asyncio.TaskGroup) -> None:
        """Reads existing objects before any work: otherwise every node would be registered a second time."""
        await self._node_informer.synced.wait()
        await self._pods.informer.synced.wait()
        for key, _ in self._pods.informer.items():
            self._pods.take_in(key)
        for name in self._nodes:
            self._object_changed(name)
        if any(node.summary is not None for node in self._nodes.values()):
            try:
                await self._reporter.adopt_leases(self._nodes.get)
            except BoatyardError as error:
                logger.debug(
                    "leases not read; each is taken over alone", extra={"problem": str(error)}
                )
        for name in self._nodes:
            self.update_health(name)
            self._queue.put(_NODE_PREFIX + name)
        group.create_task(self._watch_nodes())
        group.create_task(self._watch_pods())
        for _ in range(WORKERS):
            group.create_task(self._run_worker())

    async def _watch_nodes(self) -> None:
        while True:
            self._object_changed(await self._node_informer.next_key())

    async def _watch_pods(self) -> None:
        while True:
            key = await self._pods.informer.next_key()
            self._pods.take_in(key)
            self._queue.put(_POD_PREFIX + key)

    def _object_changed(self, name: str) -> None:
        """Takes in a Node object that has changed or was deleted."""
        node = self._nodes.get(name)
        if node is None:
            return
        item = self._node_informer.get(name)
        summary: NodeSummary | None = None if item is None else item["seen"]
        if summary is None:
            node.mark_deleted()
        elif node.summary is None or summary.resource_version > node.summary.resource_version:
            node.summary, node.joined = summary, True
        else:
            return  # not newer than the response to our own last write
        self._queue.put(_NODE_PREFIX + name)
        self._publish_state(node)

    async def _run_worker(self) -> None:
        while True:
            key = await self._queue.take()
            try:
                await self._handle(key)
                self._failures = 0
            except Unavailable as error:
                self._pause_work(error)
                self._queue.put(key, self._loop.time() + _RETRY_SECONDS)
            except Refused as error:
                self._record_refusal(key, error)
                self._queue.put(key, self._loop.time() + _REFUSED_SECONDS)
            except Conflict:
                self._queue.put(
                    key, self._loop.time() + _RETRY_SECONDS
                )  # somebody else was quicker
            except BoatyardError:
                # Something it needs does not exist yet, such as the leases' namespace of a new cluster.
                self._queue.put(key, self._loop.time() + _MISSING_RETRY_SECONDS)
            except RestoreDetected:
                raise
            except Exception:  # one bad object must not stop all the others of its cluster
                logger.exception("node or pod handling crashed", extra={"what": key})
                self._queue.put(key, self._loop.time() + _REFUSED_SECONDS)
            finally:
                self._queue.done(key)

    async def _handle(self, key: str) -> None:
        if key.startswith(_NODE_PREFIX):
            await self._handle_node(key, key.removeprefix(_NODE_PREFIX))
        else:
            await self._handle_pod(key, key.removeprefix(_POD_PREFIX))

    async def _handle_node(self, key: str, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            return
        self.update_health(name)
        was_there = node.summary is not None
        at = await self._reporter.report_node(node)
        if self._nodes.get(name) is not node:
            return  # removed meanwhile
        if at is not None:
            self._queue.put(key, at)
        if not was_there and node.summary is not None:
            for pod in self._pods.list_pods_on(name):
                self._queue.put(_POD_PREFIX + pod)
        self._publish_state(node)

    async def _handle_pod(self, key: str, pod: str) -> None:
        node = self._nodes.get(self._pods.node_of(pod))
        if node is None:
            return
        seconds = await self._pods.handle_pod(pod, node, self._now())
        if seconds is not None:
            self._queue.put(key, self._loop.time() + seconds)

    def _publish_state(self, node: SimulatedNode) -> None:
        state = node.make_state()
        if state != node.state:
            node.state = state
            self._changed.set()

    def _record_refusal(self, key: str, error: Refused) -> None:
        logger.warning("API server refuses a write", extra={"what": key, "problem": str(error)})
        node = (
            self._nodes.get(key.removeprefix(_NODE_PREFIX))
            if key.startswith(_NODE_PREFIX)
            else None
        )
        if node is not None:
            node.refusal = describe_refusal(error)
            self._publish_state(node)

    def _pause_work(self, error: Unavailable) -> None:
        """Pauses all work while the API server is not reachable, longer each time. Concurrent failures count once."""
        now = self._loop.time()
        if now < self._paused_until:
            return
        self._failures += 1
        if self._failures == 1:
            logger.warning("API server not reachable", extra={"problem": str(error)})
        self._paused_until = now + _BACKOFF.pause(self._failures)
        self._queue.pause_until(self._paused_until)

    def _summarize(self, item: dict[str, Any]) -> dict[str, Any]:
        metadata = item["metadata"]
        node = self._nodes.get(metadata["name"])
        identity = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        return {
            "metadata": identity,
            "seen": summarize_node(item, None if node is None else node.spec),
        }

"""The node agent of one cluster, which simulates its nodes according to their machines. Run by the keeper."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.informer import Informer
from boatyard.kube.kinds import NODES
from boatyard.model.errors import BoatyardError, Conflict, Refused, Unavailable
from boatyard.platforms.drivers.local.nodes.agenda import Agenda
from boatyard.platforms.drivers.local.nodes.kept import Kept
from boatyard.platforms.drivers.local.nodes.machines import Machine, Machines
from boatyard.platforms.drivers.local.nodes.objects import NodeSeen, see_node
from boatyard.platforms.drivers.local.nodes.podwork import PodWork
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState, Now, wall_clock
from boatyard.platforms.drivers.local.nodes.tending import HEARTBEAT, Rewound, Tender, explain

logger = logging.getLogger(__name__)

LOOK_EVERY = 1.0
WORKERS = 32
_NODE, _POD = "node/", "pod/"
_SOON, _LATER, _REFUSED_SECONDS = 0.2, 1.0, 30.0
_FIRST_REST, _LONGEST_REST = 0.2, 2.0
_NO_MACHINE = Machine(power=False)


class NodeAgent:
    """Follows the machines of its nodes and simulates their kubelets. One per cluster, with few tasks for all nodes."""

    def __init__(
        self,
        client: KubeClient,
        machines: Machines,
        *,
        now: Now = wall_clock,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        self._client = client
        self._machines = machines
        self._now = now
        self._heartbeat = heartbeat
        self._nodes: dict[str, Kept] = {}
        self._changed = asyncio.Event()
        self._look_now = asyncio.Event()
        self._life: _Life | None = None

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
                self._nodes[name] = Kept(spec)
                self._changed.set()
            elif node.spec != spec:
                node.respec(spec)
            else:
                continue
            if self._life is not None:
                self._life.spec_changed(name)
            self._look_now.set()

    def seen(self) -> Mapping[str, NodeState]:
        """Returns the state of each node by name, before the cluster itself has noticed a change."""
        return {name: node.state for name, node in self._nodes.items()}

    async def wait_changed(self) -> None:
        """Waits until `seen` has changed since the last wait. Call it right after `seen`, with no await between."""
        await self._changed.wait()
        self._changed.clear()

    async def run(self) -> None:
        """Simulates the nodes until cancelled. Waits for an API server or twin that is not reachable."""
        while True:
            tender = Tender(self._client, self._now, heartbeat=self._heartbeat)
            try:
                async with asyncio.TaskGroup() as group:
                    pods = PodWork(self._client)
                    self._life = _Life(
                        self._client, tender, pods, self._nodes, self._now, self._changed
                    )
                    self._life.start(group)
                    group.create_task(self._look(self._life))
            except* Rewound:
                logger.warning("cluster restored from a backup; its nodes are read again")
            finally:
                self._life = None
                tender.close()

    async def _look(self, life: _Life) -> None:
        problem = ""
        while True:
            self._look_now.clear()
            hosts = [node.spec.host for node in self._nodes.values()]
            try:
                machines = await self._machines.look(hosts) if hosts else {}
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
                        life.stand(name)
            try:
                async with asyncio.timeout(LOOK_EVERY):
                    await self._look_now.wait()
            except TimeoutError:
                continue


class _Life:
    """One run of the agent, with all it knows of the cluster. A restore of the cluster ends it."""

    def __init__(
        self,
        client: KubeClient,
        tender: Tender,
        pods: PodWork,
        nodes: dict[str, Kept],
        now: Now,
        changed: asyncio.Event,
    ) -> None:
        self._now = now
        self._nodes = nodes
        self._changed = changed
        self._agenda = Agenda()
        self._loop = asyncio.get_running_loop()
        self._tender = tender
        self._pods = pods
        self._objects = Informer(
            client, NODES, shape=self._shape, streaming=True, longest_pause=_LONGEST_REST
        )
        self._failures = 0
        self._resting_until = 0.0
        for node in nodes.values():
            node.forget()

    def start(self, group: asyncio.TaskGroup) -> None:
        group.create_task(self._objects.run())
        group.create_task(self._pods.informer.run())
        group.create_task(self._begin(group))

    def stand(self, name: str) -> None:
        """Updates the state of a node whose machine has changed, or whose time has come."""
        node = self._nodes[name]
        if node.stand(self._now().timestamp()):
            self._agenda.put(_NODE + name)
            for key in self._pods.on(name):
                self._agenda.put(_POD + key)
        self._tell(node)

    def spec_changed(self, name: str) -> None:
        if self._objects.get(name) is not None:
            self._object_changed(name)
        self.stand(name)
        self._agenda.put(_NODE + name)

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        """Reads existing objects before any work: otherwise every node would be registered a second time."""
        await self._objects.synced.wait()
        await self._pods.informer.synced.wait()
        for key, _ in self._pods.informer.items():
            self._pods.saw(key)
        for name in self._nodes:
            self._object_changed(name)
        if any(node.seen is not None for node in self._nodes.values()):
            try:
                await self._tender.adopt_leases(self._nodes.get)
            except BoatyardError as error:
                logger.debug(
                    "leases not read; each is taken over alone", extra={"problem": str(error)}
                )
        for name in self._nodes:
            self.stand(name)
            self._agenda.put(_NODE + name)
        group.create_task(self._watch_nodes())
        group.create_task(self._watch_pods())
        for _ in range(WORKERS):
            group.create_task(self._work())

    async def _watch_nodes(self) -> None:
        while True:
            self._object_changed(await self._objects.next())

    async def _watch_pods(self) -> None:
        while True:
            key = await self._pods.informer.next()
            self._pods.saw(key)
            self._agenda.put(_POD + key)

    def _object_changed(self, name: str) -> None:
        """Takes in a Node object that has changed or was deleted."""
        node = self._nodes.get(name)
        if node is None:
            return
        item = self._objects.get(name)
        summary: NodeSeen | None = None if item is None else item["seen"]
        if summary is None:
            node.lose()
        elif node.seen is None or summary.resource_version > node.seen.resource_version:
            node.seen, node.joined = summary, True
        else:
            return  # not newer than the response to our own last write
        self._agenda.put(_NODE + name)
        self._tell(node)

    async def _work(self) -> None:
        while True:
            key = await self._agenda.take()
            try:
                await self._do(key)
                self._failures = 0
            except Unavailable as error:
                self._rest(error)
                self._agenda.put(key, self._loop.time() + _SOON)
            except Refused as error:
                self._refused(key, error)
                self._agenda.put(key, self._loop.time() + _REFUSED_SECONDS)
            except Conflict:
                self._agenda.put(key, self._loop.time() + _SOON)  # somebody else was quicker
            except BoatyardError:
                # Something it needs does not exist yet, such as the leases' namespace of a new cluster.
                self._agenda.put(key, self._loop.time() + _LATER)
            except Rewound:
                raise
            except Exception:  # one bad object must not stop all the others of its cluster
                logger.exception("node or pod handling crashed", extra={"what": key})
                self._agenda.put(key, self._loop.time() + _REFUSED_SECONDS)
            finally:
                self._agenda.done(key)

    async def _do(self, key: str) -> None:
        if key.startswith(_NODE):
            await self._do_node(key, key.removeprefix(_NODE))
        else:
            await self._do_pod(key, key.removeprefix(_POD))

    async def _do_node(self, key: str, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            return
        self.stand(name)
        was_there = node.seen is not None
        at = await self._tender.tend(node)
        if self._nodes.get(name) is not node:
            return  # removed meanwhile
        if at is not None:
            self._agenda.put(key, at)
        if not was_there and node.seen is not None:
            for pod in self._pods.on(name):
                self._agenda.put(_POD + pod)
        self._tell(node)

    async def _do_pod(self, key: str, pod: str) -> None:
        node = self._nodes.get(self._pods.node_of(pod))
        if node is None:
            return
        seconds = await self._pods.handle(pod, node, self._now())
        if seconds is not None:
            self._agenda.put(key, self._loop.time() + seconds)

    def _tell(self, node: Kept) -> None:
        state = node.describe()
        if state != node.state:
            node.state = state
            self._changed.set()

    def _refused(self, key: str, error: Refused) -> None:
        logger.warning("API server refuses a write", extra={"what": key, "problem": str(error)})
        node = self._nodes.get(key.removeprefix(_NODE)) if key.startswith(_NODE) else None
        if node is not None:
            node.refused = explain(error)
            self._tell(node)

    def _rest(self, error: Unavailable) -> None:
        """Pauses all work while the API server is not reachable, longer each time. Concurrent failures count once."""
        now = self._loop.time()
        if now < self._resting_until:
            return
        self._failures += 1
        if self._failures == 1:
            logger.warning("API server not reachable", extra={"problem": str(error)})
        pause = min(_FIRST_REST * 2 ** min(self._failures - 1, 10), _LONGEST_REST)
        self._resting_until = now + pause
        self._agenda.rest(self._resting_until)

    def _shape(self, item: dict[str, Any]) -> dict[str, Any]:
        metadata = item["metadata"]
        node = self._nodes.get(metadata["name"])
        identity = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        return {"metadata": identity, "seen": see_node(item, None if node is None else node.spec)}

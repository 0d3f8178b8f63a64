"""The real nodes of one cluster: prepares, starts, restarts and removes them. Owned by the household."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import signal
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from boatyard.kube.kinds import NODES
from boatyard.model.errors import BoatyardError
from boatyard.pki.authority import Pem
from boatyard.platforms.drivers.local import allocation, components, real
from boatyard.platforms.drivers.local.certificates import load_authority, make_kubeconfig
from boatyard.platforms.drivers.local.control_plane import ControlPlane
from boatyard.platforms.drivers.local.node_hooks import NodeHooks
from boatyard.platforms.drivers.local.nodes.spec import NodeState
from boatyard.platforms.drivers.local.process_supervisor import FindProgram
from boatyard.platforms.drivers.local.records import ClusterRecord, NodeRecord
from boatyard.processes.marked_processes import (
    MarkedProcess,
    ProcessSpec,
    find_processes,
    start_process,
)

logger = logging.getLogger(__name__)

PASS_SECONDS = 1.0
STARTING_PASS_SECONDS = 0.1
READY_SECONDS = 20.0
STOP_SECONDS = 15.0
_JOINING = NodeState(joined=False, ready=False, message="The node is joining.")
_NOT_ANSWERING = "The node does not answer."
_READING_NODES = "Nodes are being looked at."
_UPGRADING_NODES = "Nodes are moving to the new version."
_UNVERSIONED_PROGRAM = (
    "containerd"  # installed on the machine, independent of the cluster's version
)


class RealNodes(NodeHooks):
    """Every pass starts what is missing. Running programs are found by their mark, like those of the control plane.

    A mark ends with a digest of version and arguments: a program with another digest is replaced, one node after
    the other, and only once the whole control plane has the new version. Pods run on meanwhile.
    """

    def __init__(self, plane: ControlPlane, *, mark: str, program: FindProgram) -> None:
        self._plane = plane
        self._mark = f"{mark}/{plane.slug}-nodes"
        self._find_program = program
        self._states: dict[str, NodeState] = {}
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        # By slot, of nodes that are ready; None before the first look.
        self._ready_versions: dict[str, str] | None = None
        self._prepared: dict[str, tuple[str, real.RealNode]] = {}  # by slot, with its version

    def wake(self) -> None:
        self._wake.set()

    def node_states(self) -> Mapping[str, NodeState]:
        """Returns the states of the nodes by slot."""
        return self._states

    async def wait_changed(self) -> None:
        await self._changed.wait()

    async def run(self) -> None:
        """Runs passes until cancelled; the nodes run on then."""
        while True:
            self._wake.clear()
            wait = PASS_SECONDS
            try:
                wait = await self._run_pass()
            except BoatyardError as error:
                logger.warning(
                    "node pass failed", extra={"cluster": self._plane.slug, "why": str(error)}
                )
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _run_pass(self) -> float:
        record = self._plane.record
        wait = PASS_SECONDS
        failed: BoatyardError | None = None
        running = await asyncio.to_thread(find_processes, f"{self._mark}/", ())
        try:
            for node in record.nodes.values():
                if node.leaving_since:
                    continue
                replace = wait == PASS_SECONDS  # all nodes before it are complete
                if not await self._ensure_node(record, node, running, replace=replace):
                    wait = STARTING_PASS_SECONDS
        except BoatyardError as error:
            failed = error  # the nodes' states are read all the same
        finally:
            for processes in running.values():
                for process in processes:
                    process.close()
        await self._read_states(record)
        if failed is not None:
            raise failed
        if any(not self._states.get(node.slot, _JOINING).ready for node in record.nodes.values()):
            return min(wait, 0.2)
        return wait

    async def _ensure_node(
        self,
        record: ClusterRecord,
        node: NodeRecord,
        running: Mapping[str, list[MarkedProcess]],
        *,
        replace: bool,
    ) -> bool:
        """Starts the first program of a node that does not run. True when all of them run and answer.

        An outdated program runs on until `replace` is set.
        """
        version, real_node = self._prepared.get(node.slot, ("", None))
        if real_node is None or (version != record.version and replace):
            real_node = await asyncio.to_thread(self._make_real_node, record, node)
            await real.prepare_node(real_node)
            version, self._prepared[node.slot] = record.version, (record.version, real_node)
        for component in real.list_programs(real_node):
            name = f"{self._mark}/{node.slot}/{component.name}"
            mark = f"{name}/{_digest(component, version)}"
            component_processes = [
                process
                for full_mark, processes in running.items()
                if full_mark == name or full_mark.startswith(f"{name}/")
                for process in processes
                if process.is_alive
            ]
            outdated = [process for process in component_processes if process.mark != mark]
            if outdated and not replace:
                return False
            await self._stop_processes(outdated)
            if len(outdated) == len(component_processes):
                await self._start_program(real_node, component, mark)
                if component.name == "containerd":
                    await self._wait_until_ready(component)
                    await real.import_images(real_node)
                    continue
                return False
            if not await component.is_ready():
                return False
        return True

    async def _start_program(
        self, real_node: real.RealNode, component: real.NodeProgram, mark: str
    ) -> None:
        log = self._plane.directory / "log"
        log.mkdir(exist_ok=True, mode=0o700)
        spec = ProcessSpec(
            mark=mark,
            argv=component.argv,
            executable=component.executable,
            directory=real_node.directory,
            log=log / f"{real_node.name}-{component.name}.log",
            netns=component.netns,
            environ=component.environ,
        )
        process = await asyncio.to_thread(start_process, spec)
        process.close()
        logger.info("node component started", extra={"component": mark})

    async def _stop_processes(self, processes: Sequence[MarkedProcess]) -> None:
        """Ends processes with SIGTERM, later SIGKILL. Processes that they have started run on."""
        for process in processes:
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while remaining := [process for process in processes if process.is_alive]:
            if time.monotonic() > deadline:
                for process in remaining:
                    process.signal(signal.SIGKILL)
            await asyncio.sleep(0.02)

    async def _wait_until_ready(self, component: real.NodeProgram) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not await component.is_ready():
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.05)

    def _make_real_node(self, record: ClusterRecord, node: NodeRecord) -> real.RealNode:
        pki = self._plane.run_directory / "pki"
        ca = load_authority(pki, "ca")
        now = datetime.now(UTC)  # noqa: TID251 - certificates are good by the wall clock
        prefix = ipaddress.ip_network(record.wanted.machine_cidr).prefixlen
        address = allocation.node_address(
            record.wanted.machine_cidr, node.number, otherwise=node.address
        )
        client = ca.issue(
            f"system:node:{node.slot}", organizations=["system:nodes"], client=True, now=now
        )
        serving = ca.issue(
            f"system:node:{node.slot}",
            organizations=["system:nodes"],
            names=[node.slot],
            addresses=[address],
            server=True,
            now=now,
        )
        proxy = ca.issue("system:kube-proxy", client=True, now=now)
        return real.RealNode(
            slug=record.slug,
            name=node.slot,
            number=node.number,
            address=f"{address}/{prefix}",
            pod_cidr=allocation.pod_range(record.wanted.pod_cidr, node.number),
            directory=self.directory_of(node),
            kubelet=self._find_program(record.version, "kubelet"),
            kubeconfig=self._make_kubeconfig(record, "kubelet", client, ca.pem.certificate),
            ca=ca.pem.certificate,
            serving_cert=serving.certificate,
            serving_key=serving.key,
            labels={"boatyard.io/node-set": node.node_set},
            kube_proxy=self._find_program(record.version, "kube-proxy"),
            proxy_kubeconfig=self._make_kubeconfig(record, "kube-proxy", proxy, ca.pem.certificate),
        )

    def _make_kubeconfig(self, record: ClusterRecord, user: str, pem: Pem, ca: bytes) -> str:
        return make_kubeconfig(
            server=components.internal_url(record),
            name=record.wanted.name,
            user=user,
            ca=ca,
            pem=pem,
        )

    def directory_of(self, node: NodeRecord) -> Path:
        return self._plane.directory / "nodes" / node.slot

    async def _read_states(self, record: ClusterRecord) -> None:
        client = self._plane.client
        if client is None:
            return
        nodes_by_name = {
            node["metadata"]["name"]: node for node in (await client.list(NODES)).items
        }
        states = {}
        versions = {}
        for node in record.nodes.values():
            before = self._states.get(node.slot, _JOINING)
            node_object = nodes_by_name.get(node.slot)
            if node_object is None:
                states[node.slot] = NodeState(before.joined, ready=False, message=_JOINING.message)
            else:
                conditions = (node_object.get("status") or {}).get("conditions") or ()
                ready = any(
                    condition["type"] == "Ready" and condition["status"] == "True"
                    for condition in conditions
                )
                message = "" if ready else _NOT_ANSWERING if before.joined else _JOINING.message
                states[node.slot] = NodeState(before.joined or ready, ready, message)
                if ready and not node.leaving_since:
                    versions[node.slot] = _version_of(node_object)
        if versions != self._ready_versions:
            self._ready_versions = versions
            self._plane.wake()  # its desired state includes the nodes' versions
        if states != self._states:
            self._states = states
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    @property
    def version_message(self) -> str:
        record = self._plane.record
        if self._ready_versions is None:
            return _READING_NODES if record.nodes else ""
        return _UPGRADING_NODES if set(self._ready_versions.values()) - {record.version} else ""

    # --- the ground the control plane stands on ------------------------------------------------

    async def prepare(self) -> None:
        desired = self._plane.record.wanted
        prefix = ipaddress.ip_network(desired.machine_cidr).prefixlen
        await real.prepare_segment(self._plane.slug, f"{desired.gateway}/{prefix}")

    async def freeze(self, *, frozen: bool) -> None:
        for node in self._plane.record.nodes.values():
            await real.freeze_node(self._plane.slug, node.slot, frozen=frozen)

    async def stop(self) -> None:
        """Removes all nodes. When they are started again, the cluster schedules their pods again."""
        slug = self._plane.slug
        directory = self._plane.directory / "nodes"
        names = {
            *await real.list_nodes(slug),
            *(node.slot for node in self._plane.record.nodes.values()),
        }
        self._prepared.clear()
        self._ready_versions = None
        for name in sorted(names):
            await real.clean_node(slug, name, directory / name)

    async def clean_up(self) -> None:
        await self.stop()
        await real.clean_segment(self._plane.slug)

    async def end_node(self, node: NodeRecord) -> None:
        self._prepared.pop(node.slot, None)
        await real.clean_node(self._plane.slug, node.slot, self.directory_of(node))


def _digest(component: real.NodeProgram, version: str) -> str:
    relevant_version = "" if component.name == _UNVERSIONED_PROGRAM else version
    return hashlib.sha256("\0".join((relevant_version, *component.argv)).encode()).hexdigest()[:8]


def _version_of(node: Mapping[str, Any]) -> str:
    """Returns the version of a node's kubelet."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("kubeletVersion", "")).removeprefix("v")

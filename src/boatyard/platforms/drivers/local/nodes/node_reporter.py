"""Writes the Node objects and heartbeats of the simulated nodes of one cluster. Called by the agent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import LEASES, NODES
from boatyard.model.errors import BoatyardError, Conflict, Exists, NotFound
from boatyard.platforms.drivers.local.nodes.heartbeat_client import HeartbeatClient
from boatyard.platforms.drivers.local.nodes.node_health import NodeHealth, boot_end
from boatyard.platforms.drivers.local.nodes.objects import (
    LEASE_NAMESPACE,
    NodeLease,
    is_current,
    node_body,
    node_labels,
    node_status,
    parse_time,
    summarize_node,
)
from boatyard.platforms.drivers.local.nodes.simulated_node import SimulatedNode
from boatyard.platforms.drivers.local.nodes.spec import Now

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 10.0  # seconds; a lease is valid for four of them
_LEASES_PATH = LEASES.path(LEASE_NAMESPACE)


class RestoreDetected(Exception):
    """The cluster's resource versions went backwards: it was restored from a backup."""


class NodeReporter:
    """Writes what a node needs now, and says when it needs something next."""

    def __init__(
        self, client: KubeClient, now: Now, *, heartbeat: float = HEARTBEAT_SECONDS
    ) -> None:
        self._client = client
        self._heartbeat_client = HeartbeatClient(client.config, agent=client.manager)
        self._heartbeat_seconds = heartbeat
        self._lease_seconds = max(round(4 * heartbeat), 1)
        self._now = now
        self._newest_version = 0  # the newest resource version received from the cluster

    async def report_node(self, node: SimulatedNode) -> float | None:
        """Registers the node, reports its status, sends its heartbeat. Returns the loop's time at which it must be
        called next; None when only a change makes that necessary."""
        now = self._now().timestamp()
        loop_now = asyncio.get_running_loop().time()
        if node.health is NodeHealth.BOOTING and node.machine is not None:
            return loop_now + max(boot_end(node.spec, node.machine) - now, 0.0)
        if node.health.is_kubelet_running:
            await self._write_node(node)
        elif node.health is not NodeHealth.UNKNOWN:
            return None  # a machine that is down sends nothing; the cluster notices by itself
        if node.summary is None:
            return None
        await self._send_heartbeat(node)
        return (
            min(node.lease_at, node.report_at) if node.health.is_kubelet_running else node.lease_at
        )

    def close(self) -> None:
        self._heartbeat_client.close()

    async def adopt_leases(self, find_node: Callable[[str], SimulatedNode | None]) -> None:
        """Takes over the leases of existing nodes, with one list instead of one conflict each."""
        loop_now = asyncio.get_running_loop().time()
        now = self._now().timestamp()
        for item in (await self._client.list(LEASES, LEASE_NAMESPACE)).items:
            node = find_node(item["metadata"]["name"])
            if node is None or node.summary is None:
                continue
            version = item["metadata"]["resourceVersion"]
            node.lease = NodeLease(node.spec.name, node.summary.uid, self._lease_seconds, version)
            if (
                now - parse_time(item.get("spec", {}).get("renewTime", ""))
                < self._heartbeat_seconds
            ):
                node.schedule_heartbeat(loop_now, self._heartbeat_seconds)

    async def _write_node(self, node: SimulatedNode) -> None:
        """Creates the Node object, or updates its status and labels."""
        assert node.machine is not None
        loop_now = asyncio.get_running_loop().time()
        spec, machine = node.spec, node.machine
        if node.summary is None:
            if node.leaving:
                return
            await self._register(node)
            node.schedule_report(loop_now)
            # The status just written counts as a heartbeat for a while: the lease can wait for its turn.
            node.schedule_heartbeat(loop_now, self._heartbeat_seconds)
        summary = node.summary
        assert summary is not None
        if not is_current(summary, spec, machine, node.boot_id) or loop_now >= node.report_at:
            status = node_status(spec, machine, summary.conditions, self._now())
            await self._patch(node, {"status": status}, subresource="status")
            node.schedule_report(loop_now)
        if node.needs_relabel or not summary.has_labels:
            await self._patch(node, {"metadata": {"labels": node_labels(spec)}})
            node.needs_relabel = False

    async def _register(self, node: SimulatedNode) -> None:
        assert node.machine is not None
        body = node_body(node.spec, node.machine, self._now())
        try:
            node_object = await self._client.create(NODES, body)
            logger.info("node registered", extra={"node": node.spec.name})
        except Exists:
            node_object = await self._client.get(NODES, node.spec.name)
        self._take_in(node, node_object)

    async def _patch(
        self, node: SimulatedNode, patch: dict[str, Any], *, subresource: str = ""
    ) -> None:
        # Only the object that was read: another of its name must be read first.
        assert node.summary is not None
        guarded = {**patch, "metadata": {**patch.get("metadata", {}), "uid": node.summary.uid}}
        try:
            node_object = await self._client.merge_patch(
                NODES, node.spec.name, guarded, subresource=subresource
            )
        except (NotFound, Conflict):
            node.mark_deleted()
            raise
        self._take_in(node, node_object)

    def _take_in(self, node: SimulatedNode, node_object: dict[str, Any]) -> None:
        node.summary, node.joined, node.refusal = summarize_node(node_object, node.spec), True, ""

    async def _send_heartbeat(self, node: SimulatedNode) -> None:
        loop_now = asyncio.get_running_loop().time()
        assert node.summary is not None
        if loop_now < node.lease_at:
            return
        lease = node.lease
        if lease is None or lease.uid != node.summary.uid:
            version = "" if lease is None else lease.resource_version
            lease = node.lease = NodeLease(
                node.spec.name, node.summary.uid, self._lease_seconds, version
            )
        newest = self._newest_version
        lease.resource_version = await self._renew_lease(node.spec.name, lease)
        version_now = int(lease.resource_version)
        # Resource versions only grow: this write came after the newest one was received.
        if version_now <= newest:
            raise RestoreDetected
        self._newest_version = max(self._newest_version, version_now)
        node.schedule_heartbeat(loop_now, self._heartbeat_seconds)

    async def _renew_lease(self, name: str, lease: NodeLease) -> str:
        if lease.resource_version:
            version = await self._heartbeat_client.put(
                f"{_LEASES_PATH}/{name}", lease.render(self._now())
            )
            if version is not None:
                return version
        for _ in range(2):
            try:
                return await self._write_lease(name, lease)
            except NotFound:
                if not lease.resource_version:
                    raise  # the namespace does not exist yet
                lease.resource_version = ""
            except (Exists, Conflict):
                current = await self._client.get(LEASES, name, LEASE_NAMESPACE)
                lease.resource_version = current["metadata"]["resourceVersion"]
        return await self._write_lease(name, lease)

    async def _write_lease(self, name: str, lease: NodeLease) -> str:
        body = msgspec.Raw(lease.render(self._now()))
        if lease.resource_version:
            response = await self._client.call("PUT", f"{_LEASES_PATH}/{name}", body=body)
        else:
            response = await self._client.call("POST", _LEASES_PATH, body=body)
        return str(response["metadata"]["resourceVersion"])


def describe_refusal(error: BoatyardError) -> str:
    """Returns why a node was not accepted, as a sentence that is stable while the cause is the same."""
    return f"The cluster does not accept the node: {error}"

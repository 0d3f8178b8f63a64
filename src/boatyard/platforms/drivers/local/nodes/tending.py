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
from boatyard.platforms.drivers.local.nodes.kept import Kept
from boatyard.platforms.drivers.local.nodes.objects import (
    LEASE_NAMESPACE,
    Lease,
    is_current,
    node_body,
    node_labels,
    node_status,
    parse_time,
    see_node,
)
from boatyard.platforms.drivers.local.nodes.spec import Now
from boatyard.platforms.drivers.local.nodes.standing import Standing, booted_at
from boatyard.platforms.drivers.local.nodes.wire import Wire

logger = logging.getLogger(__name__)

HEARTBEAT = 10.0  # seconds; a lease is valid for four of them
_LEASES = LEASES.path(LEASE_NAMESPACE)


class Rewound(Exception):
    """The cluster's resource versions went backwards: it was restored from a backup."""


class Tender:
    """Writes what a node needs now, and says when it needs something next."""

    def __init__(self, client: KubeClient, now: Now, *, heartbeat: float = HEARTBEAT) -> None:
        self._client = client
        self._wire = Wire(client.config, agent=client.manager)
        self._every = heartbeat
        self._lease_seconds = max(round(4 * heartbeat), 1)
        self._now = now
        self._newest = 0  # the newest resource version received from the cluster

    async def tend(self, node: Kept) -> float | None:
        """Registers the node, reports its status, sends its heartbeat. Returns the loop's time at which it must be
        called next; None when only a change makes that necessary."""
        now = self._now().timestamp()
        loop_now = asyncio.get_running_loop().time()
        if node.standing is Standing.BOOTING and node.machine is not None:
            return loop_now + max(booted_at(node.spec, node.machine) - now, 0.0)
        if node.standing.lives:
            await self._present(node)
        elif node.standing is not Standing.UNKNOWN:
            return None  # a machine that is down sends nothing; the cluster notices by itself
        if node.seen is None:
            return None
        await self._heartbeat(node)
        return min(node.lease_at, node.report_at) if node.standing.lives else node.lease_at

    def close(self) -> None:
        self._wire.close()

    async def adopt_leases(self, find_node: Callable[[str], Kept | None]) -> None:
        """Takes over the leases of existing nodes, with one list instead of one conflict each."""
        loop_now = asyncio.get_running_loop().time()
        now = self._now().timestamp()
        for item in (await self._client.list(LEASES, LEASE_NAMESPACE)).items:
            node = find_node(item["metadata"]["name"])
            if node is None or node.seen is None:
                continue
            version = item["metadata"]["resourceVersion"]
            node.lease = Lease(node.spec.name, node.seen.uid, self._lease_seconds, version)
            if now - parse_time(item.get("spec", {}).get("renewTime", "")) < self._every:
                node.renewed(loop_now, self._every)

    async def _present(self, node: Kept) -> None:
        """Creates the Node object, or updates its status and labels."""
        assert node.machine is not None
        loop_now = asyncio.get_running_loop().time()
        spec, machine = node.spec, node.machine
        if node.seen is None:
            if node.leaving:
                return
            await self._register(node)
            node.reported(loop_now)
            # The status just written counts as a heartbeat for a while: the lease can wait for its turn.
            node.renewed(loop_now, self._every)
        summary = node.seen
        assert summary is not None
        if not is_current(summary, spec, machine, node.boot_id) or loop_now >= node.report_at:
            status = node_status(spec, machine, summary.conditions, self._now())
            await self._patch(node, {"status": status}, subresource="status")
            node.reported(loop_now)
        if node.relabel or not summary.labelled:
            await self._patch(node, {"metadata": {"labels": node_labels(spec)}})
            node.relabel = False

    async def _register(self, node: Kept) -> None:
        assert node.machine is not None
        body = node_body(node.spec, node.machine, self._now())
        try:
            node_object = await self._client.create(NODES, body)
            logger.info("node registered", extra={"node": node.spec.name})
        except Exists:
            node_object = await self._client.get(NODES, node.spec.name)
        self._saw(node, node_object)

    async def _patch(self, node: Kept, patch: dict[str, Any], *, subresource: str = "") -> None:
        # Only the object that was read: another of its name must be read first.
        assert node.seen is not None
        guarded = {**patch, "metadata": {**patch.get("metadata", {}), "uid": node.seen.uid}}
        try:
            node_object = await self._client.merge_patch(
                NODES, node.spec.name, guarded, subresource=subresource
            )
        except (NotFound, Conflict):
            node.lose()
            raise
        self._saw(node, node_object)

    def _saw(self, node: Kept, node_object: dict[str, Any]) -> None:
        node.seen, node.joined, node.refused = see_node(node_object, node.spec), True, ""

    async def _heartbeat(self, node: Kept) -> None:
        loop_now = asyncio.get_running_loop().time()
        assert node.seen is not None
        if loop_now < node.lease_at:
            return
        lease = node.lease
        if lease is None or lease.uid != node.seen.uid:
            version = "" if lease is None else lease.resource_version
            lease = node.lease = Lease(node.spec.name, node.seen.uid, self._lease_seconds, version)
        newest = self._newest
        lease.resource_version = await self._renew(node.spec.name, lease)
        version_now = int(lease.resource_version)
        # Resource versions only grow: this write came after the newest one was received.
        if version_now <= newest:
            raise Rewound
        self._newest = max(self._newest, version_now)
        node.renewed(loop_now, self._every)

    async def _renew(self, name: str, lease: Lease) -> str:
        if lease.resource_version:
            version = await self._wire.put(f"{_LEASES}/{name}", lease.body(self._now()))
            if version is not None:
                return version
        for _ in range(2):
            try:
                return await self._write(name, lease)
            except NotFound:
                if not lease.resource_version:
                    raise  # the namespace does not exist yet
                lease.resource_version = ""
            except (Exists, Conflict):
                current = await self._client.get(LEASES, name, LEASE_NAMESPACE)
                lease.resource_version = current["metadata"]["resourceVersion"]
        return await self._write(name, lease)

    async def _write(self, name: str, lease: Lease) -> str:
        body = msgspec.Raw(lease.body(self._now()))
        if lease.resource_version:
            response = await self._client.call("PUT", f"{_LEASES}/{name}", body=body)
        else:
            response = await self._client.call("POST", _LEASES, body=body)
        return str(response["metadata"]["resourceVersion"])


def explain(error: BoatyardError) -> str:
    """Returns why a node was not accepted, as a sentence that is stable while the cause is the same."""
    return f"The cluster does not accept the node: {error}"

"""The supervisor of all local clusters of one data directory. Implements the verbs of the platform port.

Runs as a process of its own (`server.py`); the driver calls it over a socket.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.drivers.local import allocation, components
from boatyard.platforms.drivers.local.backups import Backups, read_backup
from boatyard.platforms.drivers.local.control_plane import ControlPlane
from boatyard.platforms.drivers.local.local_cluster import LocalCluster, NodeBackend
from boatyard.platforms.drivers.local.nodes.node_drain import Candidate, choose_leaving
from boatyard.platforms.drivers.local.process_supervisor import kill_orphans
from boatyard.platforms.drivers.local.real_nodes import RealNodes
from boatyard.platforms.drivers.local.records import (
    ClusterRecord,
    ClusterRecords,
    NodeRecord,
    slug_of,
)
from boatyard.platforms.drivers.local.startup_throttle import StartupThrottle
from boatyard.platforms.drivers.local.versions import check_step
from boatyard.platforms.port import API_ANSWERS, DesiredCluster, DesiredNode, RestMode

logger = logging.getLogger(__name__)

RESULT_WAIT_SECONDS = 3.0  # seconds a verb waits for its result before it returns Waiting
LOOK_AGAIN = 0.1
DRAIN_SECONDS = 300.0  # after that a node leaves in spite of disruption budgets


class ProgramFinder(Protocol):
    """Finds the installed programs; implemented by `boatyard.assets`."""

    def versions(self) -> tuple[str, ...]: ...

    def program(self, version: str, name: str) -> Path: ...


class Keeper:
    def __init__(
        self, directory: Path, *, programs: ProgramFinder, node_backend: NodeBackend
    ) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._programs = programs
        self._node_backend = node_backend
        self._mark = hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:10]
        self.records = ClusterRecords(directory / "clusters")
        self._clusters: dict[str, LocalCluster] = {}
        self._reported_failures: set[str] = (
            set()
        )  # slugs whose failed upgrade has been reported once
        self._backups = Backups(directory / "backups")
        self._throttle = StartupThrottle()

    async def start(self) -> None:
        """Resumes every recorded cluster. Kills processes of clusters without a record."""
        known_slugs = {*self.records.unreadable, *(record.slug for record in self.records)}
        await asyncio.to_thread(kill_orphans, self._mark, known_slugs)
        for record in self.records:
            self._open_cluster(record)

    async def close(self, *, stop: bool) -> None:
        """Closes all clusters. They run on, unless `stop`: then the next keeper starts them again."""
        await asyncio.gather(*(cluster.close(stop=stop) for cluster in self._clusters.values()))

    def _open_cluster(self, record: ClusterRecord) -> LocalCluster:
        plane = ControlPlane(
            record.slug,
            self.records,
            mark=self._mark,
            program=self._programs.program,
            backup_place=self._backups.directory_of,
            throttle=self._throttle,
        )
        real = (
            RealNodes(plane, mark=self._mark, program=self._programs.program)
            if record.real
            else None
        )
        cluster = LocalCluster(
            plane, self._node_backend, real=real, on_gone=lambda: self._remove_cluster(cluster)
        )
        self._clusters[record.slug] = cluster
        cluster.start()
        return cluster

    def _remove_cluster(self, cluster: LocalCluster) -> None:
        slug = cluster.plane.slug
        if self._clusters.get(slug) is cluster:  # not one that was ordered anew meanwhile
            del self._clusters[slug]
            self._reported_failures.discard(slug)

    # --- verbs: clusters ---------------------------------------------------------------------

    async def ping(self) -> dict[str, Any]:
        return {"versions": list(self._programs.versions()), "pid": os.getpid()}

    async def ensure_cluster(self, key: str, hub: str, wanted: dict[str, Any]) -> Outcome:
        desired = _with_default_ranges(msgspec.convert(wanted, DesiredCluster))
        record = self.records.find(key)
        if record is not None and record.leaving:
            return Waiting("The cluster is still being removed.", LOOK_AGAIN)
        self._check_request(desired, record)
        if record is None:
            record = self._create_record(key, hub, desired)
        elif record.wanted != desired:
            record = self.records.save(msgspec.structs.replace(record, wanted=desired))
        plane = self._clusters[record.slug].plane
        if record.failed_version == desired.version != record.version:
            self._report_failed_upgrade(record)
        failure, was_listening = plane.wake(), plane.is_listening
        await self._wait_until(
            plane,
            lambda: (
                plane.is_settled or failure() is not None or plane.is_listening != was_listening
            ),
        )
        if not plane.is_settled and failure() is None:
            reason = API_ANSWERS if plane.is_listening else "Waiting"
            return Waiting(
                plane.message or "The control plane is starting.", LOOK_AGAIN, reason=reason
            )
        record = plane.record
        if record.failed_version == desired.version != record.version:
            self._report_failed_upgrade(record)
        if (error := failure()) is not None:
            raise error
        return Done({"version": record.version})

    def _check_request(self, desired: DesiredCluster, record: ClusterRecord | None) -> None:
        offered = self._programs.versions()
        if desired.version not in offered:
            choices = ", ".join(offered) or "none; run `boatyard assets install`"
            raise Refused(
                f"this machine has no Kubernetes {desired.version}; it has {choices}",
                reason="NoSuchVersion",
            )
        if record is not None and record.version:
            check_step(record.upgrading or record.version, desired.version)
        last_restore = record.restored if record is not None else ""
        if desired.restore is not None and desired.restore.request != last_restore:
            backup = read_backup(self._backups.directory_of(desired.restore.backup_key))
            running = record.version if record is not None and record.version else desired.version
            check_step(backup.version, running)
        if record is None and has_real_nodes(desired):
            self._node_backend.check_real_nodes()

    def _report_failed_upgrade(self, record: ClusterRecord) -> None:
        """Refuses once with the failed version; the next call clears it, so that the upgrade is tried again."""
        if record.slug in self._reported_failures:
            self._reported_failures.discard(record.slug)
            self.records.save(msgspec.structs.replace(record, failed_version=""))
            return
        self._reported_failures.add(record.slug)
        raise Refused(
            f"version {record.failed_version} did not come up; the cluster runs {record.version} as before",
            reason="UpgradeFailed",
        )

    def _create_record(self, key: str, hub: str, desired: DesiredCluster) -> ClusterRecord:
        slug = slug_of(key)
        members = 3 if desired.settings.get("control_planes") == "3" else 1
        record = ClusterRecord(
            key=key,
            slug=slug,
            hub=hub,
            wanted=desired,
            user=allocation.choose_user(
                self._directory, slug, {record.user for record in self.records}
            ),
            ports=allocation.choose_ports(
                components.port_names(members),
                self.records.used_ports,
                seed=f"{self._directory}/{slug}",
            ),
            members=members,
            real=has_real_nodes(desired),
            made_at=_wall(),
        )
        self.records.save(record)
        self._open_cluster(record)
        return record

    async def release_cluster(self, key: str) -> Outcome:
        record = self.records.find(key)
        if record is None:
            return Done()
        cluster = self._clusters[record.slug]
        if not record.leaving:
            self.records.save(msgspec.structs.replace(record, leaving=True))
        cluster.plane.wake()
        removed = await self._wait_until(cluster.plane, lambda: self.records.find(key) is None)
        return Done() if removed else Waiting("The control plane is being removed.", LOOK_AGAIN)

    async def observe(self, cluster_key: str) -> dict[str, Any]:
        record = self.records.find(cluster_key)
        if record is None:
            return {"exists": False}
        cluster = self._clusters[record.slug]
        plane, nodes = cluster.plane, cluster.node_states()
        lost = any(node.joined and not node.ready for node in nodes.values())
        message = plane.message
        if plane.available and not message and lost:
            message = "Some nodes are not ready."
        return {
            "exists": True,
            "available": plane.available and not record.leaving,
            "degraded": plane.available and lost,
            "version": record.version,
            "message": message,
            "rest": record.wanted.rest if plane.is_resting else RestMode.AWAKE,
            "nodes": [
                (node.slot, node.node_set, nodes[key].ready, nodes[key].message)
                for key, node in record.nodes.items()
            ],
        }

    async def access(self, cluster_key: str) -> dict[str, str]:
        record = self.records.find(cluster_key)
        if record is None or record.leaving or not record.version:
            raise NotFound("there is no access to the cluster yet")
        private = self.records.directory_of(record.slug) / "private"
        return {
            "api_url": components.server_url(record),
            "console_url": "",
            "kubeconfig": (private / "admin.kubeconfig").read_text(),
            "username": "",
            "password": "",
        }

    async def list_owned(self, hub: str, prefix: str = "") -> list[tuple[str, str, str]]:
        rows = []
        for record in self.records:
            if record.hub != hub:
                continue
            rows.append((record.key, "cluster", record.wanted.name))
            rows += [(node.key, "node", node.slot) for node in record.nodes.values()]
        return sorted(row for row in rows if row[0].startswith(prefix))

    async def processes(self, cluster_key: str) -> dict[str, int]:
        """Returns the pids of a cluster's components, for people and tests."""
        record = self.records.find(cluster_key)
        return {} if record is None else self._clusters[record.slug].plane.supervisor.pids()

    # --- verbs: nodes ------------------------------------------------------------------------

    async def ensure_node(self, key: str, cluster_key: str, node: dict[str, Any]) -> Outcome:
        desired = msgspec.convert(node, DesiredNode)
        record = self.records.find(cluster_key)
        if record is None or record.leaving:
            raise Unavailable("the cluster to join is not there", reason="NoCluster")
        self._check_node(record, key, desired)
        existing = record.nodes.get(key)
        if existing is not None and existing.leaving_since:
            return Waiting("A node is still being drained.", LOOK_AGAIN)
        if existing is None or (existing.host, existing.address) != (desired.host, desired.address):
            number = existing.number if existing is not None else record.next_number
            new_node = NodeRecord(
                key=key,
                slot=desired.slot,
                node_set=desired.node_set,
                host=desired.host,
                address=desired.address,
                number=number,
                made_at=_wall(),
            )
            record = self.records.save(
                msgspec.structs.replace(
                    record,
                    nodes={**record.nodes, key: new_node},
                    next_number=max(record.next_number, number + 1),
                )
            )
        cluster = self._clusters[record.slug]
        cluster.nodes_changed()
        if await cluster.wait_ready(key, RESULT_WAIT_SECONDS):
            return Done()
        state = cluster.node_states()[key]
        reason = "HostDoesNotAnswer" if state.joined else "Waiting"
        return Waiting(state.message or "A node is joining.", LOOK_AGAIN, reason=reason)

    def _check_node(self, record: ClusterRecord, key: str, desired: DesiredNode) -> None:
        holder = self.records.find_node_by_host(desired.host)
        if holder is not None and holder.key != key:
            raise Refused("the host is a node under another key", reason="HeldByAnother")
        for node in record.nodes.values():
            if node.slot == desired.slot and node.key != key:
                raise Refused(f"node {desired.slot} belongs to another key", reason="HeldByAnother")

    async def release_node(
        self, key: str, cluster_key: str, slot: str, drain: bool = True
    ) -> Outcome:
        record = self.records.find(cluster_key)
        if record is None:
            return Done()
        for other in record.nodes.values():
            if other.slot == slot and other.key != key:
                raise Refused(f"node {slot} belongs to another key", reason="HeldByAnother")
        node = record.nodes.get(key)
        if node is None:
            return Done()
        cluster = self._clusters[record.slug]
        if not node.leaving_since:
            node = msgspec.structs.replace(node, leaving_since=_wall())
            self.records.save(msgspec.structs.replace(record, nodes={**record.nodes, key: node}))
        asleep = record.wanted.rest != RestMode.AWAKE
        if drain and not record.leaving and not asleep:
            late = _wall() - node.leaving_since > DRAIN_SECONDS
            outcome = await cluster.drain(node, late=late)
            if isinstance(outcome, Waiting):
                return outcome
        await cluster.end_node(node)
        record = self.records.find(cluster_key)
        if record is None:
            return Done()  # the whole cluster has been removed meanwhile
        remaining_nodes = {other: node for other, node in record.nodes.items() if other != key}
        self.records.save(msgspec.structs.replace(record, nodes=remaining_nodes))
        cluster.nodes_changed()
        await cluster.delete_orphan_nodes()
        return Done()

    async def choose_leaving(
        self, cluster_key: str, node_set: str, slots: Sequence[str], count: int
    ) -> list[str]:
        record = self.records.find(cluster_key)
        if record is None:
            return choose_leaving(slots, count, {})
        states = self._clusters[record.slug].node_states()
        candidates = {
            node.slot: Candidate(states[key], node.made_at) for key, node in record.nodes.items()
        }
        return choose_leaving(slots, count, candidates)

    # --- verbs: backups ----------------------------------------------------------------------

    async def ensure_backup(self, key: str, cluster_key: str, folder: str = "") -> Outcome:
        async with self._backups.get_lock(key):
            backup = self._backups.find(key)
            if backup is None:
                record = self.records.find(cluster_key)
                if record is None or record.leaving or not record.version:
                    raise Unavailable(
                        "the cluster to be backed up is not there", reason="NoCluster"
                    )
                plane = self._clusters[record.slug].plane
                if record.wanted.rest != RestMode.AWAKE or not plane.available:
                    raise Unavailable(
                        "the cluster does not answer; resume it first", reason="Resting"
                    )
                backup = await self._backups.take(key, plane, folder, now=_wall())
            return Done(
                {
                    "place": str(self._backups.directory_of(key).resolve()),
                    "bytes": str(backup.bytes),
                    "sha256": backup.sha256,
                    "version": backup.version,
                }
            )

    async def release_backup(self, key: str) -> Outcome:
        async with self._backups.get_lock(key):
            await asyncio.to_thread(self._backups.remove, key)
        return Done()

    async def _wait_until(self, plane: ControlPlane, is_reached: Callable[[], bool]) -> bool:
        try:
            async with asyncio.timeout(RESULT_WAIT_SECONDS):
                while not is_reached():
                    await plane.wait_changed()
        except TimeoutError:
            return is_reached()
        return True


def has_real_nodes(desired: DesiredCluster) -> bool:
    """Whether the cluster has real nodes: the tenant's parameter decides, then the template's setting."""
    node_kind = desired.parameters.get("nodes") or desired.settings.get("nodes") or "simulated"
    if node_kind not in ("real", "simulated"):
        raise Refused(f"nodes are `simulated` or `real`, not {node_kind!r}", reason="NoSuchNodes")
    return node_kind == "real"


def _with_default_ranges(desired: DesiredCluster) -> DesiredCluster:
    return dataclasses.replace(
        desired,
        pod_cidr=desired.pod_cidr or allocation.POD_CIDR,
        service_cidr=desired.service_cidr or allocation.SERVICE_CIDR,
    )


def _wall() -> float:
    return time.time()  # noqa: TID251 - stored times must outlive this process

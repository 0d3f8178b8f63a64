"""The state of a keeper, read from outside: records, processes by their mark, ports, and the clusters' own APIs.

The keeper itself is not asked: what it believes may be wrong.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from boatyard.checks.drivers.kube.check_job import CHECK_LABEL as CHECK
from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import CONFIG_MAPS, JOBS, NODES, PODS
from boatyard.model.errors import BoatyardError
from boatyard.platforms.drivers.local.allocation import is_port_free
from boatyard.platforms.drivers.local.records import RECORD_FILE, ClusterRecord
from boatyard.platforms.port import RestMode
from boatyard.processes import marked_processes
from boatyard.proof.evidence import HeldItem

NOTE_NAME = "left-by-its-tenant"
_ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class KeeperState:
    """What a keeper holds. `clusters` by key, in a form that is equal for equal runs; `strays` belong to no cluster."""

    held: tuple[HeldItem, ...]
    clusters: Mapping[str, Any]
    orphans: tuple[str, ...]
    ports: frozenset[int]

    def find_contradictions(self) -> list[str]:
        """What is wrong whatever was ordered, in words. No work may be in progress."""
        problems = [f"{stray} belongs to no cluster" for stray in self.orphans]
        for key, cluster in self.clusters.items():
            for component, processes in cluster["processes"].items():
                if len(processes) != 1:
                    problems.append(f"{component} of {key} runs {len(processes)} times")
            if "api" not in cluster:
                continue
            listed, recorded = cluster["api"].get("nodes", {}), cluster["nodes"]
            if set(listed) != set(recorded):
                difference = f"{_join_names(listed)} as nodes and was given {_join_names(recorded)}"
                problems.append(f"the API of {key} lists {difference}")
            problems += [
                f"{object_name} is left in {key}"
                for object_name in cluster["api"].get("left by checks", ())
            ]
        return problems


def keeper_mark(directory: Path) -> str:
    """The prefix of the marks of all processes of a keeper."""
    return hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:10]


def find_duplicates(directory: Path) -> list[str]:
    """The components that run more than once now, in words. None ever may."""
    counts: Counter[str] = Counter()
    for mark, processes in marked_processes.find_processes(f"{keeper_mark(directory)}/").items():
        counts[mark.split("/")[2]] += len(processes)
        for process in processes:
            process.close()
    return [f"{name} runs {count} times" for name, count in counts.items() if count > 1]


async def read_keeper_state(directory: Path, ports: Collection[int]) -> KeeperState:
    """Reads the state of the keeper in `directory`. `ports` are those that clusters had before: they must be free."""
    snapshot = await asyncio.to_thread(_read_files, directory, ports)
    for slug, record in snapshot.records.items():
        if record.version and record.wanted.rest == RestMode.AWAKE and not record.leaving:
            place = directory / "clusters" / slug
            snapshot.clusters[record.key]["api"] = await _read_cluster_api(place)
    return KeeperState(
        held=tuple(_list_held_items(snapshot.records)),
        clusters=snapshot.clusters,
        orphans=tuple(sorted(snapshot.orphans)),
        ports=frozenset(
            port for record in snapshot.records.values() for port in record.ports.values()
        ),
    )


@dataclass
class _KeeperFiles:
    records: dict[str, ClusterRecord]
    clusters: dict[str, dict[str, Any]]
    orphans: list[str]


def _read_files(directory: Path, ports: Collection[int]) -> _KeeperFiles:
    records: dict[str, ClusterRecord] = {}
    strays: list[str] = []
    for place in sorted((directory / "clusters").iterdir()):
        try:
            record = msgspec.json.decode((place / RECORD_FILE).read_bytes(), type=ClusterRecord)
        except (OSError, msgspec.DecodeError):
            strays.append("a directory without a record")
        else:
            records[place.name] = record
    for kind in ("backups",):
        folder = directory / kind
        strays += [f"{kind}/{entry.name}" for entry in folder.iterdir()] if folder.is_dir() else []
    clusters = {record.key: _describe_record(record) for record in records.values()}
    for mark, processes in sorted(
        marked_processes.find_processes(f"{keeper_mark(directory)}/").items()
    ):
        _, slug, component, *_ = mark.split("/")
        for process in processes:
            description = _describe_process(process.pid)
            process.close()
            if slug in records:
                cluster_processes = clusters[records[slug].key]["processes"]
                cluster_processes.setdefault(component, []).append(description)
            else:
                strays.append(f"a process {component}")
    cluster_ports = {port for record in records.values() for port in record.ports.values()}
    strays += [
        "a port in use" for port in ports if port not in cluster_ports and not is_port_free(port)
    ]
    return _KeeperFiles(records, clusters, strays)


def _describe_record(record: ClusterRecord) -> dict[str, Any]:
    """The record without what differs from cluster to cluster: ports, users, keys and times."""
    return {
        "wanted": record.wanted.version,
        "runs": record.version,
        "rest": record.wanted.rest.value,
        "frozen": record.frozen,
        "leaving": record.leaving,
        "unfinished": [record.upgrading, record.rolling_back, record.failed_version],
        "nodes": {
            node.slot: {"number": node.number, "leaving": bool(node.leaving_since)}
            for node in record.nodes.values()
        },
        "listens": {name: not is_port_free(port) for name, port in record.ports.items()},
        "processes": {},
    }


def _describe_process(pid: int) -> str:
    """The program of a process, and whether it is stopped."""
    try:
        program = Path(os.readlink(f"/proc/{pid}/exe"))
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "ended"
    return f"{program.parent.name}/{program.name}{' stopped' if state == 'T' else ''}"


def _list_held_items(records: Mapping[str, ClusterRecord]) -> list[HeldItem]:
    """The clusters and nodes of the records as evidence; a node has the name of its host."""
    items = []
    for record in records.values():
        items.append(HeldItem(record.hub, "cluster", record.wanted.name, record.key))
        items += [
            HeldItem(record.hub, "node", node.host, node.key) for node in record.nodes.values()
        ]
    return items


async def _read_cluster_api(place: Path) -> dict[str, Any]:
    """What the API of the cluster lists: its nodes, what checks have left, and the tenant's note."""
    client = _open_client(place)
    try:
        nodes = (await client.list(NODES)).items
        jobs = (await client.list(JOBS, labels=CHECK)).items
        pods = (await client.list(PODS, labels=CHECK)).items
        notes = (
            await client.list(CONFIG_MAPS, "default", fields=f"metadata.name={NOTE_NAME}")
        ).items
    except BoatyardError as error:
        return {"answers": str(error)}
    finally:
        await client.close()
    return {
        "nodes": {node["metadata"]["name"]: _describe_node(node) for node in nodes},
        "left by checks": [item["metadata"]["name"] for item in (*jobs, *pods)],
        "notes": [note["data"] for note in notes],
    }


def _describe_node(node: Mapping[str, Any]) -> str:
    status = node.get("status") or {}
    ready = [
        condition["status"]
        for condition in status.get("conditions") or ()
        if condition["type"] == "Ready"
    ]
    version = (status.get("nodeInfo") or {}).get("kubeletVersion", "")
    cordoned = " cordoned" if (node.get("spec") or {}).get("unschedulable") else ""
    return f"ready {''.join(ready)}, {version}{cordoned}"


async def write_note(directory: Path, cluster_key: str) -> None:
    """Writes a ConfigMap into the cluster, as a tenant would. It must exist until the cluster is deleted."""
    cluster_directory = next(
        directory_entry
        for directory_entry in (directory / "clusters").iterdir()
        if msgspec.json.decode((directory_entry / RECORD_FILE).read_bytes(), type=ClusterRecord).key
        == cluster_key
    )
    client = _open_client(cluster_directory)
    try:
        body = {"metadata": {"name": NOTE_NAME}, "data": {"from": "the proof"}}
        await client.apply(CONFIG_MAPS, NOTE_NAME, body, "default")
    finally:
        await client.close()


def _join_names(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _open_client(place: Path) -> KubeClient:
    text = (place / "private" / "admin.kubeconfig").read_text()
    return KubeClient(read_kubeconfig(text), manager="boatyard-proof", timeout=_ANSWER_SECONDS)

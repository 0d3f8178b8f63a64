"""Computes the capacity of a Kubernetes hub from its objects. Pure but for `learn`; called by the hub reconciler.

| what | counted |
| --- | --- |
| hosts of a type, on Agent | approved Agents with its label that are connected or already a node of a cluster |
| hosts of a type, on KubeVirt | machines of the size `hosted.vm.<type>` that fit on the empty nodes |
| clusters | control planes that fit on the empty nodes, by what a highly available one asks for |

Nodes count when they are ready and accept any pod. Types of machines share the nodes: an operator who mixes types
must set the capacity by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NODES, Kind
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused
from boatyard.model.generated.osac import Hub
from boatyard.resources.clusters.placement import CLUSTERS
from boatyard.resources.hubs.check.model import Manifest
from boatyard.resources.hubs.check.requirements import (
    AGENT,
    AGENTS,
    AGENTS_IN,
    HOSTED_ON,
    KUBEVIRT,
    VM_SIZES,
    is_hosted,
)

_AGENTS = Kind(AGENTS.group, AGENTS.version, AGENTS.plural, "Agent", True)
_TAKEN = "agentMachineRef"  # label of an agent that is a node of a cluster
_AVAILABILITY, _HIGHLY_AVAILABLE = "hosted.availability", "HighlyAvailable"
_DEFAULT_SIZE = "default"

_UNITS = {"": 1.0, "m": 1e-3}
_UNITS |= {letter: 1000.0**power for power, letter in enumerate("kMGTP", start=1)}
_UNITS |= {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", start=1)}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]{0,2})")


@dataclass(frozen=True)
class Room:
    """The resources that one node has, or that one machine or control plane takes."""

    cores: float
    memory: float
    pods: float = 1.0

    def times(self, size: Room) -> int:
        """How many of that size fit."""
        return int(min(self.cores / size.cores, self.memory / size.memory, self.pods / size.pods))


CONTROL_PLANE = Room(cores=5, memory=18 * 1024**3, pods=78)  # from HyperShift's documentation


async def learn(client: KubeClient, hub: Hub) -> Mapping[str, int] | None:
    """The hub's capacity by resource; None when we may not list the objects or its drivers do not tell."""
    if not is_hosted(hub):
        return None
    settings = hub.spec.settings
    capacity: dict[str, int] = {}
    try:
        nodes = rooms((await client.list(NODES)).items)
        if settings.get(HOSTED_ON) == AGENT:
            listed = await client.list(_AGENTS, settings.get(AGENTS_IN, ""))
            capacity |= from_agents(listed.items)
    except (Refused, NotFound):
        return None
    if settings.get(HOSTED_ON) == KUBEVIRT:
        capacity |= from_nodes(nodes, vm_sizes(settings))
    if nodes and settings.get(_AVAILABILITY, _HIGHLY_AVAILABLE) == _HIGHLY_AVAILABLE:
        capacity[CLUSTERS] = _sum(nodes).times(CONTROL_PLANE)
    return capacity


def from_agents(agents: Iterable[Manifest]) -> dict[str, int]:
    """Agents per host type. A disconnected agent counts only while it is a node of a cluster."""
    counts: Counter[str] = Counter()
    for agent in agents:
        labels = (agent.get("metadata") or {}).get("labels") or {}
        kind = labels.get(hub_names.INSTANCE_TYPE) or labels.get(hub_names.RESOURCE_CLASS)
        approved = (agent.get("spec") or {}).get("approved")
        if kind and approved and (labels.get(_TAKEN) or _is_connected(agent)):
            counts[kind] += 1
    return dict(counts)


def from_nodes(nodes: Sequence[Room], sizes: Mapping[str, Room]) -> dict[str, int]:
    return {kind: sum(node.times(size) for node in nodes) for kind, size in sizes.items()}


def vm_sizes(settings: Mapping[str, str]) -> dict[str, Room]:
    """The size of one machine per host type: `hosted.vm.large` is "cores=8,memory=32Gi,disk=64Gi"."""
    sizes = {}
    for name, value in settings.items():
        kind = name.removeprefix(VM_SIZES)
        parts = dict(part.strip().split("=", 1) for part in value.split(",") if "=" in part)
        if not name.startswith(VM_SIZES) or kind == _DEFAULT_SIZE:
            continue
        cores, memory = quantity(parts.get("cores", "")), quantity(parts.get("memory", ""))
        if cores and memory:
            sizes[kind] = Room(cores, memory)
    return sizes


def rooms(nodes: Iterable[Manifest]) -> list[Room]:
    """The allocatable resources of each node that accepts any pod."""
    node_rooms = []
    for node in nodes:
        status = node.get("status") or {}
        spec = node.get("spec") or {}
        ready = any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in status.get("conditions") or ()
        )
        closed = spec.get("unschedulable") or any(
            taint.get("effect") in ("NoSchedule", "NoExecute") for taint in spec.get("taints") or ()
        )
        if ready and not closed:
            allocatable = status.get("allocatable") or {}
            node_rooms.append(
                Room(*(quantity(str(allocatable.get(resource, ""))) for resource in _RESOURCES))
            )
    return node_rooms


_RESOURCES = ("cpu", "memory", "pods")


def quantity(text: str) -> float:
    """A Kubernetes quantity as a number: 4, 3900m, 16Gi. 0 for any other text."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        return 0.0
    return float(match[1]) * _UNITS[match[2]]


def _sum(nodes: Sequence[Room]) -> Room:
    return Room(
        cores=sum(node.cores for node in nodes),
        memory=sum(node.memory for node in nodes),
        pods=sum(node.pods for node in nodes),
    )


def _is_connected(agent: Manifest) -> bool:
    conditions = (agent.get("status") or {}).get("conditions") or ()
    return not any(
        condition.get("type") == "Connected" and condition.get("status") == "False"
        for condition in conditions
    )

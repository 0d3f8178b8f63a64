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
from boatyard.kube.kinds import NODES, KubeKind
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused
from boatyard.model.generated.osac import Hub
from boatyard.resources.clusters.placement import CLUSTERS_RESOURCE
from boatyard.resources.hubs.check.model import Manifest
from boatyard.resources.hubs.check.requirements import (
    AGENT,
    AGENT_NAMESPACE_SETTING,
    AGENTS,
    HOSTED_PLATFORM_SETTING,
    KUBEVIRT,
    VM_SIZE_PREFIX,
    is_hosted,
)

_AGENTS = KubeKind(AGENTS.group, AGENTS.version, AGENTS.plural, "Agent", True)
_BOUND_AGENT_LABEL = "agentMachineRef"  # label of an agent that is a node of a cluster
_AVAILABILITY_SETTING, _HIGHLY_AVAILABLE = "hosted.availability", "HighlyAvailable"
_DEFAULT_SIZE = "default"

_UNITS = {"": 1.0, "m": 1e-3}
_UNITS |= {letter: 1000.0**power for power, letter in enumerate("kMGTP", start=1)}
_UNITS |= {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", start=1)}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]{0,2})")


@dataclass(frozen=True)
class NodeResources:
    """The resources that one node has, or that one machine or control plane takes."""

    cores: float
    memory: float
    pods: float = 1.0

    def count_fitting(self, size: NodeResources) -> int:
        """How many of that size fit."""
        return int(min(self.cores / size.cores, self.memory / size.memory, self.pods / size.pods))


CONTROL_PLANE_RESOURCES = NodeResources(
    cores=5, memory=18 * 1024**3, pods=78
)  # from HyperShift's documentation


async def discover_capacity(client: KubeClient, hub: Hub) -> Mapping[str, int] | None:
    """The hub's capacity by resource; None when we may not list the objects or its drivers do not tell."""
    if not is_hosted(hub):
        return None
    settings = hub.spec.settings
    capacity: dict[str, int] = {}
    try:
        nodes = list_node_resources((await client.list(NODES)).items)
        if settings.get(HOSTED_PLATFORM_SETTING) == AGENT:
            listed = await client.list(_AGENTS, settings.get(AGENT_NAMESPACE_SETTING, ""))
            capacity |= count_agents(listed.items)
    except (Refused, NotFound):
        return None
    if settings.get(HOSTED_PLATFORM_SETTING) == KUBEVIRT:
        capacity |= count_fitting_machines(nodes, parse_vm_sizes(settings))
    if nodes and settings.get(_AVAILABILITY_SETTING, _HIGHLY_AVAILABLE) == _HIGHLY_AVAILABLE:
        capacity[CLUSTERS_RESOURCE] = _sum_resources(nodes).count_fitting(CONTROL_PLANE_RESOURCES)
    return capacity


def count_agents(agents: Iterable[Manifest]) -> dict[str, int]:
    """Agents per host type. A disconnected agent counts only while it is a node of a cluster."""
    counts: Counter[str] = Counter()
    for agent in agents:
        labels = (agent.get("metadata") or {}).get("labels") or {}
        kind = labels.get(hub_names.INSTANCE_TYPE) or labels.get(hub_names.RESOURCE_CLASS)
        approved = (agent.get("spec") or {}).get("approved")
        if kind and approved and (labels.get(_BOUND_AGENT_LABEL) or _is_connected(agent)):
            counts[kind] += 1
    return dict(counts)


def count_fitting_machines(
    nodes: Sequence[NodeResources], sizes: Mapping[str, NodeResources]
) -> dict[str, int]:
    return {kind: sum(node.count_fitting(size) for node in nodes) for kind, size in sizes.items()}


def parse_vm_sizes(settings: Mapping[str, str]) -> dict[str, NodeResources]:
    """The size of one machine per host type: `hosted.vm.large` is "cores=8,memory=32Gi,disk=64Gi"."""
    sizes = {}
    for name, value in settings.items():
        kind = name.removeprefix(VM_SIZE_PREFIX)
        parts = dict(part.strip().split("=", 1) for part in value.split(",") if "=" in part)
        if not name.startswith(VM_SIZE_PREFIX) or kind == _DEFAULT_SIZE:
            continue
        cores, memory = (
            parse_quantity(parts.get("cores", "")),
            parse_quantity(parts.get("memory", "")),
        )
        if cores and memory:
            sizes[kind] = NodeResources(cores, memory)
    return sizes


def list_node_resources(nodes: Iterable[Manifest]) -> list[NodeResources]:
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
                NodeResources(
                    *(
                        parse_quantity(str(allocatable.get(resource, "")))
                        for resource in _RESOURCE_NAMES
                    )
                )
            )
    return node_rooms


_RESOURCE_NAMES = ("cpu", "memory", "pods")


def parse_quantity(text: str) -> float:
    """A Kubernetes quantity as a number: 4, 3900m, 16Gi. 0 for any other text."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        return 0.0
    return float(match[1]) * _UNITS[match[2]]


def _sum_resources(nodes: Sequence[NodeResources]) -> NodeResources:
    return NodeResources(
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

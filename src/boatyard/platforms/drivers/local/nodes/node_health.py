"""The health of a node: a pure function of its spec, its machine and the time. Called by the agent."""

from __future__ import annotations

import hashlib
import uuid
from enum import Enum

from boatyard.platforms.drivers.local.nodes.machines import MachineState
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState


class NodeHealth(Enum):
    UNKNOWN = "unknown"  # the machine's state cannot be read: nothing is started or ended
    DOWN = "down"
    DETACHED = "detached"
    BOOTING = "booting"
    UNREADY = "unready"  # the kubelet runs and reports a problem
    UP = "up"

    @property
    def is_kubelet_running(self) -> bool:
        """Whether the node's kubelet runs."""
        return self in (NodeHealth.UNREADY, NodeHealth.UP)


JOINING = "The node is joining."
_MESSAGES = {
    NodeHealth.DOWN: "The node's host does not answer.",
    NodeHealth.DETACHED: "The node's host is not on the cluster's network.",
    NodeHealth.UNREADY: "The node reports that it is not ready.",
}


def boot_start(spec: NodeSpec, machine: MachineState) -> float:
    """Returns the time at which the present boot began."""
    return max(spec.since, machine.started_at)


def boot_end(spec: NodeSpec, machine: MachineState) -> float:
    return boot_start(spec, machine) + machine.boot_seconds


def boot_id(spec: NodeSpec, machine: MachineState) -> str:
    """Returns an id that changes with each boot but not with a restart of the agent, which recognises its nodes."""
    return stable_uuid(f"boot {spec.host} {boot_start(spec, machine):.3f}")


def assess_health(
    spec: NodeSpec, machine: MachineState | None, *, booted_before: bool, now: float
) -> NodeHealth:
    """Returns the standing of a node. `booted_before`: its Node object shows the present boot.

    Then it counts as booted, even when boots have become slower since.
    """
    if machine is None:
        return NodeHealth.UNKNOWN
    if not machine.is_running:
        return NodeHealth.DOWN
    if not machine.attached:
        return NodeHealth.DETACHED
    if not booted_before and now < boot_end(spec, machine):
        return NodeHealth.BOOTING
    return NodeHealth.UNREADY if machine.unready else NodeHealth.UP


def to_node_state(standing: NodeHealth, *, joined: bool, reported_ready: bool) -> NodeState:
    """Returns the state for the keeper, at once, even when the cluster itself has not noticed yet."""
    if standing in _MESSAGES:
        return NodeState(joined, ready=False, message=_MESSAGES[standing])
    if standing is NodeHealth.BOOTING and joined:
        return NodeState(joined, ready=False, message="The node's host is starting.")
    if joined and reported_ready:
        return NodeState(joined, ready=True)
    return NodeState(joined, ready=False, message=JOINING)


def stable_uuid(text: str) -> str:
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))

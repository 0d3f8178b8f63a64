"""How a node stands: a pure function of its spec, its machine and the moment. Called by the agent."""

from __future__ import annotations

import hashlib
import uuid
from enum import Enum

from boatyard.platforms.drivers.local.nodes.machines import Machine
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState


class Standing(Enum):
    UNKNOWN = "unknown"  # nobody can say what the machine does: nothing is begun, nothing ended
    DOWN = "down"
    DETACHED = "detached"
    BOOTING = "booting"
    UNREADY = "unready"  # the kubelet lives and reports trouble
    UP = "up"

    @property
    def lives(self) -> bool:
        """Whether the node's kubelet speaks."""
        return self in (Standing.UNREADY, Standing.UP)


JOINING = "The node is joining."
_WORDS = {
    Standing.DOWN: "The node's host does not answer.",
    Standing.DETACHED: "The node's host is not on the cluster's network.",
    Standing.UNREADY: "The node reports that it is not ready.",
}


def began_at(spec: NodeSpec, machine: Machine) -> float:
    """When the present boot began."""
    return max(spec.since, machine.started_at)


def booted_at(spec: NodeSpec, machine: Machine) -> float:
    return began_at(spec, machine) + machine.boot_seconds


def boot_id(spec: NodeSpec, machine: Machine) -> str:
    """Another one after each boot, and the same whoever asks: an agent that starts anew knows its nodes again."""
    return stable_uuid(f"boot {spec.host} {began_at(spec, machine):.3f}")


def stand(spec: NodeSpec, machine: Machine | None, *, booted_before: bool, now: float) -> Standing:
    """How the node stands. `booted_before`: its Node object shows the present boot.

    Then it has booted, also when boots have become slower since.
    """
    if machine is None:
        return Standing.UNKNOWN
    if not machine.runs:
        return Standing.DOWN
    if not machine.attached:
        return Standing.DETACHED
    if not booted_before and now < booted_at(spec, machine):
        return Standing.BOOTING
    return Standing.UNREADY if machine.unready else Standing.UP


def describe(standing: Standing, *, joined: bool, reported_ready: bool) -> NodeState:
    """What the keeper is told, at once, whatever the cluster itself still believes."""
    if standing in _WORDS:
        return NodeState(joined, ready=False, message=_WORDS[standing])
    if standing is Standing.BOOTING and joined:
        return NodeState(joined, ready=False, message="The node's host is starting.")
    if joined and reported_ready:
        return NodeState(joined, ready=True)
    return NodeState(joined, ready=False, message=JOINING)


def stable_uuid(text: str) -> str:
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))

"""The health of a node: a pure function of its spec, its machine and the time. Called by the agent."""

from __future__ import annotations

import hashlib
import uuid
from enum import Enum

from boatyard.platforms.drivers.local.nodes.machines import Machine
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState


class Standing(Enum):
    UNKNOWN = "unknown"  # the machine's state cannot be read: nothing is started or ended
    DOWN = "down"
    DETACHED = "detached"
    BOOTING = "booting"
    UNREADY = "unready"  # the kubelet runs and reports a problem
    UP = "up"

    @property
    def lives(self) -> bool:
        """Whether the node's kubelet runs."""
        return self in (Standing.UNREADY, Standing.UP)


JOINING = "The node is joining."
_WORDS = {
    Standing.DOWN: "The node's host does not answer.",
    Standing.DETACHED: "The node's host is not on the cluster's network.",
    Standing.UNREADY: "The node reports that it is not ready.",
}


def began_at(spec: NodeSpec, machine: Machine) -> float:
    """Returns the time at which the present boot began."""
    return max(spec.since, machine.started_at)


def booted_at(spec: NodeSpec, machine: Machine) -> float:
    return began_at(spec, machine) + machine.boot_seconds


def boot_id(spec: NodeSpec, machine: Machine) -> str:
    """Returns an id that changes with each boot but not with a restart of the agent, which recognises its nodes."""
    return stable_uuid(f"boot {spec.host} {began_at(spec, machine):.3f}")


def stand(spec: NodeSpec, machine: Machine | None, *, booted_before: bool, now: float) -> Standing:
    """Returns the standing of a node. `booted_before`: its Node object shows the present boot.

    Then it counts as booted, even when boots have become slower since.
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
    """Returns the state for the keeper, at once, even when the cluster itself has not noticed yet."""
    if standing in _WORDS:
        return NodeState(joined, ready=False, message=_WORDS[standing])
    if standing is Standing.BOOTING and joined:
        return NodeState(joined, ready=False, message="The node's host is starting.")
    if joined and reported_ready:
        return NodeState(joined, ready=True)
    return NodeState(joined, ready=False, message=JOINING)


def stable_uuid(text: str) -> str:
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))

"""One simulated node: its spec, the state of its machine, and what the cluster shows of it. Used by the agent."""

from __future__ import annotations

import math
import zlib

from boatyard.platforms.drivers.local.nodes.machines import Machine
from boatyard.platforms.drivers.local.nodes.objects import Lease, NodeSeen
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState
from boatyard.platforms.drivers.local.nodes.standing import (
    JOINING,
    Standing,
    began_at,
    boot_id,
    describe,
    stand,
)

REPORT_EVERY = 300.0
_SLOT = 0.05  # seconds; heartbeats within one slot are sent together, for fewer wake-ups


class Kept:
    __slots__ = (
        "_place",
        "began_at",
        "boot_id",
        "joined",
        "lease",
        "lease_at",
        "leaving",
        "machine",
        "refused",
        "relabel",
        "report_at",
        "seen",
        "spec",
        "standing",
        "state",
    )

    def __init__(self, spec: NodeSpec) -> None:
        self.spec = spec
        self.machine: Machine | None = None
        self.standing = Standing.UNKNOWN
        self.state = NodeState(joined=False, ready=False, message=JOINING)
        self.seen: NodeSeen | None = None  # the Node object
        self.joined = False
        self.leaving = False  # drained for removal: it is not registered again
        self.relabel = False  # its spec has new labels
        self.refused = ""  # why the API server does not accept the node
        self.lease: Lease | None = None
        self.lease_at = 0.0
        self.report_at = 0.0
        self.began_at = 0.0
        self.boot_id = ""
        self._place = zlib.crc32(spec.name.encode()) / 2**32  # its position within every period

    def stand(self, now: float) -> bool:
        """Updates standing and boot of the node. True when one of them has changed."""
        before = self.standing, self.boot_id
        if self.machine is not None:
            self._see_boot(self.machine)
        is_same_boot = self.seen is not None and self.seen.boot_id == self.boot_id
        self.standing = stand(self.spec, self.machine, booted_before=is_same_boot, now=now)
        return before != (self.standing, self.boot_id)

    def _see_boot(self, machine: Machine) -> None:
        began = began_at(self.spec, machine)
        if began != self.began_at or not self.boot_id:
            self.began_at, self.boot_id = began, boot_id(self.spec, machine)

    def describe(self) -> NodeState:
        if self.refused and not self.joined:
            return NodeState(joined=False, ready=False, message=self.refused)
        if self.leaving and self.seen is None:
            return NodeState(joined=True, ready=False, message="The node has left the cluster.")
        ready = self.seen is not None and self.seen.ready == "True"
        return describe(self.standing, joined=self.joined, reported_ready=ready)

    def respec(self, spec: NodeSpec) -> None:
        if self.spec.host != spec.host:
            self.machine, self.boot_id = None, ""
        self.relabel = self.relabel or (self.spec.labels, self.spec.node_set) != (
            spec.labels,
            spec.node_set,
        )
        self.spec = spec

    def lose(self) -> None:
        """Records that the Node object is gone. A node drained for removal is not registered again."""
        if self.seen is not None:
            self.leaving = self.leaving or self.seen.leaving
        self.seen = None

    def forget(self) -> None:
        """Forgets everything that was read from the cluster."""
        self.seen, self.lease = None, None
        self.lease_at = self.report_at = 0.0

    def renewed(self, now: float, every: float) -> None:
        """Schedules the next heartbeat at the node's own position in the period, so that they spread evenly."""
        self.lease_at = math.ceil(_next(now, every, self._place) / _SLOT) * _SLOT

    def reported(self, now: float) -> None:
        self.report_at = _next(now, REPORT_EVERY, self._place)


def _next(now: float, period: float, place: float) -> float:
    start = now - now % period + place * period
    return start if start > now else start + period

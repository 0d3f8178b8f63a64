"""One simulated node: its spec, the state of its machine, and what the cluster shows of it. Used by the agent."""

from __future__ import annotations

import math
import zlib

from boatyard.platforms.drivers.local.nodes.machines import MachineState
from boatyard.platforms.drivers.local.nodes.node_health import (
    JOINING,
    NodeHealth,
    assess_health,
    boot_id,
    boot_start,
    to_node_state,
)
from boatyard.platforms.drivers.local.nodes.objects import NodeLease, NodeSummary
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState

REPORT_SECONDS = 300.0
_BATCH_SECONDS = 0.05  # seconds; heartbeats within one slot are sent together, for fewer wake-ups


class SimulatedNode:
    __slots__ = (
        "_period_offset",
        "boot_id",
        "boot_started_at",
        "health",
        "joined",
        "lease",
        "lease_at",
        "leaving",
        "machine",
        "needs_relabel",
        "refusal",
        "report_at",
        "spec",
        "state",
        "summary",
    )

    def __init__(self, spec: NodeSpec) -> None:
        self.spec = spec
        self.machine: MachineState | None = None
        self.health = NodeHealth.UNKNOWN
        self.state = NodeState(joined=False, ready=False, message=JOINING)
        self.summary: NodeSummary | None = None  # the Node object
        self.joined = False
        self.leaving = False  # drained for removal: it is not registered again
        self.needs_relabel = False  # its spec has new labels
        self.refusal = ""  # why the API server does not accept the node
        self.lease: NodeLease | None = None
        self.lease_at = 0.0
        self.report_at = 0.0
        self.boot_started_at = 0.0
        self.boot_id = ""
        self._period_offset = (
            zlib.crc32(spec.name.encode()) / 2**32
        )  # its position within every period

    def update_health(self, now: float) -> bool:
        """Updates standing and boot of the node. True when one of them has changed."""
        before = self.health, self.boot_id
        if self.machine is not None:
            self._update_boot(self.machine)
        is_same_boot = self.summary is not None and self.summary.boot_id == self.boot_id
        self.health = assess_health(self.spec, self.machine, booted_before=is_same_boot, now=now)
        return before != (self.health, self.boot_id)

    def _update_boot(self, machine: MachineState) -> None:
        began = boot_start(self.spec, machine)
        if began != self.boot_started_at or not self.boot_id:
            self.boot_started_at, self.boot_id = began, boot_id(self.spec, machine)

    def make_state(self) -> NodeState:
        if self.refusal and not self.joined:
            return NodeState(joined=False, ready=False, message=self.refusal)
        if self.leaving and self.summary is None:
            return NodeState(joined=True, ready=False, message="The node has left the cluster.")
        ready = self.summary is not None and self.summary.ready_status == "True"
        return to_node_state(self.health, joined=self.joined, reported_ready=ready)

    def set_spec(self, spec: NodeSpec) -> None:
        if self.spec.host != spec.host:
            self.machine, self.boot_id = None, ""
        self.needs_relabel = self.needs_relabel or (self.spec.labels, self.spec.node_set) != (
            spec.labels,
            spec.node_set,
        )
        self.spec = spec

    def mark_deleted(self) -> None:
        """Records that the Node object is gone. A node drained for removal is not registered again."""
        if self.summary is not None:
            self.leaving = self.leaving or self.summary.leaving
        self.summary = None

    def reset_observations(self) -> None:
        """Forgets everything that was read from the cluster."""
        self.summary, self.lease = None, None
        self.lease_at = self.report_at = 0.0

    def schedule_heartbeat(self, now: float, every: float) -> None:
        """Schedules the next heartbeat at the node's own position in the period, so that they spread evenly."""
        self.lease_at = (
            math.ceil(_next(now, every, self._period_offset) / _BATCH_SECONDS) * _BATCH_SECONDS
        )

    def schedule_report(self, now: float) -> None:
        self.report_at = _next(now, REPORT_SECONDS, self._period_offset)


def _next(now: float, period: float, place: float) -> float:
    start = now - now % period + place * period
    return start if start > now else start + period

"""The desired and the observed state of a simulated node. Exchanged between the keeper and the agent."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

Now = Callable[[], datetime]


def wall_clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - machines, leases and pods have wall-clock times


@dataclass(frozen=True)
class NodeSpec:
    """One desired node."""

    name: str
    node_set: str
    host: str  # the machine it follows
    address: str
    version: str  # of its kubelet: the control plane's
    pod_cidr: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    since: float = 0.0  # when its host was assigned to this node; its boot starts then

    @property
    def ip(self) -> str:
        """Its address; a link-local one when it has none, because its pods need one."""
        number = zlib.crc32(self.host.encode())
        return self.address or f"169.254.{number // 250 % 250 + 1}.{number % 250 + 1}"


@dataclass(frozen=True)
class NodeState:
    """The state of a node as the agent reports it. `joined` is true once there was a Node object."""

    joined: bool
    ready: bool
    message: str = ""

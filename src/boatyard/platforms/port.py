"""A kind of Kubernetes that can be installed. Called by the install step; speaks of nodes, never of infra.

The rules of `infra/port.py` hold here too: no verb takes longer than a few seconds, slow work answers Waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from boatyard.model.outcome import Outcome, Owned


@dataclass(frozen=True)
class ClusterWanted:
    """What the control plane should be."""

    name: str
    version: str
    release_image: str
    api_name: str
    api_address: str
    ingress_name: str
    ingress_address: str
    pod_cidr: str
    service_cidr: str
    ssh_public_key: str
    pull_secret: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeWanted:
    slot: str  # "compute-0"
    node_set: str
    host: str
    address: str


@dataclass(frozen=True)
class NodeSeen:
    slot: str
    node_set: str
    ready: bool
    message: str = ""


@dataclass(frozen=True)
class ClusterSeen:
    """What the platform says of one cluster now."""

    exists: bool
    available: bool = False
    degraded: bool = False
    version: str = ""
    message: str = ""
    nodes: tuple[NodeSeen, ...] = ()


@dataclass(frozen=True)
class Access:
    """How to reach a finished cluster as its administrator."""

    api_url: str
    console_url: str
    kubeconfig: str
    username: str
    password: str


class Platform(Protocol):
    async def check_ready(self) -> None:
        """Says before any work whether the platform can work: Unavailable or Refused when not. Changes nothing."""

    async def ensure_cluster(self, key: str, wanted: ClusterWanted) -> Outcome:
        """Makes the control plane, or corrects it (a new version is a correction). Done when its
        API is available, Waiting until then.

        May be called any number of times. Wanted something this platform never offers: Refused.
        """

    async def release_cluster(self, key: str) -> Outcome:
        """Removes the control plane and all it holds. Nothing there: Done. Waiting until it is observed gone."""

    async def ensure_node(self, key: str, cluster_key: str, node: NodeWanted) -> Outcome:
        """Makes the host join as a node; Done when the node is Ready, Waiting until then.

        The same node again: Done. The host, or the slot of that cluster, in use under another key:
        Refused. No such cluster: Unavailable.
        """

    async def release_node(self, key: str, cluster_key: str, slot: str) -> Outcome:
        """Cordons, drains and removes the node.

        No such node, or no such cluster: Done. Waiting while it drains. The slot in use under another
        key: Refused.
        """

    async def choose_leaving(
        self, cluster_key: str, node_set: str, slots: Sequence[str], count: int
    ) -> Sequence[str]:
        """Which `count` of `slots` should leave when the node set shrinks. Only a question: changes nothing.

        Prefers nodes that never joined, then not ready, then the youngest. Answers also when the
        cluster does not exist.
        """

    async def observe(self, cluster_key: str) -> ClusterSeen:
        """What is true of the cluster now. Unknown cluster: `exists` is False. Cheap."""

    async def access(self, cluster_key: str) -> Access:
        """Administrator's access. NotFound while there is none."""

    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        """Everything of ours the platform holds whose key starts with `prefix`."""

    async def close(self) -> None:
        """Lets go of connections. May be called twice."""

"""A kind of Kubernetes that can be installed. Called by the install step; speaks of nodes, never of infra.

The rules of `infra/port.py` hold here too: no verb takes longer than a few seconds, slow work answers Waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from boatyard.model.outcome import Outcome, Owned

API_ANSWERS = "ApiAnswers"  # reason of a Waiting while which `access` can be had already
HAS_NODES = "HasNodes"  # reason of a Waiting until the nodes of a cluster have been released


class Rest(StrEnum):
    """How deep a cluster sleeps. Whatever it is, state and address are kept."""

    AWAKE = ""
    FROZEN = "frozen"  # processes stand still; awake again within moments
    STOPPED = "stopped"  # nothing runs


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
    machine_cidr: str  # the subnet of the cluster's hosts
    gateway: str  # and its gateway
    ssh_public_key: str
    pull_secret: str
    parameters: Mapping[str, object] = field(default_factory=dict)  # what the tenant asked for
    settings: Mapping[str, str] = field(
        default_factory=dict
    )  # what the template tells the platform
    host_types: tuple[
        str, ...
    ] = ()  # of its nodes, so that one that cannot be had is refused first
    rest: Rest = Rest.AWAKE
    restore: RestoreWanted | None = None


@dataclass(frozen=True)
class RestoreWanted:
    """Once per `request` the cluster's objects become those of the backup."""

    request: str
    backup_key: str


@dataclass(frozen=True)
class NodeWanted:
    slot: str  # "compute-0"
    node_set: str
    host: str  # empty, with its address, where the platform makes machines itself
    address: str
    host_type: str = ""


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
    rest: Rest = Rest.AWAKE
    nodes: tuple[NodeSeen, ...] = ()


@dataclass(frozen=True)
class Access:
    """How to reach a finished cluster as its administrator.

    A platform without a console or without passwords leaves those empty.
    """

    api_url: str
    console_url: str
    kubeconfig: str
    username: str
    password: str
    simulated: bool = False  # nothing answers at the address in the kubeconfig
    ask_again: str = ""  # when, RFC 3339; worked out from the kubeconfig by whoever asked


class Platform(Protocol):
    async def check_ready(self) -> None:
        """Says before any work whether the platform can work: Unavailable or Refused when not. Changes nothing."""

    def needs_hosts(self, settings: Mapping[str, str]) -> bool:
        """Whether nodes stand on hosts of the inventory; else the platform makes their machines itself.

        `settings` are what the template tells the platform. Always the same for one cluster.
        """

    async def ensure_cluster(self, key: str, desired: ClusterWanted) -> Outcome:
        """Makes the control plane, or corrects it (a new version, a rest and a restore are corrections).
        Done when its API is available, or it rests as wanted; Waiting until then, with the reason
        API_ANSWERS once `access` can be had.

        May be called any number of times. Wanted something this platform never offers, or a version
        that cannot be reached from the present one in one go: Refused. A new version that did not
        come up was rolled back: Refused with the reason `UpgradeFailed`; asked again, it is tried again.
        """

    async def release_cluster(self, key: str) -> Outcome:
        """Removes the control plane and all it holds. Nothing there: Done. Waiting until it is observed gone.

        Nodes are released first. A cluster that still has some loses them with its control plane, or
        is left as it is: Waiting with the reason HAS_NODES. No node ever outlives its cluster.
        """

    async def ensure_node(self, key: str, cluster_key: str, node: NodeWanted) -> Outcome:
        """Makes the host join as a node; Done when the node is Ready, Waiting until then.

        The same node again: Done. The host, or the slot of that cluster, in use under another key:
        Refused. No such cluster: Unavailable.
        """

    async def release_node(
        self, key: str, cluster_key: str, slot: str, *, drain: bool = True
    ) -> Outcome:
        """Cordons, drains and removes the node. Without `drain` it goes at once: its whole cluster does.

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
        """Administrator's access, from the moment the API answers. NotFound while there is none. Cheap."""

    async def ensure_backup(self, key: str, cluster_key: str, folder: str = "") -> Outcome:
        """Keeps a verified copy of all the cluster's objects as they are at the first call.

        The same key again: Done with the same facts, `place`, `bytes`, `sha256`, `version`. Into `folder`
        on the platform's machine when given. It outlives the cluster. No such cluster: Unavailable.
        A platform that makes none: Refused with the reason `NoBackups`.
        """

    async def release_backup(self, key: str) -> Outcome:
        """Removes the copy. Nothing there: Done."""

    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        """Every cluster and node of ours whose key starts with `prefix`. Backups are nobody's leftovers."""

    async def close(self) -> None:
        """Lets go of connections. May be called twice."""

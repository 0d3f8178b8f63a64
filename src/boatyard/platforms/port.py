"""The port of one kind of Kubernetes. Called by the install step; knows nodes, but nothing of infra.

The rules of `infra/port.py` hold here too: no verb takes longer than a few seconds, slow work returns Waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from boatyard.model.outcome import Outcome, OwnedObject

API_ANSWERS = "ApiAnswers"  # reason of a Waiting: `access` is already available
HAS_NODES = "HasNodes"  # reason of a Waiting: the nodes of the cluster must be released first


class RestMode(StrEnum):
    """How deeply a cluster rests. Its state and its address are preserved in every case."""

    AWAKE = ""
    FROZEN = "frozen"  # processes are stopped in memory; awake again within moments
    STOPPED = "stopped"  # nothing runs


@dataclass(frozen=True)
class DesiredCluster:
    """The desired state of a control plane."""

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
    rest: RestMode = RestMode.AWAKE
    restore: DesiredRestore | None = None


@dataclass(frozen=True)
class DesiredRestore:
    """A restore. Once per `request`, the cluster's objects are replaced by those of the backup."""

    request: str
    backup_key: str


@dataclass(frozen=True)
class DesiredNode:
    slot: str  # "compute-0"
    node_set: str
    host: str  # empty, with its address, where the platform makes machines itself
    address: str
    host_type: str = ""


@dataclass(frozen=True)
class ObservedNode:
    slot: str
    node_set: str
    ready: bool
    message: str = ""


@dataclass(frozen=True)
class ObservedCluster:
    """The observed state of a cluster."""

    exists: bool
    available: bool = False
    degraded: bool = False
    version: str = ""
    message: str = ""
    rest: RestMode = RestMode.AWAKE
    nodes: tuple[ObservedNode, ...] = ()


@dataclass(frozen=True)
class ClusterAccess:
    """Administrator's access to a cluster.

    A platform without a console or without passwords leaves those fields empty.
    """

    api_url: str
    console_url: str
    kubeconfig: str
    username: str
    password: str
    simulated: bool = False  # no server answers at the address in the kubeconfig
    ask_again: str = (
        ""  # when to fetch it again, RFC 3339; computed from the kubeconfig by the caller
    )


class Platform(Protocol):
    async def check_ready(self) -> None:
        """Checks whether the platform can work: Unavailable or Refused when it cannot. Changes nothing."""

    def needs_hosts(self, settings: Mapping[str, str]) -> bool:
        """Whether nodes run on hosts of the inventory. Otherwise the platform creates their machines itself.

        `settings` come from the template. The answer is always the same for one cluster.
        """

    async def ensure_cluster(self, key: str, desired: DesiredCluster) -> Outcome:
        """Creates the control plane, or corrects it (a new version, a rest and a restore are corrections).
        Done when its API is available, or it rests as desired; Waiting until then, with the reason
        API_ANSWERS once `access` is available.

        May be called any number of times. Refused when this platform never offers what is desired, or
        the version cannot be reached from the present one in one step. When a new version did not come
        up and was rolled back: Refused with the reason `UpgradeFailed`; the next call tries it again.
        """

    async def release_cluster(self, key: str) -> Outcome:
        """Removes the control plane and everything in it. Done when there is none; Waiting until it is gone.

        Callers release the nodes first. A cluster that still has nodes loses them with its control plane,
        or stays as it is: Waiting with the reason HAS_NODES. No node ever outlives its cluster.
        """

    async def ensure_node(self, key: str, cluster_key: str, node: DesiredNode) -> Outcome:
        """Makes the host join as a node. Done when the node is Ready; Waiting until then.

        May be called again for the same node. Refused when the host, or the slot of that cluster, is in
        use under another key. Unavailable when there is no such cluster.
        """

    async def release_node(
        self, key: str, cluster_key: str, slot: str, *, drain: bool = True
    ) -> Outcome:
        """Cordons, drains and removes the node. Without `drain` it is removed at once, with its cluster.

        Done when there is no such node or cluster. Waiting while it drains. Refused when the slot is in
        use under another key.
        """

    async def choose_leaving(
        self, cluster_key: str, node_set: str, slots: Sequence[str], count: int
    ) -> Sequence[str]:
        """Returns which `count` of `slots` should leave when the node set shrinks. Changes nothing.

        Prefers nodes that never joined, then those not ready, then the youngest. Works also when the
        cluster does not exist.
        """

    async def observe(self, cluster_key: str) -> ObservedCluster:
        """Returns the present state of the cluster; `exists` is False for an unknown one. Cheap."""

    async def access(self, cluster_key: str) -> ClusterAccess:
        """Returns administrator's access, from the moment the API answers. NotFound before. Cheap."""

    async def ensure_backup(self, key: str, cluster_key: str, folder: str = "") -> Outcome:
        """Stores a verified copy of all the cluster's objects as they are at the first call.

        Later calls with the key return Done with the same facts: `place`, `bytes`, `sha256`, `version`.
        The copy is in `folder` on the platform's machine when given, and outlives the cluster. Unavailable
        when there is no such cluster. A platform without backups: Refused with the reason `NoBackups`.
        """

    async def release_backup(self, key: str) -> Outcome:
        """Removes the copy. Done when there is none."""

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        """Lists our clusters and nodes whose key starts with `prefix`. Backups are not listed."""

    async def close(self) -> None:
        """Closes connections. May be called twice."""

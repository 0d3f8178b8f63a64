"""The input of a decision: the snapshot of one cluster, and the fake's settings. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from boatyard.fakes.hypershift.faults import ControlFile, PlantedFaults
from boatyard.fakes.hypershift.names import (
    MACHINE_NUMBER,
    NODE_POOL,
    Object,
    control_plane_namespace,
)
from boatyard.fakes.hypershift.objects import (
    annotations_of,
    get_nested,
    name_of,
    namespace_of,
    spec_of,
)
from boatyard.fakes.hypershift.releases import DEFAULT_SUPPORTED, ReleaseImage, read_release
from boatyard.fakes.hypershift.stage_delays import StageDelays


@dataclass(frozen=True)
class HostedApiAddress:
    """The address at which the hosted API servers are served, and the authority that their kubeconfigs trust."""

    address: str  # host:port
    authority: str  # PEM


@dataclass(frozen=True)
class FakeSettings:
    """The fake's settings: delays, faults, and the source of random words."""

    delays: StageDelays = field(default_factory=StageDelays)
    control: ControlFile = field(default_factory=ControlFile)
    make_secret_text: Callable[[], str] = lambda: "word"
    """Makes a password or token."""
    hosted_api: HostedApiAddress | None = None

    def find_faults(self, kind: str, thing: Object) -> PlantedFaults:
        return self.control.faults_of(kind, thing)

    def find_release(self, thing: Object) -> ReleaseImage | None:
        """The release in the spec of a HostedCluster or NodePool; None when its image names no version."""
        return read_release(
            get_nested(thing, "spec", "release", "image") or "", self.control.releases
        )


@dataclass(frozen=True)
class HostedClusterSnapshot:
    """One HostedCluster with all that belongs to it. Without a cluster: pools whose cluster does not exist."""

    cluster: Object | None
    pools: tuple[Object, ...] = ()
    machines: tuple[Object, ...] = ()
    """In its control plane's namespace."""
    agents: tuple[Object, ...] = ()
    """In the namespace its platform names."""
    namespace: Object | None = None
    """Its control plane's."""
    secrets: Mapping[str, Object] = field(default_factory=dict)
    """Created by the fake for the cluster, by name."""
    input_keys: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Keys of the Secrets in its spec, None for a missing Secret; only of Secrets that were read."""
    supported: tuple[str, ...] = DEFAULT_SUPPORTED

    @cached_property
    def home_namespace(self) -> str:
        """The name of the control plane's namespace."""
        assert self.cluster is not None
        return control_plane_namespace(namespace_of(self.cluster), name_of(self.cluster))

    @property
    def platform(self) -> str:
        return str(get_nested(spec_of(self.cluster or {}), "platform", "type") or "")

    def machines_of(self, pool: Object) -> tuple[Object, ...]:
        """Oldest first."""
        key = pool_key(pool)
        machines = [
            machine for machine in self.machines if annotations_of(machine).get(NODE_POOL) == key
        ]
        return tuple(sorted(machines, key=machine_number))


def machine_number(machine: Object) -> int:
    """The machine's number in its pool. No number is used twice."""
    number_text = annotations_of(machine).get(MACHINE_NUMBER, "")
    return int(number_text) if number_text.isdecimal() else 0


def pool_key(pool: Object) -> str:
    return f"{namespace_of(pool)}/{name_of(pool)}"


def agent_namespace(cluster: Object) -> str:
    """Where its agents are; empty on platforms without agents."""
    if get_nested(cluster, "spec", "platform", "type") != "Agent":
        return ""
    return str(get_nested(cluster, "spec", "platform", "agent", "agentNamespace") or "")


def input_secret_names(cluster: Object) -> tuple[str, ...]:
    """The Secrets that a HostedCluster's spec names."""
    names = (get_nested(cluster, "spec", field, "name") for field in ("pullSecret", "sshKey"))
    return tuple(str(name) for name in names if name)

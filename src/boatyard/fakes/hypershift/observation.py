"""The input of a decision: the snapshot of one cluster, and the fake's settings. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from boatyard.fakes.hypershift.faults import ControlFile, Planted
from boatyard.fakes.hypershift.names import (
    NODE_POOL,
    NUMBER,
    Object,
    control_plane_namespace,
)
from boatyard.fakes.hypershift.objects import (
    annotations_of,
    inside,
    name_of,
    namespace_of,
    spec_of,
)
from boatyard.fakes.hypershift.pace import Pace
from boatyard.fakes.hypershift.releases import DEFAULT_SUPPORTED, Release, read_release


@dataclass(frozen=True)
class Answering:
    """The address at which the hosted API servers are served, and the authority that their kubeconfigs trust."""

    address: str  # host:port
    authority: str  # PEM


@dataclass(frozen=True)
class Manner:
    """The fake's settings: delays, faults, and the source of random words."""

    pace: Pace = field(default_factory=Pace)
    control: ControlFile = field(default_factory=ControlFile)
    make_word: Callable[[], str] = lambda: "word"
    """Makes a password or token."""
    answering: Answering | None = None

    def faults(self, kind: str, thing: Object) -> Planted:
        return self.control.on(kind, thing)

    def release(self, thing: Object) -> Release | None:
        """The release in the spec of a HostedCluster or NodePool; None when its image names no version."""
        return read_release(inside(thing, "spec", "release", "image") or "", self.control.releases)


@dataclass(frozen=True)
class Seen:
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
    given: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Keys of the Secrets in its spec, None for a missing Secret; only of Secrets that were read."""
    supported: tuple[str, ...] = DEFAULT_SUPPORTED

    @cached_property
    def home(self) -> str:
        """The name of the control plane's namespace."""
        assert self.cluster is not None
        return control_plane_namespace(namespace_of(self.cluster), name_of(self.cluster))

    @property
    def platform(self) -> str:
        return str(inside(spec_of(self.cluster or {}), "platform", "type") or "")

    def machines_of(self, pool: Object) -> tuple[Object, ...]:
        """Oldest first."""
        key = pool_key(pool)
        machines = [
            machine for machine in self.machines if annotations_of(machine).get(NODE_POOL) == key
        ]
        return tuple(sorted(machines, key=number_of))


def number_of(machine: Object) -> int:
    """The machine's number in its pool. No number is used twice."""
    number_text = annotations_of(machine).get(NUMBER, "")
    return int(number_text) if number_text.isdecimal() else 0


def pool_key(pool: Object) -> str:
    return f"{namespace_of(pool)}/{name_of(pool)}"


def agent_namespace(cluster: Object) -> str:
    """Where its agents are; empty on platforms without agents."""
    if inside(cluster, "spec", "platform", "type") != "Agent":
        return ""
    return str(inside(cluster, "spec", "platform", "agent", "agentNamespace") or "")


def inputs_to_look_at(cluster: Object) -> tuple[str, ...]:
    """The Secrets that a HostedCluster's spec names."""
    names = (inside(cluster, "spec", field, "name") for field in ("pullSecret", "sshKey"))
    return tuple(str(name) for name in names if name)

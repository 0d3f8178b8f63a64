"""The description of a real node and of its programs."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from boatyard.platforms.drivers.local.cgroup_limits import CgroupLimits
from boatyard.platforms.drivers.local.real.names import node_name, segment_name

BRIDGE = "br0"
LINK = "eth0"
_DEFAULT_LIMITS = CgroupLimits(memory=4 * 1024**3, threads=4000)


@dataclass(frozen=True)
class RealNode:
    """One node. No other node uses `directory`; `number` is never reused within a cluster."""

    slug: str
    name: str
    number: int
    address: str  # CIDR, within the segment
    pod_cidr: str
    directory: Path
    kubelet: Path  # the program
    kubeconfig: str  # O=system:nodes, CN=system:node:NAME; the server as nodes see it
    ca: bytes
    serving_cert: bytes  # with the node's address in it
    serving_key: bytes
    labels: Mapping[str, str] = field(default_factory=dict)
    kube_proxy: Path | None = None  # with it and its kubeconfig, services have addresses that work
    proxy_kubeconfig: str = ""  # CN=system:kube-proxy
    cluster_dns: str = ""  # the DNS server of pods; empty: none
    cluster_domain: str = "cluster.local"
    limits: CgroupLimits = _DEFAULT_LIMITS  # of all its pods together

    @property
    def netns(self) -> str:
        return node_name(self.slug, self.name)

    @property
    def segment(self) -> str:
        return segment_name(self.slug)

    @property
    def ip(self) -> str:
        return str(ipaddress.ip_interface(self.address).ip)

    @property
    def link_name(self) -> str:
        """The name of the node's link in the segment."""
        return f"node{self.number}"

    @property
    def has_proxy(self) -> bool:
        return self.kube_proxy is not None and bool(self.proxy_kubeconfig)


@dataclass(frozen=True)
class NodeProgram:
    """One program of a node, to be started as root and kept running."""

    name: str  # "containerd", "kubelet", "kube-proxy"
    executable: Path
    argv: tuple[str, ...]
    netns: str
    environ: Mapping[str, str]
    is_ready: Callable[[], Awaitable[bool]]  # cheap; whether it answers now

"""The pinned releases of Kubernetes. A new version needs one more entry here and its recipe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from boatyard.model.errors import Refused

ETCD_PROGRAMS = ("etcd", "etcdutl")
CONTROL_PLANE_PROGRAMS = (
    *ETCD_PROGRAMS,
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
)
PROGRAMS = (*CONTROL_PLANE_PROGRAMS, "kubelet", "kube-proxy", "kubectl")

# Arguments with which a program prints its version.
VERSION_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "etcdutl": ("version",),
    "kubectl": ("version", "--client"),
}
DEFAULT_VERSION_ARGUMENTS = ("--version",)


@dataclass(frozen=True)
class KubernetesRelease:
    """One Kubernetes version, and the version of etcd that upstream tests it with."""

    kubernetes: str
    etcd: str
    published: str  # RFC 3339; stamped into our builds, so that two builds are equal

    @property
    def minor(self) -> str:
        return self.kubernetes.rpartition(".")[0]

    def version_of(self, program: str) -> str:
        """The version that the program must print."""
        return self.etcd if program in ETCD_PROGRAMS else self.kubernetes


RELEASES: Mapping[str, KubernetesRelease] = {
    release.kubernetes: release
    for release in (
        KubernetesRelease(kubernetes="1.35.4", etcd="3.6.5", published="2026-04-15T18:01:22Z"),
        KubernetesRelease(kubernetes="1.36.3", etcd="3.6.8", published="2026-07-22T18:07:38Z"),
    )
}
PINNED_VERSIONS: tuple[str, ...] = tuple(RELEASES)
DEFAULT_VERSION = "1.36.3"


def release_of(version: str) -> KubernetesRelease:
    """The release by its version (1.36.3, v1.36.3) or its minor (1.36). Refused when it is not pinned."""
    number = version.removeprefix("v")
    for release in RELEASES.values():
        if number in (release.kubernetes, release.minor):
            return release
    raise Refused(
        f"Kubernetes {version} is not one of the versions known here: {', '.join(PINNED_VERSIONS)}"
    )


def parse_version(text: str) -> str:
    """The first version in a program's output, with any suffix (1.36.3, 1.34.1+k3s1); empty when there is none."""
    match = re.search(r"(?<![\w.])v?(\d+\.\d+\.\d+[^\s\"',]*)", text)
    return match[1] if match else ""

"""Releases: the version of an image, the order of versions, and which are supported. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from boatyard.fakes.hypershift.names import SUPPORTED_VERSIONS, SYSTEM_NAMESPACE, Object
from boatyard.fakes.hypershift.objects import get_nested

# What a current HyperShift supports; 5.0 follows 4.22, it would have been 4.23.
DEFAULT_SUPPORTED = ("5.1", "5.0", *(f"4.{minor}" for minor in range(22, 13, -1)))
MAX_POOL_SKEW = 3  # minors that a node pool may be behind its control plane
_MINOR_OF_FIVE_ZERO = 23

_TAG_PATTERN = re.compile(
    r":v?(?P<version>(?P<major>\d+)\.(?P<minor>\d+)\.(?P<patch>\d+)(?P<pre>-(?:rc|ec|fc)\.\d+)?)"
    r"(?:-(?P<arch>[a-z0-9_]+))?$"
)
_MINOR_PATTERN = re.compile(r"\d+\.\d+")
_VERSION_PATTERN = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-(rc|ec|fc)\.(\d+))?")


@dataclass(frozen=True)
class ReleaseImage:
    """A release image with its version and architecture."""

    image: str
    version: str
    arch: str = "AMD64"

    @property
    def minor(self) -> tuple[int, int]:
        return _parse_minor(self.version)

    @property
    def sort_key(self) -> tuple[tuple[int, int], int, tuple[int, str, int]]:
        match = _VERSION_PATTERN.match(self.version)
        assert match is not None
        # A release candidate comes before the release.
        candidate = (0, match[4], int(match[5])) if match[4] else (1, "", 0)
        return self.minor, int(match[3]), candidate


def _parse_minor(version: str) -> tuple[int, int]:
    """Major and minor as one line of versions: 5.0 follows 4.22, and is 4.23."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return (4, _MINOR_OF_FIVE_ZERO + minor) if major == 5 else (major, minor)


def read_release(image: str, versions_by_image: Mapping[str, str]) -> ReleaseImage | None:
    """The release of an image: by the control file, else by its tag; None when neither names a version."""
    if image in versions_by_image and _VERSION_PATTERN.fullmatch(versions_by_image[image]):
        return ReleaseImage(image, versions_by_image[image])
    match = _TAG_PATTERN.search(image)
    if match is None:
        return None
    archs = {"multi": "Multi", "aarch64": "ARM64", "ppc64le": "PPC64LE", "s390x": "S390X"}
    return ReleaseImage(image, match["version"], archs.get(match["arch"] or "", "AMD64"))


def read_supported_versions(config: Object | None) -> tuple[str, ...]:
    """The minor versions in HyperShift's ConfigMap; the default ones when it is missing or cannot be read."""
    try:
        listed = json.loads(get_nested(config, "data", SUPPORTED_VERSIONS) or "")["versions"]
    except (ValueError, KeyError, TypeError):
        return DEFAULT_SUPPORTED
    if not isinstance(listed, list):
        return DEFAULT_SUPPORTED
    return tuple(version for version in map(str, listed) if _MINOR_PATTERN.fullmatch(version))


def make_supported_config_map() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": SUPPORTED_VERSIONS,
            "namespace": SYSTEM_NAMESPACE,
            "labels": {f"hypershift.openshift.io/{SUPPORTED_VERSIONS}": "true"},
        },
        "data": {
            SUPPORTED_VERSIONS: json.dumps({"versions": list(DEFAULT_SUPPORTED)}),
            "server-version": "player",
        },
    }


def find_release_problem(
    release: ReleaseImage, supported: tuple[str, ...], present: ReleaseImage | None
) -> str:
    """Why a control plane of this version is refused; empty when it is not."""
    if release.minor not in map(_parse_minor, supported):
        return f"version {release.version} is not supported; supported are {', '.join(supported)}"
    if present is not None and release.minor < present.minor:
        return f"a downgrade from {present.version} to {release.version} is not supported"
    return ""


def find_skew_problem(pool: ReleaseImage, control_plane: ReleaseImage) -> str:
    """Why a node pool of this version does not work with a control plane of that one; empty when it does."""
    if pool.sort_key > control_plane.sort_key:
        return (
            f"the node pool's version {pool.version} is newer than "
            f"the control plane's {control_plane.version}"
        )
    behind = control_plane.minor[1] - pool.minor[1]
    if pool.minor[0] != control_plane.minor[0] or behind > MAX_POOL_SKEW:
        return (
            f"the node pool's version {pool.version} is more than {MAX_POOL_SKEW} minor versions "
            f"older than the control plane's {control_plane.version}"
        )
    return ""

"""Versions: which ones HyperShift hosts on a hub, and which may follow which. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boatyard.model.errors import Refused, Unavailable, Violation

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?")
_MINOR = re.compile(r"(\d+)\.(\d+)")
_MINOR_OF_5_0 = 23  # 5.0 is what would have been 4.23
_MAX_POOL_SKEW = 2  # minors a node pool may be behind; HyperShift's documents say 2 in one place and 3 in another


@dataclass(frozen=True, order=True)
class OpenShiftVersion:
    """A version that compares in the order of releases; a pre-release comes before its release."""

    minor: int
    patch: int
    released: bool
    prerelease: tuple[tuple[int, str], ...]


def parse_version(version: str, field: str = "version") -> OpenShiftVersion:
    """Parses a version. Refused when it is none."""
    match = _VERSION.fullmatch(version)
    if match is None:
        remedy = "name a version such as 4.17.1"
        raise Refused("", Violation(field, f"{version!r} is no version", remedy))
    major, minor, patch, before = match.groups()
    parts = before.split(".") if before else []
    return OpenShiftVersion(
        minor=_number_minor(int(major), int(minor)),
        patch=int(patch),
        released=not parts,
        prerelease=tuple((int(part) if part.isdigit() else -1, part) for part in parts),
    )


def read_supported(data: str) -> tuple[str, ...]:
    """Parses HyperShift's list of supported minor versions; keeps its order, newest first."""
    try:
        listed = json.loads(data)["versions"]
        return tuple(str(minor) for minor in listed)
    except (ValueError, KeyError, TypeError):
        raise Unavailable(
            "HyperShift's list of supported versions cannot be read", reason="NoVersions"
        ) from None


def check_supported(version: str, supported: Sequence[str] | None) -> None:
    """Refused, with the list, when this HyperShift does not host the version. Without a list nothing is checked."""
    requested = parse_version(version)
    if supported is None or requested.minor in {_parse_minor(minor) for minor in supported}:
        return
    offered = ", ".join(supported) or "none"
    raise Refused(
        "",
        Violation("version", f"{version} is not hosted here", f"choose one of {offered}"),
        reason="UnsupportedVersion",
    )


def check_step(present: str, desired: str, pools: Iterable[str]) -> None:
    """Refused when a control plane cannot go from one version to the other in one step.

    `pools` are the versions of its node pools: they may not be newer than the control plane, nor too far behind.
    """
    before, after = parse_version(present), parse_version(desired)
    step = after.minor - before.minor
    if step < 0:
        _refuse(
            f"{present} cannot go back to {desired}",
            f"choose {present} or a later one",
        )
    if step > 1:
        _refuse(
            f"{present} cannot go to {desired} at once",
            f"go to {_format_minor(before.minor + 1)} first",
        )
    for pool in pools:
        nodes = parse_version(pool)
        if nodes > after:
            _refuse(
                f"the nodes are at {pool}, and a control plane is never older than its nodes",
                f"choose {pool} or a later one",
            )
        if after.minor - nodes.minor > _MAX_POOL_SKEW:
            _refuse(
                f"the nodes are still at {pool}, too far behind {desired}",
                "let the nodes follow to the present version first",
            )


def _refuse(message: str, remedy: str) -> None:
    raise Refused("", Violation("version", message, remedy), reason="VersionStep")


def _parse_minor(minor: str) -> int:
    match = _MINOR.match(minor)
    return _number_minor(int(match[1]), int(match[2])) if match else -1


def _number_minor(major: int, minor: int) -> int:
    """Numbers the minor versions of 4 and 5 consecutively."""
    if major == 5:
        return _MINOR_OF_5_0 + minor
    return minor if major == 4 else major * 1000 + minor


def _format_minor(line: int) -> str:
    return f"5.{line - _MINOR_OF_5_0}" if line >= _MINOR_OF_5_0 else f"4.{line}"

"""Which version a cluster can be upgraded to from which. Pure; called by the rules of clusters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from boatyard.model.errors import Violation
from boatyard.model.generated.osac import ClusterVersion
from boatyard.resources.cluster_versions.rules import SEMVER, is_usable

VERSION_PATH = "spec.version"


class VersionNumber(NamedTuple):
    """Major, minor and patch. Suffixes such as a release candidate do not matter here."""

    major: int
    minor: int
    patch: int


def parse_version(version: str) -> VersionNumber | None:
    """The version as numbers, or None when it is not three of them."""
    match = SEMVER.fullmatch(version)
    return VersionNumber(int(match[1]), int(match[2]), int(match[3])) if match else None


def find_change_violation(
    running: str, target: str, catalogue: Iterable[ClusterVersion]
) -> Violation | None:
    """Why a cluster cannot go from one version to the other, with the upgrade path if there is one.

    Patches may go both ways; minors go up, one at a time. Other majors and versions that are not three numbers
    are left to the platform.
    """
    old, new = parse_version(running), parse_version(target)
    if old is None or new is None or old.major != new.major or old.minor == new.minor:
        return None
    if new.minor < old.minor:
        return Violation(
            VERSION_PATH,
            f"{running} runs, and {target} is an older minor",
            "a cluster never goes back a minor; restore a backup of then into a new cluster",
        )
    if new.minor == old.minor + 1:
        return None
    return Violation(
        VERSION_PATH,
        f"{running} to {target} is more than one minor at once",
        _format_upgrade_path(old, target, catalogue),
    )


def is_newer_minor(version: str, other_version: str) -> bool:
    """Whether the first has a later minor than the second; another major counts as later."""
    first, second = parse_version(version), parse_version(other_version)
    if first is None or second is None:
        return False
    return first.major != second.major or first.minor > second.minor


def _format_upgrade_path(
    old: VersionNumber, target: str, catalogue: Iterable[ClusterVersion]
) -> str:
    """The upgrade path in words: the newest usable patch of each minor in between, or which minor has none."""
    best: dict[int, tuple[VersionNumber, str]] = {}
    for version in catalogue:
        number = parse_version(version.spec.version)
        if number is None or number.major != old.major or not is_usable(version):
            continue
        best[number.minor] = max(
            best.get(number.minor, (number, "")), (number, version.spec.version)
        )
    last = parse_version(target)
    assert last is not None, "the caller has looked"
    between = range(old.minor + 1, last.minor)
    missing = [f"{old.major}.{minor}" for minor in between if minor not in best]
    if missing:
        return f"it leads over {', '.join(missing)}, and the catalogue has no such version yet"
    steps = [best[minor][1] for minor in between]
    return f"go to {steps[0]} first" + "".join(f", then {step}" for step in (*steps[1:], target))

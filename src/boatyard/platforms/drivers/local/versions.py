"""Upgrade rules: which version may follow which. Pure."""

from __future__ import annotations

from boatyard.model.errors import Refused


def parse_minor(version: str) -> int:
    return int(version.split(".")[1])


def check_step(before: str, after: str) -> None:
    """Refused when `after` cannot be reached from `before` in one step."""
    step = parse_minor(after) - parse_minor(before)
    if step < 0:
        raise Refused(
            f"version {before} cannot go back to {after}: its objects may not be readable there",
            reason="VersionStep",
        )
    if step > 1:
        first = f"{before.split('.')[0]}.{parse_minor(before) + 1}"
        raise Refused(
            f"version {before} cannot go to {after} at once; go to {first} first",
            reason="VersionStep",
        )

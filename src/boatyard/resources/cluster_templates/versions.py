"""Which versions a template can be ordered with. Pure; called when a cluster is ordered or upgraded."""

from __future__ import annotations

import re

from boatyard.model.generated.osac import ClusterTemplate

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,2}")
_LEADING = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,2})")


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def in_range(version: str, template: ClusterTemplate) -> bool:
    """Whether the version is within the template's bounds. A version without a number is in no bounded range."""
    if not template.version_from and not template.version_below:
        return True
    number = number_of(version)
    if number is None:
        return False
    after = not template.version_from or number >= order_of(template.version_from)
    return after and (not template.version_below or number < order_of(template.version_below))


def number_of(version: str) -> tuple[int, ...] | None:
    """The leading number of a version such as `v4.17.9-rc.1`, to be compared; None when there is none."""
    match = _LEADING.match(version)
    return order_of(match[1]) if match else None


def order_of(text: str) -> tuple[int, ...]:
    """A sort key: 4.17 comes before 4.17.1, and 4.9 before 4.17."""
    parts = [int(part) for part in text.split(".")]
    return tuple([*parts, 0, 0][:3])


def words(template: ClusterTemplate) -> str:
    """The range, for a message."""
    lower = f"{template.version_from} or later" if template.version_from else ""
    upper = f"below {template.version_below}" if template.version_below else ""
    return ", ".join(part for part in (lower, upper) if part)

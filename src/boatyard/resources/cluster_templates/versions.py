"""Which versions a template can be ordered with. Pure; called when a cluster is ordered or upgraded."""

from __future__ import annotations

import re

from boatyard.model.generated.osac import ClusterTemplate

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,2}")
_LEADING_NUMBER = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,2})")


def is_version_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def is_in_range(version: str, template: ClusterTemplate) -> bool:
    """Whether the version is within the template's bounds. A version without a number is in no bounded range."""
    if not template.version_from and not template.version_below:
        return True
    number = parse_leading_number(version)
    if number is None:
        return False
    after = not template.version_from or number >= to_sort_key(template.version_from)
    return after and (not template.version_below or number < to_sort_key(template.version_below))


def parse_leading_number(version: str) -> tuple[int, ...] | None:
    """The leading number of a version such as `v4.17.9-rc.1`, to be compared; None when there is none."""
    match = _LEADING_NUMBER.match(version)
    return to_sort_key(match[1]) if match else None


def to_sort_key(text: str) -> tuple[int, ...]:
    """A sort key: 4.17 comes before 4.17.1, and 4.9 before 4.17."""
    parts = [int(part) for part in text.split(".")]
    return tuple([*parts, 0, 0][:3])


def format_range(template: ClusterTemplate) -> str:
    """The range, for a message."""
    lower = f"{template.version_from} or later" if template.version_from else ""
    upper = f"below {template.version_below}" if template.version_below else ""
    return ", ".join(part for part in (lower, upper) if part)

"""What things of a cluster with real nodes are called on this machine: the key by which all are found again.

`by-<slug>` is a cluster's segment, `by-<slug>-<node>` a node: network namespace and control group alike.
"""

from __future__ import annotations

import re

from boatyard.model.errors import Refused

PREFIX = "by-"
_SLUG = re.compile(r"[a-z0-9]{1,32}")
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


def segment_name(slug: str) -> str:
    # Without a dash in it: else one cluster's segment could be called like another's node.
    if not _SLUG.fullmatch(slug):
        raise Refused(f"{slug!r} cannot name a segment: only small letters and digits")
    return f"{PREFIX}{slug}"


def node_name(slug: str, name: str) -> str:
    if not _NODE.fullmatch(name):
        raise Refused(f"{name!r} cannot name a node: small letters, digits, dots and dashes")
    return f"{segment_name(slug)}-{name}"


def slug_in(name: str) -> str:
    """The cluster something belongs to; empty when it is not one of ours."""
    slug = name.removeprefix(PREFIX).partition("-")[0]
    return slug if name.startswith(PREFIX) and _SLUG.fullmatch(slug) else ""


def node_in(name: str) -> str:
    """The node something belongs to; empty when it is a segment or not one of ours."""
    return name.removeprefix(PREFIX).partition("-")[2] if slug_in(name) else ""

"""Names of the network namespaces and control groups of clusters with real nodes, by which they are found again.

`by-<slug>` is a cluster's segment, `by-<slug>-<node>` a node.
"""

from __future__ import annotations

import re

from boatyard.model.errors import Refused

PREFIX = "by-"
_SLUG = re.compile(r"[a-z0-9]{1,32}")
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


def segment_name(slug: str) -> str:
    # A slug has no dash: otherwise one cluster's segment could have the name of another's node.
    if not _SLUG.fullmatch(slug):
        raise Refused(f"{slug!r} cannot name a segment: only small letters and digits")
    return f"{PREFIX}{slug}"


def node_name(slug: str, name: str) -> str:
    if not _NODE.fullmatch(name):
        raise Refused(f"{name!r} cannot name a node: small letters, digits, dots and dashes")
    return f"{segment_name(slug)}-{name}"


def parse_slug(name: str) -> str:
    """Returns the slug in a name; empty when the name is not one of ours."""
    slug = name.removeprefix(PREFIX).partition("-")[0]
    return slug if name.startswith(PREFIX) and _SLUG.fullmatch(slug) else ""


def parse_node(name: str) -> str:
    """Returns the node in a name; empty when it names a segment or is not one of ours."""
    return name.removeprefix(PREFIX).partition("-")[2] if parse_slug(name) else ""

"""A cluster's segment: a network namespace with a bridge, in which its control plane runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from boatyard.model.errors import Unavailable
from boatyard.netns.links import allow_forwarding, delete_link, ensure_bridge, list_addresses
from boatyard.netns.namespaces import (
    delete_namespace,
    ensure_namespace,
    is_namespace,
    list_namespaces,
)
from boatyard.platforms.drivers.local.real import cgroups
from boatyard.platforms.drivers.local.real.names import PREFIX, parse_node, parse_slug, segment_name
from boatyard.platforms.drivers.local.real.node import BRIDGE
from boatyard.platforms.drivers.local.real.process_cleanup import end_processes


async def prepare_segment(slug: str, gateway_cidr: str) -> None:
    """Creates the segment and its bridge, which has the gateway's address. May be called at any time."""
    name = segment_name(slug)
    await ensure_namespace(name)
    await ensure_bridge(name, BRIDGE, gateway_cidr)
    await allow_forwarding(name)


async def clean_segment(slug: str) -> None:
    """Removes the segment and every process in it. Does nothing when there is none.

    The caller first removes the nodes (`list_nodes`) with `clean_node`.
    """
    name = segment_name(slug)
    await asyncio.to_thread(end_processes, name)
    if is_namespace(name):
        await delete_link(name, BRIDGE)
    await delete_namespace(name)


async def list_segments() -> Sequence[str]:
    """Returns the slugs of all clusters with a segment, a node or a control group."""
    return sorted({slug for name in await _names(PREFIX) if (slug := parse_slug(name))})


async def list_nodes(slug: str) -> Sequence[str]:
    """Returns the names of a cluster's nodes that have a namespace or a control group."""
    names = await _names(segment_name(slug))
    return sorted(
        {parse_node(name) for name in names if parse_slug(name) == slug and parse_node(name)}
    )


async def gateway_of(slug: str) -> str:
    """Returns the address of the bridge. Unavailable while there is no segment."""
    name = segment_name(slug)
    if is_namespace(name):
        for address in await list_addresses(name, BRIDGE):
            return address.partition("/")[0]
    raise Unavailable(f"the segment {name} is not there yet")


async def _names(prefix: str) -> set[str]:
    groups = await asyncio.to_thread(cgroups.list_groups, prefix)
    return {*list_namespaces(prefix), *groups}

"""Bridges, cables (veth pairs) between namespaces, addresses and routes. Every `ensure_…` may be repeated."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from boatyard.model.errors import Unavailable
from boatyard.netns.commands import run_ip_batch, run_ip_show
from boatyard.netns.namespaces import run_inside


async def ensure_bridge(netns: str, name: str, address: str) -> None:
    """Creates the bridge, gives it this address (CIDR) and no other, and sets it up."""
    lines = ["link set lo up"]
    if not await _has_link(netns, name):
        # With a fixed MAC: otherwise it takes the lowest of its ports, and neighbours lose it when a port comes.
        lines.append(f"link add {name} address {_mac(address)} type bridge")
    await run_ip_batch(netns, [*lines, f"link set {name} up"])
    await _set_address(netns, name, address)


async def ensure_veth_pair(netns: str, name: str, bridge: str, peer_netns: str, peer: str) -> None:
    """Creates a veth pair: one end is a port of the bridge, the other is in another namespace. Both are up.

    An end whose other end is missing, or belongs to another pair, is replaced.
    """
    near_end, far_end = (
        await _read_link_indexes(netns, name),
        await _read_link_indexes(peer_netns, peer),
    )
    if not (near_end and far_end and near_end[0] == far_end[1] and near_end[1] == far_end[0]):
        await delete_link(netns, name)
        await delete_link(peer_netns, peer)
        # The far end is created in its own namespace, never moved there.
        await run_ip_batch(
            netns, [f"link add {name} type veth peer name {peer} netns {peer_netns}"]
        )
    await run_ip_batch(netns, [f"link set {name} master {bridge} up"])
    await run_ip_batch(peer_netns, ["link set lo up", f"link set {peer} up"])


async def ensure_address(netns: str, link: str, address: str, gateway: str) -> None:
    """Gives the link this address (CIDR) and no other, and makes the gateway its default route."""
    await _set_address(netns, link, address)
    await run_ip_batch(netns, [f"route replace default via {gateway} dev {link}"])


async def _set_address(netns: str, link: str, address: str) -> None:
    current = await list_addresses(netns, link)
    # Old addresses go first: with the first address of a network the kernel removes the others of that network.
    lines = [f"address delete {old} dev {link}" for old in current if old != _canonical(address)]
    if lines or not current:
        await run_ip_batch(netns, [*lines, f"address replace {address} dev {link}"])


async def ensure_route(netns: str, network: str, via: str) -> None:
    await run_ip_batch(netns, [f"route replace {network} via {via}"])


async def delete_routes(netns: str, via: str) -> None:
    """Deletes every route through that neighbour."""
    for route in await run_ip_show(netns, "route", "show", "via", via):
        await run_ip_batch(netns, [f"route delete {route['dst']} via {via}"])


async def delete_link(netns: str, name: str) -> None:
    """Deletes the link; with one end of a cable its other end goes too. Does nothing when there is none."""
    if await _has_link(netns, name):
        try:
            await run_ip_batch(netns, [f"link delete {name}"])
        except Unavailable:
            # A cable disappears with the namespace of its other end, a moment after that namespace.
            if await _has_link(netns, name):
                raise


async def list_addresses(netns: str, link: str) -> list[str]:
    """Returns the IPv4 addresses of a link as CIDR; an empty list when there is no such link."""
    links = await run_ip_show(netns, "-4", "address", "show")
    return [
        f"{info['local']}/{info['prefixlen']}"
        for entry in links
        if entry["ifname"] == link
        for info in entry.get("addr_info", [])
    ]


async def allow_forwarding(netns: str) -> None:
    """Lets the namespace forward IPv4 packets from one link to another."""

    def write() -> None:
        # Each network namespace has its own value behind this path, whichever mount of /proc is used.
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    try:
        await run_inside(netns, write)
    except OSError as error:
        raise Unavailable(f"cannot allow forwarding in {netns}: {error.strerror}") from error


async def _has_link(netns: str, name: str) -> bool:
    return any(entry["ifname"] == name for entry in await run_ip_show(netns, "link", "show"))


async def _read_link_indexes(netns: str, name: str) -> tuple[int, int] | None:
    """Returns the link's own index and that of its other end; None when there is no such link."""
    for entry in await run_ip_show(netns, "link", "show"):
        if entry["ifname"] == name:
            return entry["ifindex"], entry.get("link_index", 0)
    return None


def _mac(address: str) -> str:
    """Derives a locally administered MAC address from an IP address."""
    packed = ipaddress.ip_interface(address).ip.packed[-4:]
    return bytes((0x02, 0x00, *packed)).hex(":")


def _canonical(address: str) -> str:
    return str(ipaddress.ip_interface(address))

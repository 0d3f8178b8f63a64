"""Bridges, cables between namespaces, addresses and routes. Each may be asked for again."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from boatyard.model.errors import Unavailable
from boatyard.netns.commands import change, show
from boatyard.netns.namespaces import inside


async def ensure_bridge(netns: str, name: str, address: str) -> None:
    """A bridge with that address (CIDR) and no other, up."""
    lines = ["link set lo up"]
    if not await _has_link(netns, name):
        # With an address of its own: else it takes its ports' lowest, and neighbours lose it when one comes.
        lines.append(f"link add {name} address {_mac(address)} type bridge")
    await change(netns, [*lines, f"link set {name} up"])
    await _set_address(netns, name, address)


async def ensure_cable(netns: str, name: str, bridge: str, peer_netns: str, peer: str) -> None:
    """A veth pair: one end a port of the bridge, the other in another namespace. Both up.

    An end without its other, or one that is someone else's, is replaced.
    """
    near_end, far_end = await _end(netns, name), await _end(peer_netns, peer)
    if not (near_end and far_end and near_end[0] == far_end[1] and near_end[1] == far_end[0]):
        await delete_link(netns, name)
        await delete_link(peer_netns, peer)
        # The far end appears where it belongs; at no moment is it anywhere else.
        await change(netns, [f"link add {name} type veth peer name {peer} netns {peer_netns}"])
    await change(netns, [f"link set {name} master {bridge} up"])
    await change(peer_netns, ["link set lo up", f"link set {peer} up"])


async def ensure_address(netns: str, link: str, address: str, gateway: str) -> None:
    """The link has this address (CIDR) and no other, and everything else is reached through the gateway."""
    await _set_address(netns, link, address)
    await change(netns, [f"route replace default via {gateway} dev {link}"])


async def _set_address(netns: str, link: str, address: str) -> None:
    current = await addresses(netns, link)
    # First the old ones: with the first of a network the kernel takes away its others.
    lines = [f"address delete {old} dev {link}" for old in current if old != _canonical(address)]
    if lines or not current:
        await change(netns, [*lines, f"address replace {address} dev {link}"])


async def ensure_route(netns: str, network: str, via: str) -> None:
    await change(netns, [f"route replace {network} via {via}"])


async def delete_routes(netns: str, via: str) -> None:
    """Every route through that neighbour."""
    for route in await show(netns, "route", "show", "via", via):
        await change(netns, [f"route delete {route['dst']} via {via}"])


async def delete_link(netns: str, name: str) -> None:
    """Takes the link away, and with one end of a cable the other. Content when there is none."""
    if await _has_link(netns, name):
        try:
            await change(netns, [f"link delete {name}"])
        except Unavailable:
            # A cable goes with the namespace of its other end, a moment after that one is gone.
            if await _has_link(netns, name):
                raise


async def addresses(netns: str, link: str) -> list[str]:
    """The IPv4 addresses of a link as CIDR; none when there is no such link."""
    links = await show(netns, "-4", "address", "show")
    return [
        f"{info['local']}/{info['prefixlen']}"
        for entry in links
        if entry["ifname"] == link
        for info in entry.get("addr_info", [])
    ]


async def allow_forwarding(netns: str) -> None:
    """Lets packets pass through from one link to another."""

    def write() -> None:
        # This file is another one in each namespace, whoever has mounted /proc.
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    try:
        await inside(netns, write)
    except OSError as error:
        raise Unavailable(f"cannot allow forwarding in {netns}: {error.strerror}") from error


async def _has_link(netns: str, name: str) -> bool:
    return any(entry["ifname"] == name for entry in await show(netns, "link", "show"))


async def _end(netns: str, name: str) -> tuple[int, int] | None:
    """Its own number and that of its other end; none when it is not there or has no other end."""
    for entry in await show(netns, "link", "show"):
        if entry["ifname"] == name:
            return entry["ifindex"], entry.get("link_index", 0)
    return None


def _mac(address: str) -> str:
    """A local hardware address that follows from the other."""
    packed = ipaddress.ip_interface(address).ip.packed[-4:]
    return bytes((0x02, 0x00, *packed)).hex(":")


def _canonical(address: str) -> str:
    return str(ipaddress.ip_interface(address))

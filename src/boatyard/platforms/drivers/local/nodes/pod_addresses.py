"""Allocates pod addresses, each unique within the cluster. Used by the agent."""

from __future__ import annotations

import ipaddress
import zlib

# Where a node has no range of its own: carrier-grade addresses, which nobody routes.
_SHARED_RANGE = ipaddress.ip_network("100.64.0.0/10")
_FIRST_INDEX = 2  # .0 is the range itself, .1 its gateway


class PodAddresses:
    def __init__(self) -> None:
        self._holders: dict[str, str] = {}  # by address
        self._addresses: dict[str, str] = {}  # by holder
        self._next: dict[str, int] = {}  # by range

    def record(self, address: str, holder: str) -> None:
        """Records that a holder was observed with an address."""
        if self._addresses.get(holder) != address:
            self.release(holder)
            self._addresses[holder] = address
            self._holders.setdefault(address, holder)

    def allocate(self, cidr: str, node: str, holder: str) -> str:
        """Returns the holder's address, or allocates a free one of the node's range. Empty when none is free."""
        if holder in self._addresses:
            return self._addresses[holder]
        network = ipaddress.ip_network(cidr) if cidr else _default_range(node)
        count = min(network.num_addresses - 1, 1 << 16)
        start = self._next.get(node, _FIRST_INDEX)
        for step in range(count):
            number = _FIRST_INDEX + (start - _FIRST_INDEX + step) % max(count - _FIRST_INDEX, 1)
            address = str(network.network_address + number)
            if address not in self._holders:
                self._next[node] = number + 1
                self._holders[address] = holder
                self._addresses[holder] = address
                return address
        return ""

    def release(self, holder: str) -> None:
        address = self._addresses.pop(holder, None)
        if address is not None and self._holders.get(address) == holder:
            del self._holders[address]


def _default_range(node: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """A range for a node that was given none. Two nodes may get the same; their pods never do."""
    shares = 1 << (24 - _SHARED_RANGE.prefixlen)
    number = zlib.crc32(node.encode()) % shares
    return ipaddress.ip_network((int(_SHARED_RANGE.network_address) + number * 256, 24))

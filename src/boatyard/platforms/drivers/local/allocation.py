"""Allocates a cluster's numbers on this machine: ports, a user id, addresses within its ranges."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import socket
from collections.abc import Collection, Sequence
from pathlib import Path

from boatyard.model.errors import Unavailable

# Below the range from which the kernel takes ports for outgoing connections: a stopped cluster
# must find its port free again.
PORT_RANGE = range(20_000, 30_000)
LOOPBACK = "127.0.0.1"
POD_CIDR = "10.128.0.0/14"
SERVICE_CIDR = "10.96.0.0/16"
_POD_PREFIX = 24
_FIRST_NODE_INDEX = 10  # before it are the gateway and whatever else the network needs
USER_ID_RANGE = range(1 << 30, (1 << 30) + (1 << 29))  # user ids of clusters, when we are root


def choose_ports(names: Sequence[str], used_ports: Collection[int], *, seed: str) -> dict[str, int]:
    """Chooses a free port per name, none of the used ones. The seed decides where it starts: keepers rarely collide."""
    start = _number(seed) % len(PORT_RANGE)
    ports: dict[str, int] = {}
    for step in range(len(PORT_RANGE)):
        if len(ports) == len(names):
            return ports
        port = PORT_RANGE[(start + step) % len(PORT_RANGE)]
        if port not in used_ports and is_port_free(port):
            ports[names[len(ports)]] = port
    raise Unavailable(
        f"no free port between {PORT_RANGE.start} and {PORT_RANGE.stop - 1}", reason="NoPort"
    )


def is_port_free(port: int) -> bool:
    with socket.socket() as probe:
        # Like a server: connections in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def choose_user(directory: Path, slug: str, used_users: Collection[int | None]) -> int | None:
    """Chooses a user id for one cluster when we are root, so that clusters cannot access each other's files."""
    if os.geteuid() != 0:
        return None
    for attempt in range(1000):
        number = USER_ID_RANGE[_number(f"{directory}/{slug}/{attempt}") % len(USER_ID_RANGE)]
        if number not in used_users:
            return number
    raise Unavailable("no free user id", reason="NoUser")


def first_service_address(service_cidr: str) -> str:
    """Returns the API's address for pods: the first of the service range."""
    return str(next(ipaddress.ip_network(service_cidr).hosts()))


def pod_range(pod_cidr: str, number: int) -> str:
    """Returns the pod range of the node with this number."""
    network = ipaddress.ip_network(pod_cidr)
    prefix = max(network.prefixlen, _POD_PREFIX) if network.version == 4 else 64
    count = 1 << (prefix - network.prefixlen)
    size = 1 << (network.max_prefixlen - prefix)
    # More nodes than ranges: simulated pods of two nodes may then share an address.
    start = network.network_address + (number % count) * size
    return f"{start}/{prefix}"


def node_address(machine_cidr: str, number: int, otherwise: str) -> str:
    """Returns the address of the node with this number on the subnet; `otherwise` when the subnet is too small."""
    network = ipaddress.ip_network(machine_cidr)
    index = _FIRST_NODE_INDEX + number
    if index >= network.num_addresses - 1:
        return otherwise
    return str(network[index])


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")

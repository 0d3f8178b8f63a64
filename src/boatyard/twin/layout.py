"""What is in the simulated data centre before the first order. Read when a twin starts."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from boatyard.model.errors import Refused

HOSTS_PER_RACK = 20


class HubLayout(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One hub: how many hosts of which type, and the ranges it hands out."""

    hosts: Mapping[str, int] = {}
    vlans: tuple[int, int] = (100, 1999)
    subnets: str = "10.1.0.0/16"
    subnet_prefix: int = 24
    floating: str = "198.51.100.0/24"
    zone: str = "hub.example"
    versions: tuple[str, ...] = ()  # what the platform offers; empty is anything

    @cached_property
    def subnet_list(self) -> tuple[str, ...]:
        network = ipaddress.ip_network(self.subnets)
        return tuple(str(subnet) for subnet in network.subnets(new_prefix=self.subnet_prefix))

    @cached_property
    def floating_list(self) -> tuple[str, ...]:
        return tuple(str(address) for address in ipaddress.ip_network(self.floating).hosts())

    @cached_property
    def subnet_set(self) -> frozenset[str]:
        return frozenset(self.subnet_list)

    @cached_property
    def floating_set(self) -> frozenset[str]:
        return frozenset(self.floating_list)

    def host_names(self) -> Iterator[tuple[str, str, int]]:
        """Name, type and number of every host: twenty to a rack, one type after the other."""
        number = 0
        for host_type, count in self.hosts.items():
            for _ in range(count):
                rack, slot = divmod(number, HOSTS_PER_RACK)
                yield f"r{rack + 1}-n{slot + 1}", host_type, number
                number += 1


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The whole data centre: its hubs by name."""

    hubs: Mapping[str, HubLayout]


def nth_address(cidr: str, number: int) -> str:
    """The address with that number in the subnet; Refused when the subnet is too small."""
    network = ipaddress.ip_network(cidr)
    if not 0 < number < network.num_addresses - 1:
        raise Refused(f"{cidr} has no address number {number}")
    return str(network[number])


def demo_layout() -> Layout:
    """Two hubs with a few dozen hosts each: what `boatyard up` starts with."""
    return Layout(
        hubs={
            "boston-1": HubLayout(
                hosts={"bm-small": 24, "bm-large": 12, "bm-gpu": 4},
                subnets="10.1.0.0/16",
                floating="198.51.100.0/24",
                zone="boston.example",
            ),
            "lyon-1": HubLayout(
                hosts={"bm-small": 24, "bm-large": 12},
                subnets="10.2.0.0/16",
                floating="203.0.113.0/24",
                zone="lyon.example",
            ),
        }
    )


def fleet_layout(*, hubs: int, hosts: Mapping[str, int]) -> Layout:
    """Many hosts per hub and ranges wide enough for thousands of clusters: for benchmarks."""
    return Layout(
        hubs={
            f"hub-{number}": HubLayout(
                hosts=hosts,
                vlans=(2, 4094),
                subnets=f"10.{16 * (number - 1)}.0.0/12",
                floating=f"100.{64 + number}.0.0/17",
                zone=f"hub-{number}.example",
            )
            for number in range(1, hubs + 1)
        }
    )


def read_layout(path: Path) -> Layout:
    """The layout in a JSON file; Refused, with the place, when it is not one."""
    try:
        layout = msgspec.json.decode(path.read_bytes(), type=Layout)
        for hub in layout.hubs.values():
            _ = hub.subnet_list, hub.floating_list
    except OSError as error:
        raise Refused(f"cannot read the layout {path}: {error.strerror}") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise Refused(f"the layout {path} is not one: {error}") from error
    return layout


def write_layout(layout: Layout) -> bytes:
    """The layout as the JSON that `read_layout` reads."""
    return msgspec.json.format(msgspec.json.encode(layout), indent=2)

"""Rules about address ranges that tenants give. Called by cluster and template rules."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

import msgspec

from boatyard.model.errors import Violation
from boatyard.model.generated.osac import ClusterNetwork
from boatyard.resources.metadata import quote_text

AddressRange = ipaddress.IPv4Network | ipaddress.IPv6Network

_REMEDY = "give a range such as 10.128.0.0/14"


def canonicalize_network(
    network: ClusterNetwork | None, path: str, violations: list[Violation]
) -> ClusterNetwork | None:
    """Returns the network with both ranges in canonical form and appends what is wrong to `violations`."""
    if network is None:
        return None
    ranges = {
        name: _parse_range(getattr(network, name), f"{path}.{name}", violations)
        for name in ("pod_cidr", "service_cidr")
    }
    pod, service = ranges["pod_cidr"], ranges["service_cidr"]
    if pod is not None and service is not None and _overlap(pod, service):
        violations.append(
            Violation(path, f"pod_cidr {pod} and service_cidr {service} overlap", "keep them apart")
        )
    return msgspec.structs.replace(
        network,
        **{
            name: str(address_range)
            for name, address_range in ranges.items()
            if address_range is not None
        },
    )


def _parse_range(text: str | None, path: str, violations: list[Violation]) -> AddressRange | None:
    if not text:
        return None
    address_range = next(_parse_network(text), None)
    if address_range is None:
        violations.append(Violation(path, f"{quote_text(text)} is not an address range", _REMEDY))
    elif (
        address_range.prefixlen == 0
        or address_range.is_loopback
        or address_range.is_multicast
        or address_range.is_link_local
    ):
        violations.append(
            Violation(path, f"{address_range} cannot be used inside a cluster", _REMEDY)
        )
    return address_range


def _parse_network(text: str) -> Iterator[AddressRange]:
    if "/" not in text or len(text) > 64:
        return
    try:
        yield ipaddress.ip_network(text, strict=False)
    except ValueError:
        return


def _overlap(first: AddressRange, second: AddressRange) -> bool:
    return first.version == second.version and first.overlaps(second)

"""Layer 3: a subnet with DHCP and gateway, tied to a layer-2 network, and floating addresses in front of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from boatyard.infra.port import Driver
from boatyard.model.outcome import Outcome


class L3(Driver, Protocol):
    async def subnets(self) -> Sequence[str]:
        """The subnets (CIDR) we may hand out on this hub. Stable between calls."""

    async def floating_addresses(self) -> Sequence[str]:
        """The floating addresses we may hand out on this hub. Stable between calls."""

    async def ensure_network(self, key: str, cidr: str) -> Outcome:
        """Makes the subnet with DHCP and gateway; Done(gateway=…).

        Same key, same CIDR: Done. Same key, another CIDR: Refused. The CIDR in use under another
        key, or not one of ours: Refused.
        """

    async def release_network(self, key: str) -> Outcome:
        """Removes it with its DHCP and gateway.

        Nothing there: Done. Floating addresses still in front of it: Waiting.
        """

    async def ensure_binding(self, key: str, network_key: str, l2_key: str) -> Outcome:
        """Ties the layer-3 network to the layer-2 network.

        Tied so already: Done. Either of them missing: Unavailable.
        """

    async def release_binding(self, key: str) -> Outcome:
        """Unties them. Nothing tied: Done."""

    async def ensure_floating(
        self, key: str, address: str, network_key: str, purpose: str
    ) -> Outcome:
        """Routes the floating address to the network, for `purpose` ("api" or "ingress").

        Same key, same address: Done; network and purpose are corrected. Same key, another address:
        Refused. In use under another key, or not one of ours: Refused. No such network: Unavailable.
        """

    async def release_floating(self, key: str) -> Outcome:
        """Takes the route away. Nothing there: Done."""

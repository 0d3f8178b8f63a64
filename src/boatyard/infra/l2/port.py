"""Layer 2: networks by VLAN, and switch ports bound to them. Called by the network step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from boatyard.infra.port import Driver
from boatyard.model.outcome import Outcome


class L2(Driver, Protocol):
    async def vlans(self) -> Sequence[int]:
        """The VLAN ids we may use on this fabric. Does not change between calls unless a person changed it."""

    async def ensure_network(self, key: str, vlan: int) -> Outcome:
        """Makes the network of this key with that VLAN; Done(network=id).

        Same key, same VLAN: Done. Same key, another VLAN: Refused. The VLAN in use under another
        key, or not one of ours: Refused.
        """

    async def release_network(self, key: str) -> Outcome:
        """Removes it. Nothing there: Done. Ports still bound: Waiting."""

    async def ensure_port(self, key: str, network_key: str, host: str) -> Outcome:
        """Binds the host's switch port to the network; Done(port=…) once the switch confirms.

        A port bound elsewhere under the same key is moved. Bound under another key: Refused. No
        such network: Unavailable. No such host: Refused.
        """

    async def release_port(self, key: str, host: str) -> Outcome:
        """Returns the port to the idle network. Nothing bound under this key, or no such host: Done."""

"""The simulated fabric: networks and switch ports of the twin. Each carries its key."""

from __future__ import annotations

from collections.abc import Sequence

from boatyard.model.outcome import Outcome
from boatyard.twin.driver import TwinDriver, has, lacks


class SimL2(TwinDriver):
    service = "l2"

    async def vlans(self) -> Sequence[int]:
        first, last = await self.ask("vlans")
        return range(first, last + 1)

    async def ensure_network(self, key: str, vlan: int) -> Outcome:
        so = has(key, name=str(vlan))
        return await self.act("ensure_network", kind="network", id=key, so=so, key=key, vlan=vlan)

    async def release_network(self, key: str) -> Outcome:
        return await self.act("release_network", kind="network", id=key, so=lacks(key), key=key)

    async def ensure_port(self, key: str, network_key: str, host: str) -> Outcome:
        return await self.act(
            "ensure_port",
            kind="port",
            id=host,
            so=has(key, ref=network_key),
            key=key,
            network_key=network_key,
            host=host,
        )

    async def release_port(self, key: str, host: str) -> Outcome:
        so = lacks(key)
        return await self.act("release_port", kind="port", id=host, so=so, key=key, host=host)

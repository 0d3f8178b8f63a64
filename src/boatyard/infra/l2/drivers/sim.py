"""The simulated fabric: networks and switch ports of the twin. Each carries its key."""

from __future__ import annotations

from collections.abc import Sequence

from boatyard.model.outcome import Outcome
from boatyard.twin.driver import TwinDriver, expect_absent, expect_present


class SimL2(TwinDriver):
    service = "l2"

    async def vlans(self) -> Sequence[int]:
        first, last = await self.call_verb("vlans")
        return range(first, last + 1)

    async def ensure_network(self, key: str, vlan: int) -> Outcome:
        so = expect_present(key, name=str(vlan))
        return await self.call_and_verify(
            "ensure_network", kind="network", id=key, so=so, key=key, vlan=vlan
        )

    async def release_network(self, key: str) -> Outcome:
        return await self.call_and_verify(
            "release_network", kind="network", id=key, so=expect_absent(key), key=key
        )

    async def ensure_port(self, key: str, network_key: str, host: str) -> Outcome:
        return await self.call_and_verify(
            "ensure_port",
            kind="port",
            id=host,
            so=expect_present(key, ref=network_key),
            key=key,
            network_key=network_key,
            host=host,
        )

    async def release_port(self, key: str, host: str) -> Outcome:
        so = expect_absent(key)
        return await self.call_and_verify(
            "release_port", kind="port", id=host, so=so, key=key, host=host
        )

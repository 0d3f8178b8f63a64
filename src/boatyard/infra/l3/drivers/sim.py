"""The simulated routers: subnets, ties and floating addresses of the twin, each with its key."""

from __future__ import annotations

from collections.abc import Sequence

from boatyard.model.outcome import Outcome
from boatyard.twin.calls import TwinCalls
from boatyard.twin.driver import TwinDriver, has, lacks


class SimL3(TwinDriver):
    service = "l3"

    def __init__(self, twin: TwinCalls, hub: str) -> None:
        super().__init__(twin, hub)
        # Ranges do not change while a hub stands, and may hold thousands of entries.
        self._subnets: Sequence[str] = ()
        self._floating: Sequence[str] = ()

    async def subnets(self) -> Sequence[str]:
        if not self._subnets:
            self._subnets = await self.ask("subnets")
        return self._subnets

    async def floating_addresses(self) -> Sequence[str]:
        if not self._floating:
            self._floating = await self.ask("floating_addresses")
        return self._floating

    async def ensure_network(self, key: str, cidr: str) -> Outcome:
        so = has(key, name=cidr)
        return await self.act("ensure_network", kind="subnet", id=key, so=so, key=key, cidr=cidr)

    async def release_network(self, key: str) -> Outcome:
        return await self.act("release_network", kind="subnet", id=key, so=lacks(key), key=key)

    async def ensure_binding(self, key: str, network_key: str, l2_key: str) -> Outcome:
        return await self.act(
            "ensure_binding",
            kind="binding",
            id=key,
            so=has(key, name=network_key, ref=l2_key),
            key=key,
            network_key=network_key,
            l2_key=l2_key,
        )

    async def release_binding(self, key: str) -> Outcome:
        return await self.act("release_binding", kind="binding", id=key, so=lacks(key), key=key)

    async def ensure_floating(
        self, key: str, address: str, network_key: str, purpose: str
    ) -> Outcome:
        return await self.act(
            "ensure_floating",
            kind="floating",
            id=key,
            so=has(key, name=address, ref=network_key, extra=[purpose]),
            key=key,
            address=address,
            network_key=network_key,
            purpose=purpose,
        )

    async def release_floating(self, key: str) -> Outcome:
        return await self.act("release_floating", kind="floating", id=key, so=lacks(key), key=key)

"""The simulated routers: subnets, ties and floating addresses of the twin, each with its key."""

from __future__ import annotations

from collections.abc import Sequence

from boatyard.model.outcome import Outcome
from boatyard.twin.calls import TwinCalls
from boatyard.twin.driver import TwinDriver, expect_absent, expect_present


class SimL3(TwinDriver):
    service = "l3"

    def __init__(self, twin: TwinCalls, hub: str) -> None:
        super().__init__(twin, hub)
        # Ranges do not change while a hub stands, and may hold thousands of entries.
        self._subnets: Sequence[str] = ()
        self._floating: Sequence[str] = ()

    async def subnets(self) -> Sequence[str]:
        if not self._subnets:
            self._subnets = await self.call_verb("subnets")
        return self._subnets

    async def floating_addresses(self) -> Sequence[str]:
        if not self._floating:
            self._floating = await self.call_verb("floating_addresses")
        return self._floating

    async def ensure_network(self, key: str, cidr: str) -> Outcome:
        so = expect_present(key, name=cidr)
        return await self.call_and_verify(
            "ensure_network", kind="subnet", id=key, so=so, key=key, cidr=cidr
        )

    async def release_network(self, key: str) -> Outcome:
        return await self.call_and_verify(
            "release_network", kind="subnet", id=key, so=expect_absent(key), key=key
        )

    async def ensure_binding(self, key: str, network_key: str, l2_key: str) -> Outcome:
        return await self.call_and_verify(
            "ensure_binding",
            kind="binding",
            id=key,
            so=expect_present(key, name=network_key, ref=l2_key),
            key=key,
            network_key=network_key,
            l2_key=l2_key,
        )

    async def release_binding(self, key: str) -> Outcome:
        return await self.call_and_verify(
            "release_binding", kind="binding", id=key, so=expect_absent(key), key=key
        )

    async def ensure_floating(
        self, key: str, address: str, network_key: str, purpose: str
    ) -> Outcome:
        return await self.call_and_verify(
            "ensure_floating",
            kind="floating",
            id=key,
            so=expect_present(key, name=address, ref=network_key, extra=[purpose]),
            key=key,
            address=address,
            network_key=network_key,
            purpose=purpose,
        )

    async def release_floating(self, key: str) -> Outcome:
        return await self.call_and_verify(
            "release_floating", kind="floating", id=key, so=expect_absent(key), key=key
        )

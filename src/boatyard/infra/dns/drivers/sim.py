"""The simulated name server: one zone per hub of the twin. Every record carries its key there."""

from __future__ import annotations

from boatyard.model.outcome import Outcome
from boatyard.twin.driver import TwinDriver, expect_absent, expect_present


class SimDns(TwinDriver):
    service = "dns"

    async def zone(self) -> str:
        zone: str = await self.call_verb("zone")
        return zone

    async def ensure_record(self, key: str, name: str, address: str) -> Outcome:
        return await self.call_and_verify(
            "ensure_record",
            kind="record",
            id=key,
            so=expect_present(key, name=name, extra=[address]),
            key=key,
            name=name,
            address=address,
        )

    async def release_record(self, key: str) -> Outcome:
        return await self.call_and_verify(
            "release_record", kind="record", id=key, so=expect_absent(key), key=key
        )

    async def resolve(self, name: str) -> str | None:
        address: str = await self.call_verb("resolve", name=name)
        return address or None

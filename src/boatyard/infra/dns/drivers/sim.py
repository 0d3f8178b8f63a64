"""The simulated name server: one zone per hub of the twin. Every record carries its key there."""

from __future__ import annotations

from boatyard.model.outcome import Outcome
from boatyard.twin.driver import TwinDriver, has, lacks


class SimDns(TwinDriver):
    service = "dns"

    async def zone(self) -> str:
        zone: str = await self.ask("zone")
        return zone

    async def ensure_record(self, key: str, name: str, address: str) -> Outcome:
        return await self.act(
            "ensure_record",
            kind="record",
            id=key,
            so=has(key, name=name, extra=[address]),
            key=key,
            name=name,
            address=address,
        )

    async def release_record(self, key: str) -> Outcome:
        return await self.act("release_record", kind="record", id=key, so=lacks(key), key=key)

    async def resolve(self, name: str) -> str | None:
        address: str = await self.ask("resolve", name=name)
        return address or None

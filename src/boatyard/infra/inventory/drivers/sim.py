"""The simulated inventory: hosts of the twin. Every effect carries its key in the twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boatyard.infra.inventory.port import Host
from boatyard.model.outcome import Outcome
from boatyard.twin.driver import TwinDriver, has, lacks


class SimInventory(TwinDriver):
    service = "inventory"

    async def list_free(self, host_type: str, limit: int, seed: str = "") -> Sequence[Host]:
        rows = await self.ask("list_free", host_type=host_type, limit=limit, seed=seed)
        return [Host(row["name"], row["host_type"], row["facts"]) for row in rows]

    async def capacity(self) -> Mapping[str, int]:
        counts: Mapping[str, int] = await self.ask("capacity")
        return counts

    async def ensure_held(self, key: str, host: str) -> Outcome:
        so = has(key, name=host)
        return await self.act("ensure_held", kind="host", id=host, so=so, key=key, host=host)

    async def release_held(self, key: str, host: str) -> Outcome:
        so = lacks(key)
        return await self.act("release_held", kind="host", id=host, so=so, key=key, host=host)

    async def agent_address(self, key: str, host: str) -> Outcome:
        outcome: Outcome = await self.ask("agent_address", key=key, host=host)
        return outcome

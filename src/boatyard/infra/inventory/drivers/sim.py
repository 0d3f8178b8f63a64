"""The simulated inventory: hosts of the twin. Every effect carries its key in the twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boatyard.infra.inventory.port import InventoryHost
from boatyard.model.outcome import Outcome
from boatyard.twin.driver import TwinDriver, expect_absent, expect_present


class SimInventory(TwinDriver):
    service = "inventory"

    async def list_free(
        self, host_type: str, limit: int, seed: str = ""
    ) -> Sequence[InventoryHost]:
        rows = await self.call_verb("list_free", host_type=host_type, limit=limit, seed=seed)
        return [InventoryHost(row["name"], row["host_type"], row["facts"]) for row in rows]

    async def capacity(self) -> Mapping[str, int]:
        counts: Mapping[str, int] = await self.call_verb("capacity")
        return counts

    async def ensure_held(self, key: str, host: str) -> Outcome:
        so = expect_present(key, name=host)
        return await self.call_and_verify(
            "ensure_held", kind="host", id=host, so=so, key=key, host=host
        )

    async def release_held(self, key: str, host: str) -> Outcome:
        so = expect_absent(key)
        return await self.call_and_verify(
            "release_held", kind="host", id=host, so=so, key=key, host=host
        )

    async def agent_address(self, key: str, host: str) -> Outcome:
        outcome: Outcome = await self.call_verb("agent_address", key=key, host=host)
        return outcome

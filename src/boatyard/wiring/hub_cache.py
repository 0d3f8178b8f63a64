"""The hubs as the ledger has them, read once for all users in a process. Used by drivers, order books and watches."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.osac import Hub


@dataclass(frozen=True)
class _Entry:
    hub: Hub
    registered: bool
    read_at: float  # when the read began


class HubCache:
    """Hubs by id, with their secrets in clear. What it returns is at most `fresh_seconds` old."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._entries: dict[str, _Entry] = {}
        self.fresh_seconds = 2.0

    async def registered(self, hub_id: str) -> Hub | None:
        """The hub; None when it was removed. A hub that was not there is looked up again at every call."""
        entry = self._fresh(hub_id)
        if entry is None or not entry.registered:
            entry = await self._read(hub_id)
        return entry.hub if entry is not None and entry.registered else None

    async def known(self, hub_id: str) -> Hub | None:
        """The hub, also when it was removed: its orders are still there."""
        entry = self._fresh(hub_id) or await self._read(hub_id) or await self._read_archived(hub_id)
        return entry.hub if entry is not None else None

    async def read_all(self) -> list[Hub]:
        """Every registered hub, read now."""
        read_at = _now()
        page = await self._ledger.documents.list(Hub, limit=1000, with_total=False)
        for hub in page.items:
            self._keep(_Entry(hub, registered=True, read_at=read_at))
        return list(page.items)

    def _fresh(self, hub_id: str) -> _Entry | None:
        entry = self._entries.get(hub_id)
        if entry is None or _now() >= entry.read_at + self.fresh_seconds:
            return None
        return entry

    async def _read(self, hub_id: str) -> _Entry | None:
        """The hub when it is registered."""
        read_at = _now()
        hub = await self._ledger.documents.get(Hub, hub_id)
        if hub is None:
            self._entries.pop(hub_id, None)
            return None
        return self._keep(_Entry(hub, registered=True, read_at=read_at))

    async def _read_archived(self, hub_id: str) -> _Entry | None:
        """The hub as it was when it was removed."""
        read_at = _now()
        hub = await self._ledger.documents.get_archived(Hub, hub_id)
        return None if hub is None else self._keep(_Entry(hub, registered=False, read_at=read_at))

    def _keep(self, entry: _Entry) -> _Entry:
        """Stores the entry, unless a read that began later has stored one. Returns the newer of the two."""
        stored = self._entries.get(entry.hub.id)
        if stored is not None and stored.read_at > entry.read_at:
            return stored
        self._entries[entry.hub.id] = entry
        return entry


def _now() -> float:
    return asyncio.get_running_loop().time()

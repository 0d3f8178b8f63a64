"""Contents by digest: written once, never changed. Used by those who publish templates and those who run them."""

from __future__ import annotations

from datetime import datetime

from boatyard.ledger.connections import Connections


class Contents:
    """Bytes under the digest of what they stand for. Whoever reads them checks that they are what it says."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def keep(self, digest: str, packed: bytes, now: datetime) -> None:
        """May be called any number of times; what is kept already stays as it is."""
        await self._connections.write(
            "keeping a template's content",
            "insert into contents (digest, packed, kept) values ($1, $2, $3) on conflict do nothing",
            digest,
            packed,
            now,
        )

    async def get(self, digest: str) -> bytes | None:
        rows = await self._connections.read(
            "reading a template's content", "select packed from contents where digest = $1", digest
        )
        return bytes(rows[0][0]) if rows else None

"""Contents of roles by digest: written once, never changed. Used to publish templates and to run them."""

from __future__ import annotations

from datetime import datetime

from boatyard.ledger.connections import Connections


class RoleContents:
    """Packed contents under the digest of what is packed. The reader checks that they match."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def store(self, digest: str, packed: bytes, now: datetime) -> None:
        """Stores the bytes. May be called any number of times; an existing entry stays as it is."""
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

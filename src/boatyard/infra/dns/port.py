"""The dns port: records for the names of clusters. Called by the names step."""

from __future__ import annotations

from typing import Protocol

from boatyard.infra.port import Driver
from boatyard.model.outcome import Outcome


class Dns(Driver, Protocol):
    async def zone(self) -> str:
        """The zone under which clusters get their names, without a trailing dot."""

    async def ensure_record(self, key: str, name: str, address: str) -> Outcome:
        """Makes `name` point at `address`; an existing record of the same key is corrected.

        A key has one record: with another name the old name is given up. Answers Done once the zone
        itself answers so, Waiting while it is slow to publish. A name with a record of another key,
        or outside the zone, is Refused.
        """

    async def release_record(self, key: str) -> Outcome:
        """Removes the record of this key. Nothing there: Done."""

    async def resolve(self, name: str) -> str | None:
        """The address the zone answers for `name` now, whosever record it is; None when it knows none.

        Changes nothing. A record that `ensure_record` answered Done for is found here.
        """

"""The inventory port: which hosts there are, and which order holds each. Called by the hosts and network steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from boatyard.infra.port import Driver
from boatyard.model.outcome import Outcome


@dataclass(frozen=True)
class InventoryHost:
    name: str
    host_type: str
    facts: Mapping[str, str] = field(default_factory=dict)  # rack, switch, port, mac …


class Inventory(Driver, Protocol):
    async def list_free(
        self, host_type: str, limit: int, seed: str = ""
    ) -> Sequence[InventoryHost]:
        """Up to `limit` hosts of the type that nobody holds, by name, from the start or, with a
        seed, from a place of the seed's own and then round: so that many claimers rarely meet.

        Only a hint: between this answer and `ensure_held` anybody may take one.
        """

    async def capacity(self) -> Mapping[str, int]:
        """How many usable hosts there are per host type, held or not."""

    async def ensure_held(self, key: str, host: str) -> Outcome:
        """Marks `host` as held under `key`. Done carries facts `switch`, `port`, `mac`.

        Already held under the same key: Done, also when it broke since. Held under another key:
        Refused with the reason `HeldByAnother`. Unknown or broken host: Refused with the reason
        `HostUnusable`. Waiting while its agent starts; it is held from the first call on.
        """

    async def release_held(self, key: str, host: str) -> Outcome:
        """Gives the host back, wiped.

        Nothing held, or unknown: Done. Waiting while it is being wiped; a broken host is given back
        as it is. Held under another key: Refused.
        """

    async def agent_address(self, key: str, host: str) -> Outcome:
        """The address the host's agent has on the network it is bound to now: Done(address=…),
        Waiting until it is seen. Held under another key: Refused.

        Changes nothing. The address may be another once the network has a subnet.
        """

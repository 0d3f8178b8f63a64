"""The verbs and rules that every infrastructure driver has in common.

Rules, checked by the contract suites:

| # | rule |
| --- | --- |
| 1 | `ensure_…` may be called any number of times; the net result is one thing outside, carrying its key |
| 2 | `release_…` is content when there is nothing; another owner's thing is left alone and Refused |
| 3 | no verb takes longer than a few seconds; slow work answers Waiting and is asked again |
| 4 | a back-end that does not answer raises Unavailable; a request it will never accept raises Refused |
| 5 | the words of Waiting and Refused are read by tenants: no names of hosts, no numbers of VLANs, no one else's keys |
| 6 | `list_owned` names everything outside that carries our mark, by key |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from boatyard.model.outcome import OwnedObject


class Driver(Protocol):
    async def check_ready(self) -> None:
        """Raises Unavailable or Refused when the driver cannot work now. Cheap; changes nothing."""

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        """Everything outside that carries our mark and whose key starts with `prefix`."""

    async def close(self) -> None:
        """Lets go of connections. May be called twice."""

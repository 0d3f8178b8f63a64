"""What a reconciler is to the engine: it is given what is due and answers with one write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from boatyard.ledger.changes import Change
from boatyard.ledger.records import Lease


@dataclass(frozen=True)
class Turn:
    """One turn at one object. `check_lease` raises LeaseLost once somebody else may be at it."""

    id: str
    now: datetime
    lease: Lease | None = None  # guards every write of this turn
    check_lease: Callable[[], None] = field(default=lambda: None)


@dataclass(frozen=True)
class Result:
    """What to write in the same transaction, and when to look again; None: nothing is left to do."""

    changes: Sequence[Change] = ()
    look_again: datetime | None = None
    hub: str = ""
    waiting_for: str = ""


class Reconciler(Protocol):
    async def reconcile(self, turn: Turn) -> Result:
        """Looks at the object as it is now and does what can be done.

        May be called at any time, any number of times.
        """

    async def poisoned(self, turn: Turn) -> Result:
        """Called instead when workers died during the last turns: sets the object aside where a person sees it."""

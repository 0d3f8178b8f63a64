"""The contract between engine and reconcilers: a reconciler gets a due object and returns one write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from boatyard.ledger.changes import Change
from boatyard.ledger.records import WorkLease


@dataclass(frozen=True)
class ReconcilePass:
    """One pass over one object. `check_lease` raises LeaseLost once another worker may hold the object."""

    id: str
    now: datetime
    lease: WorkLease | None = None  # guards every write of this pass
    check_lease: Callable[[], None] = field(default=lambda: None)


@dataclass(frozen=True)
class ReconcileResult:
    """The changes to write in one transaction, and when the object is due again; None: nothing is left to do."""

    changes: Sequence[Change] = ()
    look_again: datetime | None = None
    hub: str = ""
    waiting_for: str = ""


class Reconciler(Protocol):
    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        """Reads the object as it is now, does what can be done, and returns what to write.

        May be called at any time, any number of times.
        """

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        """Called instead of `reconcile` when workers died in the last passes: quarantines the object visibly."""

"""The end of a Leftover, whoever released what was left. Pure; called by both reconcilers of Leftovers."""

from __future__ import annotations

from datetime import datetime

import msgspec

from boatyard.ledger.changes import Archive, Change, EventNote, Unreserve, WakeWaiting
from boatyard.model.generated.boatyard import Leftover
from boatyard.resources.clusters.deletion import leftover_owner
from boatyard.resources.clusters.reconciler import CAPACITY_WAKE


def end_leftover(leftover: Leftover, now: datetime) -> list[Change]:
    """Archives a Leftover of which nothing is left, and gives its capacity to clusters that wait for some."""
    status = msgspec.structs.replace(leftover.status, items=(), steps=())
    empty = msgspec.structs.replace(leftover, status=status)
    return [
        Unreserve(leftover_owner(leftover.id)),
        Archive(empty, note=EventNote("Released", "Everything left is released")),
        WakeWaiting(CAPACITY_WAKE, now),
    ]

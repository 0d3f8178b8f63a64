"""Leftovers begin and end in the same way, whoever gave up and whoever released."""

from __future__ import annotations

from datetime import UTC, datetime

from boatyard.ledger.changes import Archive, Due, EventNote, Insert, Unreserve, WakeWaiting
from boatyard.model.generated.boatyard import Item, Leftover, LeftoverSpec, LeftoverStatus, Step
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.mirror import begin_leftover
from boatyard.resources.leftovers.ending import end_leftover

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEFTOVER = Leftover(
    id="c-1",
    metadata=Metadata(name="c-1", tenant="acme"),
    spec=LeftoverSpec(order="c-1", cluster_name="web", hub="h-1"),
    status=LeftoverStatus(items=(Item(key="host/a-0"),), steps=(Step(name="hosts"),)),
)


def test_what_is_given_up_is_stored_and_due_at_once_on_its_hub() -> None:
    note = EventNote("Abandoned", "not in time")

    assert begin_leftover(LEFTOVER, note, NOW) == [
        Insert(LEFTOVER, note=note),
        Due("Leftover", "c-1", NOW, tenant="acme", hub="h-1"),
    ]


def test_the_end_frees_the_room_and_wakes_who_waits_for_it() -> None:
    unreserve, archive, wake = end_leftover(LEFTOVER, NOW)

    assert (unreserve, wake) == (Unreserve("leftover/c-1"), WakeWaiting("capacity", NOW))
    assert isinstance(archive, Archive)
    assert isinstance(archive.doc, Leftover)
    assert (archive.doc.status.items, archive.doc.status.steps) == ((), ())

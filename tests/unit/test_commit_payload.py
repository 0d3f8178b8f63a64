"""Locks are taken in one order everywhere: what a commit sends is sorted by class."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from boatyard.ledger.changes import Due, Require, Reserve, WakeWaiting
from boatyard.ledger.codec import Codec
from boatyard.ledger.commit import encode_changes
from boatyard.ledger.seal import Seal

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_is_locked_is_sorted_whatever_the_order_of_the_changes() -> None:
    changes = [
        change
        for name in ("b", "c", "a")
        for change in (
            Reserve(name, owner=name, amount=1, capacity=9),
            WakeWaiting(name, NOW),
            Due("Order", name, NOW),
            Require("Hub", name),
        )
    ]

    sent = msgspec.json.decode(
        encode_changes(
            changes, Codec(Seal.from_bytes(bytes(32)), {}), lease=None, finish=None, now=NOW
        )
    )

    assert [entry["pool"] for entry in sent["pools"]] == ["a", "b", "c"]
    assert [entry["name"] for entry in sent["wakes"]] == ["a", "b", "c"]
    assert [entry["id"] for entry in sent["due"]] == ["a", "b", "c"]
    assert [entry["id"] for entry in sent["checks"]] == ["a", "b", "c"]

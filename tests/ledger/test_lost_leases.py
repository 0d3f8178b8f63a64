"""A worker whose lease has passed to another neither prolongs it nor believes that it still has it."""

from __future__ import annotations

from datetime import datetime, timedelta

from boatyard.ledger.changes import Due
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import WorkLease
from tests.ledger.docs import NOW

LATER = NOW + timedelta(seconds=20)


async def take(ledger: Ledger, worker: str, now: datetime) -> WorkLease:
    (lease,) = await ledger.work.take(
        kinds=["Order"], limit=1, lease_seconds=10, worker=worker, now=now
    )
    return lease


async def test_a_lease_that_has_passed_on_is_not_prolonged_by_who_lost_it(ledger: Ledger) -> None:
    await ledger.commit([Due("Order", "o-1", NOW)], now=NOW)
    first = await take(ledger, "slow", NOW)
    second = await take(ledger, "quick", LATER)

    assert await ledger.work.extend([first], 1000, LATER) == set()
    assert await ledger.work.next_due() == second.until
    assert await ledger.work.extend([second], 1000, LATER) == {("Order", "o-1")}
    assert await ledger.work.next_due() == LATER + timedelta(seconds=1000)

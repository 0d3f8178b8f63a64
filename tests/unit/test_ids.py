"""Ids of new documents sort by creation, whatever the clock does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from boatyard.api.ids import new_id

NOW = datetime(2040, 1, 1, tzinfo=UTC)


def test_ids_of_one_moment_sort_by_creation() -> None:
    """A clock that was corrected backwards stands still for a while."""
    made = [new_id(NOW) for _ in range(10_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_clock_that_runs_backwards_changes_nothing() -> None:
    first = new_id(NOW + timedelta(seconds=1))
    assert new_id(NOW) > first


def test_an_id_tells_its_millisecond_and_is_a_uuid_of_version_7() -> None:
    later = NOW + timedelta(days=1)
    id = UUID(new_id(later))
    assert id.version == 7
    assert id.int >> 80 == int(later.timestamp() * 1000)


def test_ids_cannot_be_guessed_from_each_other() -> None:
    moment = NOW + timedelta(days=2)
    ends = {UUID(new_id(moment)).int & (1 << 62) - 1 for _ in range(100)}
    assert len(ends) == 100

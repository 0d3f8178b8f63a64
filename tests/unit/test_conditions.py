"""Conditions: the time of the last transition changes with the status, and with nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from boatyard.model.conditions import transition_time, with_transition_time
from boatyard.model.generated.boatyard import OrderCondition

BEFORE, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def condition(type: str, status: bool, reason: str = "", time: datetime | None = None) -> OrderCondition:  # fmt: skip
    return OrderCondition(type=type, status=status, reason=reason, last_transition_time=time)


@pytest.mark.parametrize(
    "before, expected",
    [
        pytest.param([], NOW, id="a new condition"),
        pytest.param([condition("Ready", True, "Old", BEFORE)], BEFORE, id="another reason"),
        pytest.param([condition("Ready", False, "New", BEFORE)], NOW, id="another status"),
        pytest.param([condition("Failed", True, "New", BEFORE)], NOW, id="another type"),
        pytest.param([condition("Ready", True)], NOW, id="one that has no time yet"),
        pytest.param(
            [condition("Failed", False, "", NOW), condition("Ready", True, "", BEFORE)],
            BEFORE,
            id="one of several",
        ),
    ],
)
def test_the_time_is_that_of_the_last_change_of_status(
    before: list[OrderCondition], expected: datetime
) -> None:
    new_condition = with_transition_time(condition("Ready", True, "New"), before, NOW)

    assert new_condition == condition("Ready", True, "New", expected)


def test_times_may_be_texts_as_in_objects_of_kubernetes() -> None:
    assert transition_time("True", "True", "yesterday", "today") == "yesterday"
    assert transition_time("True", "False", "yesterday", "today") == "today"
    assert transition_time("True", None, None, "today") == "today"

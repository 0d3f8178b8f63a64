"""Sets a condition: the time of its last transition changes only with its status. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

Time = TypeVar("Time")


class TimedCondition(Protocol):
    @property
    def type(self) -> Any: ...
    @property
    def status(self) -> Any: ...
    @property
    def last_transition_time(self) -> datetime | None: ...


Timed = TypeVar("Timed", bound=TimedCondition)


def with_transition_time(condition: Timed, before: Iterable[Timed], now: datetime) -> Timed:
    """The condition with the time of its last transition: now, unless its type has the same status in `before`."""
    old = next((other for other in before if other.type == condition.type), None)
    time = now
    if old is not None:
        time = transition_time(condition.status, old.status, old.last_transition_time, now)
    return msgspec.structs.replace(condition, last_transition_time=time)  # type: ignore[type-var]


def transition_time(status: object, old_status: object, old_time: Time | None, now: Time) -> Time:
    """The same for conditions in other shapes than our structs. A condition without a time gets one now."""
    return old_time if old_time is not None and status == old_status else now

"""The clock port. Production uses the database's clock; journey tests step their own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The present moment, aware, in UTC, never running backwards."""

    async def sleep(self, seconds: float) -> None:
        """Returns once that much of this clock's time has passed."""


def later(now: datetime, seconds: float) -> datetime:
    return now + timedelta(seconds=seconds)

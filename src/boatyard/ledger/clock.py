"""The database's clock: its last known time, carried on by this machine's monotonic clock."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DatabaseClock:
    """Implements `model.clock.Clock`. All processes on one database agree on the time."""

    def __init__(self) -> None:
        self._offset = timedelta()
        self._latest = _EPOCH

    def set(self, database_now: datetime) -> None:
        """Sets the clock to the database's time."""
        self._offset = database_now - self._monotonic_time()

    def now(self) -> datetime:
        # After a correction backwards the clock stands still until real time has caught up.
        self._latest = max(self._latest, self._monotonic_time() + self._offset)
        return self._latest

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @staticmethod
    def _monotonic_time() -> datetime:
        return _EPOCH + timedelta(seconds=time.monotonic())
